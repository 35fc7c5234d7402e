//! Launches that are refused or fail, and the state of the emulator after them.

use crate::machine::planted::*;
use crate::machine::*;
use simt::*;

const HERE: Source = Source {
    file: file!(),
    text: include_str!("launches.rs"),
};

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
                HERE.line("launched here")
            )),
            "{text}"
        );
        assert!(text.ends_with(expected), "{text}");
    }
}

#[test]
fn too_much_static_shared_memory_is_refused() {
    let emulator = strict();
    let kind = HERE.planted(&emulator, 4, 1, "declares too much", || {
        lane::shared_static(1, 40 << 10, 16);
        if buggy(1) {
            lane::shared_static(2, 9 << 10, 16); // declares too much
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
    let kind = HERE.planted(&emulator, 40, 38, "asserts", || {
        let number = if buggy(38) { 40 } else { thread_number() };
        assert!(number < 40, "row {number} of 40"); // asserts
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
        let mut fault = run(&emulator, shape(GRID, 64), || put(data, 0, 1)).unwrap_err();
        // Each emulator has addresses of its own.
        if let FaultKind::Race { address, .. } = &mut *fault.kind {
            *address -= data;
        }
        fault
    };
    assert_eq!(found(3), found(3));
    assert!((0..8).any(|seed| found(seed) != found(3)));
}

#[test]
#[should_panic(expected = "only by a kernel that an emulator has launched")]
fn lane_functions_outside_of_a_launch_panic() {
    lane::thread_idx();
}

#[test]
fn a_panic_within_an_atomic_operation_leaves_the_word_usable() {
    let emulator = strict();
    let word = zeros(&emulator, 1);
    let add = |limit: u32| {
        move || {
            lane::atomic::<u32>(Space::Global, Scope::Device, word, |count| {
                assert!(count < limit, "{count} are too many");
                Some(count + 1)
            });
        }
    };
    let fault = run(&emulator, shape(GRID, 10), add(432)).unwrap_err();
    assert_eq!(
        (fault.block, fault.thread),
        ([43, 0, 0], [2, 0, 0]),
        "{fault}"
    );
    run(&emulator, shape(GRID, 10), add(1000)).unwrap();
    assert_eq!(download(&emulator, word, 1), [932]);
}
