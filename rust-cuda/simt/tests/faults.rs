//! Planted bugs, and the reports they must lead to: kernel, block, thread and line.

mod machine;

use machine::{
    block_number, download, emulator, get, get_shared, put, put_shared, run, shape, strict,
    thread_number, words, zeros,
};
use simt::{
    Checks, Elsewhere, Emulator, Fault, FaultKind, Launch, Reduce, Schedule, Scope, Space, Touch,
    lane,
};

const FULL: u32 = u32::MAX;
/// Blocks of every launch here, and the one that has the bug.
const GRID: u32 = 50;
const BUGGY: u32 = 43;

/// Runs a kernel whose bug is in block `BUGGY` and thread `thread`, at line `line`; the kind of the fault.
#[track_caller]
fn planted(
    emulator: &Emulator,
    threads: u32,
    thread: u32,
    line: u32,
    kernel: impl Fn() + Sync,
) -> FaultKind {
    let fault = run(emulator, shape(GRID, threads), kernel).unwrap_err();
    assert_eq!(fault.kernel, "tested");
    assert_eq!(fault.block, [BUGGY, 0, 0], "{fault}");
    assert_eq!(fault.thread, [thread, 0, 0], "{fault}");
    assert_eq!(
        (&*fault.location.file, fault.location.line),
        (file!(), line),
        "{fault}"
    );
    let text = fault.to_string();
    let place = format!(
        "kernel `tested`, block (43, 0, 0), thread ({thread}, 0, 0), at {}:{line}:",
        file!()
    );
    assert!(text.starts_with(&place), "{text}");
    *fault.kind
}

/// The line of this file that ends with the comment `mark`.
#[track_caller]
fn line(mark: &str) -> u32 {
    let mark = format!("// {mark}");
    let lines = include_str!("faults.rs").lines();
    let found = lines.zip(1..).find(|(line, _)| line.ends_with(&mark));
    found
        .unwrap_or_else(|| panic!("no line ends with {mark}"))
        .1
}

fn buggy(thread: u32) -> bool {
    block_number() == BUGGY && thread_number() == thread
}

/// The line of `location` in this file.
#[track_caller]
fn line_of(elsewhere: &Elsewhere) -> u32 {
    match elsewhere {
        Elsewhere::AtBarrier(location) | Elsewhere::AtWarpOperation { location, .. } => {
            location.line
        }
        other => panic!("no line in {other:?}"),
    }
}

#[test]
fn an_access_past_the_end_names_allocation_offset_and_size() {
    for checks in [Checks::Full, Checks::BoundsOnly] {
        let emulator = emulator(1, checks, Schedule::InOrder);
        let data = zeros(&emulator, 100);
        for index in [100, 1 << 20] {
            let kind = planted(&emulator, 40, 17, line("bug 1"), || {
                if buggy(17) {
                    get(data, index); // bug 1
                }
            });
            let expected = FaultKind::OutOfBounds {
                space: Space::Global,
                address: data + 4 * u64::from(index),
                access: 4,
                offset: 4 * i64::from(index),
                size: 400,
            };
            assert_eq!(kind, expected);
        }
    }
}

#[test]
fn an_access_in_front_of_an_allocation_is_told_from_its_start() {
    let emulator = strict();
    let before = zeros(&emulator, 1);
    let data = zeros(&emulator, 100);
    let kind = planted(&emulator, 40, 3, line("bug 2"), || {
        if buggy(3) {
            lane::store::<u64, 1>(Space::Global, data - 8, [1]); // bug 2
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::OutOfBounds {
                offset: -8,
                size: 400,
                access: 8,
                ..
            }
        ),
        "{kind}"
    );
    assert_eq!(download(&emulator, before, 1), [0]);
}

#[test]
fn a_vector_access_that_sticks_out_is_out_of_bounds() {
    let emulator = strict();
    let data = zeros(&emulator, 6);
    let kind = planted(&emulator, 40, 39, line("bug 3"), || {
        if buggy(39) {
            lane::load::<u32, 4>(Space::GlobalReadOnly, data + 16); // bug 3
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::OutOfBounds {
                offset: 16,
                size: 24,
                access: 16,
                ..
            }
        ),
        "{kind}"
    );
}

#[test]
fn unknown_and_freed_addresses_are_told_apart() {
    let emulator = strict();
    let freed = zeros(&emulator, 10);
    emulator.free(freed).unwrap();
    zeros(&emulator, 10);
    let kind = planted(&emulator, 40, 0, line("bug 4"), || {
        if buggy(0) {
            get(freed, 2); // bug 4
        }
    });
    assert!(matches!(kind, FaultKind::Freed { offset: 8, .. }), "{kind}");
    for address in [0, 64, u64::MAX - 3] {
        let kind = planted(&emulator, 40, 0, line("bug 5"), || {
            if buggy(0) {
                lane::atomic::<u32>(Space::Global, Scope::Device, address, |_| None); // bug 5
            }
        });
        assert!(
            matches!(kind, FaultKind::UnknownAddress { access: 4, .. }),
            "{kind}"
        );
    }
}

#[test]
fn misaligned_accesses_are_found_in_both_memories() {
    let emulator = strict();
    let data = zeros(&emulator, 100);
    let kind = planted(&emulator, 40, 5, line("bug 6"), || {
        if buggy(5) {
            lane::load::<u32, 2>(Space::Global, data + 4); // bug 6
        }
    });
    assert!(
        matches!(kind, FaultKind::Misaligned { access: 8, .. }),
        "{kind}"
    );
    let kind = planted(&emulator, 40, 5, line("bug 7"), || {
        let shared = lane::shared_static(1, 8, 8);
        if buggy(5) {
            lane::store::<u16, 1>(Space::Shared, shared + 1, [1]); // bug 7
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::Misaligned {
                access: 2,
                space: Space::Shared,
                ..
            }
        ),
        "{kind}"
    );
}

#[test]
fn shared_accesses_outside_the_window_are_out_of_bounds() {
    for checks in [Checks::Full, Checks::BoundsOnly] {
        let emulator = emulator(1, checks, Schedule::InOrder);
        for (distance, offset) in [(64, 64), (-4, -4), (-1024, -1024)] {
            let kind = planted(&emulator, 40, 5, line("bug 8"), || {
                let shared = lane::shared_static(1, 64, 4);
                if buggy(5) {
                    lane::store::<u32, 1>(Space::Shared, shared.wrapping_add_signed(distance), [1]); // bug 8
                }
            });
            assert!(
                matches!(kind, FaultKind::OutOfBounds { space: Space::Shared, size: 64, offset: found, .. } if found == offset),
                "{kind}"
            );
        }
    }
}

#[test]
fn a_word_read_as_read_only_and_written_is_reported_in_either_order() {
    let emulator = strict();
    let data = zeros(&emulator, GRID * 40);
    let own = || block_number() * 40 + thread_number();
    let kind = planted(&emulator, 40, 31, line("bug 9"), || {
        lane::load::<u32, 1>(Space::GlobalReadOnly, data + 4 * u64::from(own()));
        if buggy(31) {
            put(data, own(), 1); // bug 9
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::ReadOnlyWritten {
                touch: Touch::Store,
                size: 8000,
                ..
            }
        ),
        "{kind}"
    );
    let kind = planted(&emulator, 40, 31, line("bug 10"), || {
        put(data, own(), 1);
        if buggy(31) {
            lane::load::<u32, 1>(Space::GlobalReadOnly, data + 4 * u64::from(own())); // bug 10
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::ReadOnlyWritten {
                touch: Touch::Load,
                ..
            }
        ),
        "{kind}"
    );
}

#[test]
fn what_one_launch_wrote_the_next_may_read_as_read_only() {
    let emulator = strict();
    let data = zeros(&emulator, GRID * 40);
    let own = || block_number() * 40 + thread_number();
    for _ in 0..3 {
        run(&emulator, shape(GRID, 40), || put(data, own(), own())).unwrap();
        let read = words(&emulator, shape(GRID, 40), || {
            lane::load::<u32, 1>(Space::GlobalReadOnly, data + 4 * u64::from(own() ^ 1))[0]
        });
        assert!(read.into_iter().eq((0..GRID * 40).map(|own| own ^ 1)));
    }
}

#[test]
fn reads_of_memory_never_written_are_found() {
    let emulator = strict();
    let data = emulator.allocate(400, 4).unwrap();
    emulator.zero(data, 396).unwrap();
    for space in [Space::Global, Space::GlobalReadOnly] {
        let kind = planted(&emulator, 40, 9, line("bug 11"), || {
            lane::load::<u32, 2>(space, data + 8);
            if buggy(9) {
                lane::load::<u32, 4>(space, data + 384); // bug 11
            }
        });
        assert!(
            matches!(
                kind,
                FaultKind::Uninitialised {
                    offset: 384,
                    access: 16,
                    size: 400,
                    ..
                }
            ),
            "{kind}"
        );
    }
    // Every earlier block has written all of its shared memory.
    let kind = planted(&emulator, 40, 9, line("bug 12"), || {
        let shared = lane::shared_static(1, 160, 4);
        if !buggy(38) {
            put_shared(shared, thread_number(), 1);
        }
        lane::sync_threads();
        if thread_number() == 9 {
            get_shared(shared, 38); // bug 12
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::Uninitialised {
                space: Space::Shared,
                offset: 152,
                ..
            }
        ),
        "{kind}"
    );
}

#[test]
fn a_barrier_that_a_thread_has_returned_from_names_both() {
    for late in [0, 39] {
        let waiting = if late == 0 { 1 } else { 0 };
        let kind = planted(
            &strict(),
            40,
            waiting,
            line("waits for one that returned"),
            || {
                if !buggy(late) {
                    lane::sync_threads(); // waits for one that returned
                }
            },
        );
        let expected = FaultKind::Barrier {
            other: [late, 0, 0],
            elsewhere: Elsewhere::Returned,
        };
        assert_eq!(kind, expected);
    }
}

#[test]
fn barriers_of_different_lines_do_not_meet() {
    let kind = planted(&strict(), 40, 20, line("the other barrier"), || {
        if buggy(20) {
            lane::sync_threads(); // the other barrier
        } else {
            lane::sync_threads(); // the usual barrier
        }
    });
    let FaultKind::Barrier { other, elsewhere } = kind else {
        panic!("{kind}")
    };
    assert_eq!(
        (other, line_of(&elsewhere)),
        ([0, 0, 0], line("the usual barrier"))
    );
}

#[test]
fn a_barrier_and_a_warp_operation_that_wait_for_each_other_are_found() {
    let kind = planted(&strict(), 40, 0, line("waits for a voter"), || {
        if buggy(7) {
            lane::ballot(FULL, true); // votes alone
        }
        lane::sync_threads(); // waits for a voter
    });
    let FaultKind::Barrier { other, elsewhere } = kind else {
        panic!("{kind}")
    };
    assert_eq!(
        (other, line_of(&elsewhere)),
        ([7, 0, 0], line("votes alone"))
    );
}

#[test]
fn masks_that_do_not_fit_are_found() {
    let emulator = strict();
    let kind = planted(&emulator, 40, 6, line("bug 14"), || {
        if buggy(6) {
            lane::shuffle_up(0b1_0011_1111, 0, 1, 32); // bug 14
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::MaskWithoutCaller {
                mask: 0b1_0011_1111,
                lane: 6,
                ..
            }
        ),
        "{kind}"
    );

    let kind = planted(&emulator, 40, 33, line("bug 15"), || {
        if buggy(33) {
            lane::sync_warp(FULL); // bug 15
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::MaskBeyondWarp {
                lane: 8,
                lanes: 8,
                ..
            }
        ),
        "{kind}"
    );

    // The lane has returned: before the operation, and while the others wait.
    for absent in [3, 31] {
        let waiting = if absent == 3 { 4 } else { 0 };
        let first = if absent == 3 { 0 } else { waiting };
        let kind = planted(&emulator, 64, first, line("bug 16"), || {
            if !buggy(absent) {
                lane::reduce(FULL, 1, Reduce::Add); // bug 16
            }
        });
        assert!(
            matches!(kind, FaultKind::LaneAbsent { lane, elsewhere: Elsewhere::Returned, .. } if lane == absent),
            "{kind}"
        );
    }
}

#[test]
fn lanes_that_wait_at_different_operations_are_found() {
    let kind = planted(&strict(), 32, 0, line("shuffles without one"), || {
        if buggy(30) {
            lane::match_any(FULL, 1); // matches alone
        } else {
            lane::shuffle_idx(FULL, 1, 0, 32); // shuffles without one
        }
    });
    let FaultKind::LaneAbsent {
        lane, elsewhere, ..
    } = kind
    else {
        panic!("{kind}")
    };
    assert_eq!((lane, line_of(&elsewhere)), (30, line("matches alone")));
}

#[test]
fn the_same_operation_with_different_masks_does_not_meet() {
    let kind = planted(&strict(), 3, 0, line("votes with two masks"), || {
        let mask = if buggy(1) { 0b011 } else { 0b111 };
        lane::ballot(mask, true); // votes with two masks
    });
    assert!(
        matches!(
            kind,
            FaultKind::LaneAbsent {
                lane: 1,
                mask: 0b111,
                ..
            }
        ),
        "{kind}"
    );
}

/// The two accesses of a race, the place of the earlier one, and its line.
#[track_caller]
fn race(kind: &FaultKind) -> ((Touch, Touch, [u32; 3], [u32; 3]), u32) {
    match kind {
        FaultKind::Race {
            touch,
            other_touch,
            other_block,
            other_thread,
            other_location: Some(location),
            ..
        } => (
            (*touch, *other_touch, *other_block, *other_thread),
            location.line,
        ),
        other => panic!("no race: {other}"),
    }
}

#[test]
fn a_forgotten_barrier_is_a_race_in_shared_memory() {
    let kind = planted(&strict(), 64, 32, line("reads too early"), || {
        let shared = lane::shared_static(1, 256, 4);
        put_shared(shared, thread_number(), 1); // writes just before
        if block_number() != BUGGY {
            lane::sync_threads();
        }
        let other = thread_number() % 32;
        get_shared(shared, other); // reads too early
    });
    let expected = (Touch::Load, Touch::Store, [BUGGY, 0, 0], [0; 3]);
    assert_eq!(race(&kind), (expected, line("writes just before")));
}

#[test]
fn a_write_after_reads_of_several_warps_is_a_race() {
    let kind = planted(&strict(), 96, 37, line("writes what was read"), || {
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
    // The last warp passes the barrier first.
    let expected = (Touch::Store, Touch::Load, [BUGGY, 0, 0], [64, 0, 0]);
    assert_eq!(race(&kind), (expected, line("reads what will be written")));
}

#[test]
fn lanes_of_a_warp_race_without_a_warp_barrier() {
    let kind = planted(&strict(), 32, 1, line("reads across lanes"), || {
        let shared = lane::shared_static(1, 128, 4);
        put_shared(shared, lane::lane_id(), 1); // writes its word
        // A shuffle is no barrier for memory.
        lane::shuffle_idx(FULL, 1, 0, 32);
        if buggy(1) {
            get_shared(shared, 0); // reads across lanes
        }
    });
    let expected = (Touch::Load, Touch::Store, [BUGGY, 0, 0], [0; 3]);
    assert_eq!(race(&kind), (expected, line("writes its word")));
}

#[test]
fn a_warp_barrier_orders_only_the_lanes_it_names() {
    let kind = planted(&strict(), 32, 2, line("reads across halves"), || {
        let shared = lane::shared_static(1, 128, 4);
        let lane = lane::lane_id();
        put_shared(shared, lane, 1); // writes its word of a half
        lane::sync_warp(if lane < 16 { 0xffff } else { 0xffff_0000 });
        get_shared(shared, lane ^ 1);
        // All have written by now, but nothing orders memory.
        lane::ballot(FULL, true);
        if buggy(2) {
            get_shared(shared, 16); // reads across halves
        }
    });
    let expected = (Touch::Load, Touch::Store, [BUGGY, 0, 0], [16, 0, 0]);
    assert_eq!(race(&kind), (expected, line("writes its word of a half")));
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
        let ((touch, other_touch, block, thread), line_of_other) = race(&fault.kind);
        let mut blocks = [fault.block[0], block[0]];
        blocks.sort_unstable();
        assert_eq!(
            (touch, other_touch, thread),
            (Touch::Store, Touch::Store, [0; 3])
        );
        assert_eq!(blocks, [7, BUGGY], "{fault}");
        assert_eq!(
            [fault.location.line, line_of_other],
            [line("writes its block's word"); 2]
        );
    }
}

#[test]
fn a_plain_read_of_what_other_blocks_add_to_is_a_race() {
    let emulator = strict();
    let counter = zeros(&emulator, 1);
    let kind = planted(&emulator, 32, 0, line("reads a counter"), || {
        if buggy(0) {
            get(counter, 0); // reads a counter
        }
        let add = |count| Some(count + 1);
        lane::atomic::<u32>(Space::Global, Scope::Device, counter, add); // adds
    });
    let expected = (Touch::Load, Touch::Atomic, [BUGGY - 1, 0, 0], [31, 0, 0]);
    assert_eq!(race(&kind), (expected, line("adds")));
}

#[test]
fn an_atomic_of_block_scope_does_not_reach_other_blocks() {
    let emulator = strict();
    let counters = zeros(&emulator, GRID);
    let kind = planted(&emulator, 32, 0, line("adds for its block"), || {
        let block = block_number();
        let counter = counters + 4 * u64::from(if block == BUGGY { 5 } else { block });
        let add = |count| Some(count + 1);
        lane::atomic::<u32>(Space::Global, Scope::Block, counter, add); // adds for its block
    });
    let expected = (
        Touch::BlockAtomic,
        Touch::BlockAtomic,
        [5, 0, 0],
        [31, 0, 0],
    );
    assert_eq!(race(&kind), (expected, line("adds for its block")));
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
fn launches_over_the_limits_are_refused_with_what_is_allowed() {
    let emulator = strict();
    let most = Launch {
        kernel: "limits",
        grid: [1; 3],
        block: [1; 3],
        shared_bytes: 0,
    };
    let cases = [
        (
            Launch {
                block: [1024, 2, 1],
                ..most
            },
            "number of threads of a block is 2048, allowed are 1 to 1024",
        ),
        (
            Launch {
                block: [1025, 1, 1],
                ..most
            },
            "block's size along x is 1025, allowed are 1 to 1024",
        ),
        (
            Launch {
                block: [1, 1, 65],
                ..most
            },
            "block's size along z is 65, allowed are 1 to 64",
        ),
        (
            Launch {
                block: [32, 0, 1],
                ..most
            },
            "block's size along y is 0, allowed are 1 to 1024",
        ),
        (
            Launch {
                grid: [1 << 31, 1, 1],
                ..most
            },
            "grid's size along x is 2147483648, allowed are 1 to 2147483647",
        ),
        (
            Launch {
                grid: [1, 65536, 1],
                ..most
            },
            "grid's size along y is 65536, allowed are 1 to 65535",
        ),
        (
            Launch {
                grid: [1, 1, 0],
                ..most
            },
            "grid's size along z is 0, allowed are 1 to 65535",
        ),
        (
            Launch {
                shared_bytes: 232_449,
                ..most
            },
            "shared memory in bytes is 232449, allowed are 0 to 232448",
        ),
    ];
    for (launch, expected) in cases {
        let result = emulator.launch(launch, &|| panic!("must not run")); // launched here
        let fault = result.unwrap_err();
        let text = fault.to_string();
        assert!(
            text.starts_with(&format!(
                "kernel `limits` launched at {}:{}:",
                file!(),
                line("launched here")
            )),
            "{text}"
        );
        assert!(text.ends_with(expected), "{text}");
    }
}

#[test]
fn too_much_static_shared_memory_is_refused() {
    let emulator = strict();
    let kind = planted(&emulator, 4, 1, line("bug 18"), || {
        lane::shared_static(1, 40 << 10, 16);
        if buggy(1) {
            lane::shared_static(2, 9 << 10, 16); // bug 18
        }
    });
    assert!(
        matches!(
            kind,
            FaultKind::SharedLimit {
                found: 50176,
                most: 49152,
                ..
            }
        ),
        "{kind}"
    );
    let launch = Launch {
        shared_bytes: 200 << 10,
        ..shape(2, 4)
    };
    let fault = run(&emulator, launch, || {
        lane::shared_static(1, 30 << 10, 16);
    });
    assert!(matches!(
        *fault.unwrap_err().kind,
        FaultKind::SharedLimit {
            found: 235_520,
            most: 232_448,
            ..
        }
    ));
}

#[test]
fn a_panic_of_the_kernel_comes_with_its_message_and_line() {
    let emulator = strict();
    let kind = planted(&emulator, 40, 38, line("bug 19"), || {
        let number = if buggy(38) { 40 } else { thread_number() };
        assert!(number < 40, "row {number} of 40"); // bug 19
        lane::sync_threads();
    });
    assert_eq!(
        kind,
        FaultKind::Panic {
            message: "row 40 of 40".to_owned()
        }
    );
}

#[test]
fn after_a_fault_all_threads_are_unwound_and_the_emulator_goes_on() {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    struct Alive<'a>(&'a AtomicU32);
    impl Drop for Alive<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Relaxed);
        }
    }
    for workers in [1, 4] {
        let emulator = emulator(workers, Checks::Full, Schedule::InOrder);
        let (alive, begun) = (AtomicU32::new(0), AtomicU32::new(0));
        for _ in 0..20 {
            let fault = run(&emulator, shape(100_000, 100), || {
                alive.fetch_add(1, Relaxed);
                let _alive = Alive(&alive);
                begun.fetch_max(block_number(), Relaxed);
                lane::sync_threads();
                if buggy(99) {
                    get(0, 0);
                }
                lane::sync_threads();
            });
            assert_eq!(fault.unwrap_err().block, [BUGGY, 0, 0]);
            assert_eq!(alive.load(Relaxed), 0);
        }
        assert!(begun.load(Relaxed) < 99_999, "the other blocks went on");
        assert_eq!(
            words(&emulator, shape(2, 3), thread_number),
            [0, 1, 2, 0, 1, 2]
        );
    }
}

#[test]
fn a_seed_determines_the_fault() {
    let found = |seed| -> Fault {
        let emulator = emulator(1, Checks::Full, Schedule::Random { seed });
        let data = zeros(&emulator, 1);
        run(&emulator, shape(GRID, 64), || put(data, 0, 1)).unwrap_err()
    };
    assert_eq!(found(3), found(3));
    assert!((0..8).any(|seed| found(seed) != found(3)));
}

#[test]
#[should_panic(expected = "only by a kernel that an emulator has launched")]
fn lane_functions_outside_of_a_launch_panic() {
    lane::thread_idx();
}
