//! Races that must be reported.

use crate::machine::planted::*;
use crate::machine::*;
use simt::*;

const HERE: Source = Source {
    file: file!(),
    text: include_str!("races.rs"),
};

#[test]
fn a_forgotten_barrier_is_a_race_in_shared_memory() {
    let kind = HERE.planted(&strict(), 64, 32, "reads too early", || {
        let shared = lane::shared_static(1, 256, 4);
        put_shared(shared, thread_number(), 1); // writes just before
        if block_number() != BUGGY {
            lane::sync_threads();
        }
        let other = thread_number() % 32;
        get_shared(shared, other); // reads too early
    });
    let expected = (AccessKind::Load, AccessKind::Store, [BUGGY, 0, 0], [0; 3]);
    assert_eq!(race(&kind), (expected, HERE.line("writes just before")));
}

#[test]
fn a_read_before_another_thread_writes_is_a_race_and_names_both_lines() {
    // No thread has written the word when it is read, since threads run in order.
    let kind = HERE.planted(&strict(), 64, 40, "writes just after", || {
        let shared = lane::shared_static(1, 256, 4);
        if buggy(3) {
            get_shared(shared, 40); // reads before the write
        }
        put_shared(shared, thread_number(), 1); // writes just after
        lane::sync_threads();
        get_shared(shared, 40);
    });
    let expected = (
        AccessKind::Store,
        AccessKind::Load,
        [BUGGY, 0, 0],
        [3, 0, 0],
    );
    assert_eq!(race(&kind), (expected, HERE.line("reads before the write")));
}

#[test]
fn a_write_after_reads_of_several_warps_is_a_race() {
    let kind = HERE.planted(&strict(), 96, 37, "writes what was read", || {
        let shared = lane::shared_static(1, 4, 4);
        if thread_number() == 0 {
            put_shared(shared, 0, 1);
        }
        lane::sync_threads();
        get_shared(shared, 0); // reads what will be written
        if buggy(37) {
            put_shared(shared, 0, 2); // writes what was read
        }
    });
    // The last warp reaches the barrier first.
    let expected = (
        AccessKind::Store,
        AccessKind::Load,
        [BUGGY, 0, 0],
        [64, 0, 0],
    );
    assert_eq!(
        race(&kind),
        (expected, HERE.line("reads what will be written"))
    );
}

#[test]
fn lanes_of_a_warp_race_without_a_warp_barrier() {
    let kind = HERE.planted(&strict(), 32, 1, "reads across lanes", || {
        let shared = lane::shared_static(1, 128, 4);
        put_shared(shared, lane::lane_id(), 1); // writes its word
        // A shuffle does not order accesses to memory.
        lane::shuffle_idx(FULL, 1, 0, 32);
        if buggy(1) {
            get_shared(shared, 0); // reads across lanes
        }
    });
    let expected = (AccessKind::Load, AccessKind::Store, [BUGGY, 0, 0], [0; 3]);
    assert_eq!(race(&kind), (expected, HERE.line("writes its word")));
}

#[test]
fn a_warp_barrier_orders_only_the_lanes_it_names() {
    let kind = HERE.planted(&strict(), 32, 2, "reads across halves", || {
        let shared = lane::shared_static(1, 128, 4);
        let lane = lane::lane_id();
        put_shared(shared, lane, 1); // writes its word of a half
        lane::sync_warp(if lane < 16 { 0xffff } else { 0xffff_0000 });
        get_shared(shared, lane ^ 1);
        // All threads have written by now, but nothing orders the accesses.
        lane::ballot(FULL, true);
        if buggy(2) {
            get_shared(shared, 16); // reads across halves
        }
    });
    let expected = (
        AccessKind::Load,
        AccessKind::Store,
        [BUGGY, 0, 0],
        [16, 0, 0],
    );
    assert_eq!(
        race(&kind),
        (expected, HERE.line("writes its word of a half"))
    );
}

#[test]
fn blocks_that_write_the_same_word_race() {
    for workers in [1, 3] {
        let emulator = emulator(workers, Checks::Full, Schedule::InOrder);
        let data = zeros(&emulator, GRID);
        let fault = run(&emulator, shape(GRID, 1), || {
            let block = block_number();
            put(data, if block == BUGGY { 7 } else { block }, 1); // writes its block's word
        });
        let fault = fault.unwrap_err();
        let ((access_kind, other_access_kind, block, thread), line_of_other) = race(&fault.kind);
        let mut blocks = [fault.block[0], block[0]];
        blocks.sort_unstable();
        assert_eq!(
            (access_kind, other_access_kind, thread),
            (AccessKind::Store, AccessKind::Store, [0; 3])
        );
        assert_eq!(blocks, [7, BUGGY], "{fault}");
        assert_eq!(
            [fault.location.line, line_of_other],
            [HERE.line("writes its block's word"); 2]
        );
    }
}

#[test]
fn a_plain_read_of_what_other_blocks_add_to_is_a_race() {
    let emulator = strict();
    let counter = zeros(&emulator, 1);
    let kind = HERE.planted(&emulator, 32, 0, "reads a counter", || {
        if buggy(0) {
            get(counter, 0); // reads a counter
        }
        let add = |count| Some(count + 1);
        lane::atomic::<u32>(Space::Global, Scope::Device, counter, add); // adds
    });
    let expected = (
        AccessKind::Load,
        AccessKind::Atomic,
        [BUGGY - 1, 0, 0],
        [31, 0, 0],
    );
    assert_eq!(race(&kind), (expected, HERE.line("adds")));
}

#[test]
fn an_atomic_of_block_scope_does_not_reach_other_blocks() {
    let emulator = strict();
    let counters = zeros(&emulator, GRID);
    let kind = HERE.planted(&emulator, 32, 0, "adds for its block", || {
        let block = block_number();
        let counter = counters + 4 * u64::from(if block == BUGGY { 5 } else { block });
        let add = |count| Some(count + 1);
        lane::atomic::<u32>(Space::Global, Scope::Block, counter, add); // adds for its block
    });
    let expected = (
        AccessKind::BlockAtomic,
        AccessKind::BlockAtomic,
        [5, 0, 0],
        [31, 0, 0],
    );
    assert_eq!(race(&kind), (expected, HERE.line("adds for its block")));
}

#[test]
fn bounds_only_reports_no_race_and_no_uninitialised_read() {
    let emulator = emulator(2, Checks::BoundsOnly, Schedule::InOrder);
    let data = emulator.allocate(400, 4).unwrap();
    run(&emulator, shape(GRID, 40), || {
        put(data, 1, 3);
        assert!(matches!(get(data, 1), 3) && get(data, 2) == 0);
        get_shared(lane::shared_static(1, 4, 4), 0);
    })
    .unwrap();
}

#[test]
fn a_fence_at_the_start_of_each_thread_hides_no_race() {
    for emulator in schedules() {
        let data = zeros(&emulator, GRID);
        for (second, expected) in [
            (AccessKind::Store, [AccessKind::Store; 2]),
            (AccessKind::Load, [AccessKind::Store, AccessKind::Load]),
        ] {
            let fault = run(&emulator, shape(GRID, 33), || {
                lane::fence(Scope::Device);
                let block = block_number();
                if thread_number() == 32 {
                    put(data, block, 1);
                }
                lane::sync_threads();
                if buggy(2) && second == AccessKind::Store {
                    put(data, 7, 1);
                } else if buggy(2) {
                    get(data, 7);
                }
            });
            let fault = fault.unwrap_err();
            let ((access_kind, other_access_kind, block, _), _) = race(&fault.kind);
            let mut blocks = [fault.block[0], block[0]];
            blocks.sort_unstable();
            assert_eq!(blocks, [7, BUGGY], "{fault}");
            assert!(
                expected.contains(&access_kind) && expected.contains(&other_access_kind),
                "{fault}"
            );
        }
    }
}
