//! Kernels that never end, and destructors of threads that a fault has stopped.

use crate::machine::planted::*;
use crate::machine::*;
use simt::*;
use std::num::{NonZeroU64, NonZeroUsize};

const HERE: Source = Source {
    file: file!(),
    text: include_str!("endless.rs"),
};

fn budget(steps: u64) -> Emulator {
    Emulator::new(
        Options::new()
            .workers(NonZeroUsize::new(1))
            .max_steps(NonZeroU64::new(steps)),
    )
}

/// Loads a word atomically.
#[track_caller]
fn poll(word: u64) -> u32 {
    lane::atomic::<u32>(Space::Global, Scope::Device, word, |_| None)
}

#[track_caller]
fn add(word: u64) -> u32 {
    lane::atomic::<u32>(Space::Global, Scope::Device, word, |count| Some(count + 1))
}

#[test]
fn a_loop_of_loads_that_never_ends_exceeds_the_steps_of_its_block() {
    let emulator = budget(10_000);
    let data = zeros(&emulator, GRID);
    let kind = HERE.planted(&emulator, 40, 5, "waits by plain loads", || {
        while buggy(5) && get(data, BUGGY) == 0 {} // waits by plain loads
    });
    assert_eq!(kind, FaultKind::TooManySteps { steps: 10_000 });
}

#[test]
fn a_loop_of_warp_operations_that_never_ends_exceeds_the_steps_of_its_block() {
    let kind = HERE.planted(&budget(10_000), 32, 31, "votes for ever", || {
        while lane::any(FULL, buggy(3)) {} // votes for ever
    });
    assert_eq!(kind, FaultKind::TooManySteps { steps: 10_000 });
}

#[test]
fn each_block_may_take_all_the_steps() {
    let emulator = budget(10_000);
    let data = zeros(&emulator, 1);
    run(&emulator, shape(20, 10), || {
        for _ in 0..1000 {
            get(data, 0);
        }
    })
    .unwrap();
}

/// A barrier of the whole grid, of which each block has `threads`.
fn grid_barrier(emulator: &Emulator, blocks: u32, threads: u32) -> Result<Statistics, Fault> {
    let arrived = zeros(emulator, 1);
    run(emulator, shape(blocks, threads), || {
        lane::sync_threads();
        if thread_number() == 0 {
            add(arrived);
            while poll(arrived) < blocks {} // waits for all blocks
        }
        lane::sync_threads();
    })
}

#[test]
fn a_barrier_of_more_blocks_than_run_at_the_same_time_is_reported() {
    for (workers, most) in [(1, 16), (3, 48)] {
        for schedule in [Schedule::InOrder, Schedule::Random { seed: 5 }] {
            let emulator = emulator(workers, Checks::Full, schedule);
            grid_barrier(&emulator, most, 64).unwrap();
            let fault = grid_barrier(&emulator, 50, 64).unwrap_err();
            assert_eq!(
                fault.location.line,
                HERE.line("waits for all blocks"),
                "{fault}"
            );
            let numbers = match *fault.kind {
                FaultKind::NothingChanges {
                    waiting,
                    not_started,
                    most,
                    ..
                } => (waiting, not_started, most),
                _ => panic!("{fault}"),
            };
            let most = u64::from(most);
            assert_eq!(numbers, (most, 50 - most, most), "{fault}");
        }
    }
}

#[test]
fn a_flag_that_nobody_sets_is_reported() {
    for workers in [1, 3] {
        let emulator = emulator(workers, Checks::BoundsOnly, Schedule::InOrder);
        let flag = zeros(&emulator, 1);
        let fault = run(&emulator, shape(GRID, 40), || {
            if buggy(39) {
                while poll(flag) == 0 {} // waits for nobody
            }
        });
        let fault = fault.unwrap_err();
        assert_eq!(
            (fault.block, fault.thread),
            ([BUGGY, 0, 0], [39, 0, 0]),
            "{fault}"
        );
        assert_eq!(fault.location.line, HERE.line("waits for nobody"));
        assert!(
            matches!(
                *fault.kind,
                FaultKind::NothingChanges {
                    waiting: 1,
                    not_started: 0,
                    ..
                }
            ),
            "{fault}"
        );
    }
}

#[test]
fn a_block_that_waits_long_for_a_busy_one_is_no_fault() {
    for workers in [1, 2] {
        let emulator = emulator(workers, Checks::Full, Schedule::InOrder);
        let words = zeros(&emulator, 3);
        run(&emulator, shape(2, 1), || {
            if block_number() == 0 {
                while poll(words) == 0 {}
                return;
            }
            // Atomic loads that are no wait: of many words, or with work in between.
            for i in 0..20_000_u32 {
                poll(words + 4 + 4 * u64::from(i % 2));
            }
            for _ in 0..20_000 {
                poll(words + 4);
                get(words, 1);
            }
            add(words);
        })
        .unwrap();
    }
}

/// Uses all kinds of operations when it is dropped.
struct UsesAll {
    data: u64,
}

impl Drop for UsesAll {
    fn drop(&mut self) {
        lane::sync_threads();
        lane::shuffle_idx(FULL, 1, 0, 32);
        lane::ballot(FULL, true);
        let shared = lane::shared_static(1, 128, 4);
        get_shared(shared, lane::lane_id());
        put_shared(shared, 0, 1);
        get(self.data, 1 << 20);
        put(self.data, 1 << 20, 1);
        add(0);
        lane::copy_async(shared, 0, 4, 4);
        lane::wait_async(0);
    }
}

#[test]
fn a_destructor_may_wait_when_another_thread_has_a_fault() {
    let emulator = strict();
    let data = zeros(&emulator, 100);
    let kind = HERE.planted(&emulator, 64, 63, "reads too far", || {
        let _late = (block_number() == BUGGY).then(|| UsesAll { data });
        lane::sync_threads();
        if buggy(63) {
            get(data, 100); // reads too far
        }
        lane::sync_threads();
    });
    assert!(matches!(kind, FaultKind::OutOfBounds { .. }), "{kind}");
}

#[test]
fn a_destructor_may_wait_when_the_kernel_panics() {
    let emulator = strict();
    let data = zeros(&emulator, 100);
    let kind = HERE.planted(&emulator, 64, 7, "panics", || {
        let _late = (block_number() == BUGGY).then(|| UsesAll { data });
        lane::sync_threads();
        assert!(!buggy(7), "planted"); // panics
        lane::sync_threads();
    });
    assert!(matches!(kind, FaultKind::Panic { .. }), "{kind}");
    assert_eq!(words(&emulator, shape(2, 2), thread_number), [0, 1, 0, 1]);
}

#[test]
fn a_destructor_waits_for_other_threads_when_the_kernel_returns() {
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            put_shared(lane::shared_static(1, 256, 4), thread_number(), 1);
            lane::sync_threads();
            get_shared(lane::shared_static(1, 256, 4), 63 - thread_number());
        }
    }
    run(&strict(), shape(3, 64), || drop(Waits)).unwrap();
}
