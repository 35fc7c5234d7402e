//! Asynchronous copies: what may happen to their destination while they are in flight.

use crate::machine::planted::*;
use crate::machine::*;
use simt::*;

const HERE: Source = Source {
    file: file!(),
    text: include_str!("copies.rs"),
};

/// The kinds of faults that mistakes with copies make, on each schedule, at the line of `mark`.
fn on_each_schedule(mark: &str, kernel: impl Fn(u64) + Sync) -> Vec<FaultKind> {
    let found = schedules().map(|emulator| {
        let data = zeros(&emulator, 64);
        let fault = run(&emulator, shape(3, 64), || kernel(data)).unwrap_err();
        assert_eq!(fault.location.line, HERE.line(mark), "{fault}");
        *fault.kind
    });
    found.collect()
}

#[test]
fn a_copy_that_nobody_waits_for_is_reported_where_it_starts() {
    for is_committed in [false, true] {
        let kinds = on_each_schedule("starts and forgets", |data| {
            let shared = lane::shared_static(1, 256, 16);
            let own = 4 * u64::from(thread_number());
            lane::copy_async(shared + own, data + own, 4, 4); // starts and forgets
            if is_committed {
                lane::commit_async();
                lane::wait_async(1);
            }
        });
        for kind in kinds {
            assert!(
                matches!(kind, FaultKind::CopyNeverAwaited { bytes: 4, .. }),
                "{kind}"
            );
        }
    }
}

#[test]
fn a_store_to_the_destination_of_a_copy_in_flight_is_reported() {
    for (writer, has_barrier) in [(7, false), (7, true), (40, true)] {
        let kinds = on_each_schedule("overwrites what arrives", |data| {
            let shared = lane::shared_static(1, 256, 16);
            if thread_number() == 7 {
                lane::copy_async(shared + 16, data, 16, 16); // starts the copy
                lane::commit_async();
            }
            if has_barrier {
                lane::sync_threads();
            }
            if thread_number() == writer {
                put_shared(shared, 6, 1); // overwrites what arrives
            }
            if has_barrier {
                lane::sync_threads();
            }
            lane::wait_async(0);
        });
        for kind in kinds {
            let FaultKind::CopyInFlight {
                access_kind,
                other_thread,
                other_location,
                ..
            } = kind
            else {
                panic!("{kind}")
            };
            assert_eq!((access_kind, other_thread), (AccessKind::Store, [7, 0, 0]));
            assert_eq!(other_location.line, HERE.line("starts the copy"));
        }
    }
}

#[test]
fn a_load_or_a_second_copy_before_the_wait_is_reported() {
    for loads in [false, true] {
        let mark = if loads {
            "loads what arrives"
        } else {
            "copies there again"
        };
        let kinds = on_each_schedule(mark, |data| {
            let shared = lane::shared_static(1, 256, 16);
            let own = shared + 4 * u64::from(thread_number());
            lane::store(Space::Shared, own, [1_u32]);
            lane::copy_async(own, data, 4, 4);
            lane::commit_async();
            if loads {
                lane::load::<u32, 1>(Space::Shared, own); // loads what arrives
            } else {
                lane::copy_async(own, data, 4, 4); // copies there again
            }
            lane::wait_async(0);
        });
        for kind in kinds {
            assert!(
                matches!(kind, FaultKind::CopyInFlight { access: 4, .. }),
                "{kind}"
            );
        }
    }
}

#[test]
fn copies_that_are_waited_for_have_no_fault_on_any_schedule() {
    for emulator in schedules() {
        let data = upload(&emulator, &(0..64).collect::<Vec<_>>());
        let found = words(&emulator, shape(3, 64), || {
            let shared = lane::shared_static(1, 512, 16);
            let thread = thread_number();
            let own = 4 * u64::from(thread);
            for stage in [0, 256] {
                lane::copy_async(shared + stage + own, data + own, 4, 4);
                lane::commit_async();
            }
            lane::wait_async(1);
            lane::sync_threads();
            let other = get_shared(shared, 63 - thread);
            lane::sync_threads();
            put_shared(shared, thread, 9);
            lane::wait_async(0);
            // A group without copies need not be waited for.
            lane::commit_async();
            other + get_shared(shared, 64 + thread)
        });
        assert_eq!(found, [63; 3 * 64]);
    }
}
