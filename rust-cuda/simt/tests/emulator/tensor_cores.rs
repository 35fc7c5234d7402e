//! What matrix multiplications by a warp or a warpgroup need.

use crate::machine::planted::*;
use crate::machine::*;
use simt::*;

const HERE: Source = Source {
    file: file!(),
    text: include_str!("tensor_cores.rs"),
};

const HALVES: Product = Product {
    shape: [16, 8, 16],
    elements: ProductElements::F16,
};
const BRAINS: Product = Product {
    elements: ProductElements::Bf16,
    ..HALVES
};

#[test]
fn lanes_that_multiply_other_elements_do_not_meet() {
    let kind = HERE.planted(&strict(), 32, 31, "multiplies", || {
        let product = if buggy(9) { BRAINS } else { HALVES };
        lane::gather(product, [0; 3]); // multiplies
    });
    let text = kind.to_string();
    assert!(
        matches!(kind, FaultKind::LaneAbsent { lane: 9, .. }),
        "{text}"
    );
    for part in ["m16n8k16 of f16", "m16n8k16 of bf16"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn lanes_that_multiply_at_two_lines_do_not_meet() {
    let kind = HERE.planted(&strict(), 32, 31, "multiplies with the others", || {
        if buggy(9) {
            lane::gather(HALVES, [0; 3]); // multiplies apart
        } else {
            lane::gather(HALVES, [0; 3]); // multiplies with the others
        }
    });
    let FaultKind::LaneAbsent {
        lane: 9,
        other_state,
        ..
    } = kind
    else {
        panic!("{kind}")
    };
    assert_eq!(line_of(&other_state), HERE.line("multiplies apart"));
}

#[test]
fn a_warpgroup_is_four_whole_aligned_warps() {
    for emulator in variety() {
        run(&emulator, shape(3, 256), || {
            for _ in 0..3 {
                lane::join_warpgroup(HALVES);
            }
            if lane::warp_id() >= 4 {
                lane::join_warpgroup(BRAINS);
            }
        })
        .unwrap();
    }
    for (threads, thread) in [(64, 0), (127, 0), (160, 128)] {
        let kind = HERE.planted(&strict(), threads, thread, "joins in vain", || {
            if block_number() == BUGGY && lane::warp_id() >= thread / 32 {
                lane::join_warpgroup(HALVES); // joins in vain
            }
        });
        let expected =
            matches!(kind, FaultKind::NoWarpgroup { threads: found, .. } if found == threads);
        assert!(expected, "{kind}");
    }
}

#[test]
fn a_warpgroup_needs_all_its_warps() {
    let kind = HERE.planted(&strict(), 128, 0, "joins three warps", || {
        if block_number() != BUGGY || lane::warp_id() != 2 {
            lane::join_warpgroup(HALVES); // joins three warps
        }
    });
    let expected = FaultKind::WarpgroupThreadAbsent {
        operation: "a matrix multiplication by a warpgroup".into(),
        other: [64, 0, 0],
        other_state: ThreadState::Returned,
    };
    assert_eq!(kind, expected);

    let kind = HERE.planted(&strict(), 128, 100, "joins another product", || {
        if buggy(100) {
            lane::join_warpgroup(BRAINS); // joins another product
        } else {
            lane::join_warpgroup(HALVES);
        }
    });
    assert!(
        matches!(kind, FaultKind::WarpgroupThreadAbsent { .. }),
        "{kind}"
    );
}

/// Each thread writes a word, and reads one of another warp through the asynchronous proxy after a barrier. `first` and
/// `second` run before and after the barrier.
fn through_proxies(emulator: &Emulator, first: fn(), second: fn()) -> Result<Statistics, Fault> {
    run(emulator, shape(3, 128), || {
        let shared = lane::shared_static(1, 4 * 128, 4);
        for round in 0..3 {
            put_shared(shared, thread_number(), round); // writes for tensor cores
            first();
            lane::sync_threads();
            second();
            let other = shared + 4 * u64::from(thread_number() ^ 64);
            let [word] = lane::load_async_proxy::<u32, 1>(other); // reads as tensor cores
            assert_eq!(word, round);
            lane::sync_threads();
        }
    })
}

#[test]
fn tensor_cores_do_not_see_writes_without_a_proxy_fence() {
    let fence = lane::fence_proxy_async;
    for emulator in variety() {
        through_proxies(&emulator, fence, || {}).unwrap();
        through_proxies(&emulator, || {}, fence).unwrap();
        let full = emulator.options().checks == Checks::Full;
        for forgotten in [0, 2] {
            let result = match forgotten {
                0 => through_proxies(&emulator, || {}, || {}),
                // The fence comes before the write of the next round.
                _ => run(&emulator, shape(3, 128), || {
                    let shared = lane::shared_static(1, 4 * 128, 4);
                    lane::fence_proxy_async();
                    put_shared(shared, thread_number(), 1); // writes for tensor cores, late
                    lane::sync_threads();
                    let other = shared + 4 * u64::from(thread_number() ^ 64);
                    lane::load_async_proxy::<u32, 1>(other);
                }),
            };
            let Err(fault) = result else {
                assert!(!full);
                continue;
            };
            let FaultKind::Unpublished {
                other_location: Some(written),
                ..
            } = &*fault.kind
            else {
                panic!("{fault}")
            };
            let mark = if forgotten == 0 {
                "writes for tensor cores"
            } else {
                "writes for tensor cores, late"
            };
            assert_eq!(written.line, HERE.line(mark), "{fault}");
        }
    }
}

#[test]
fn a_proxy_fence_of_a_thread_does_not_publish_what_another_wrote() {
    let kind = HERE.planted(&strict(), 64, 0, "reads a neighbour's word", || {
        let shared = lane::shared_static(1, 4 * 64, 4);
        put_shared(shared, thread_number(), 1); // writes and forgets
        if !buggy(33) {
            lane::fence_proxy_async();
        }
        lane::sync_threads();
        if thread_number() == 0 {
            lane::load_async_proxy::<u32, 1>(shared + 4 * 33); // reads a neighbour's word
        }
    });
    // A warp barrier with the thread that fences comes first.
    run(&strict(), shape(GRID, 64), || {
        let shared = lane::shared_static(1, 4 * 64, 4);
        if thread_number() == 33 {
            put_shared(shared, 33, 1);
        }
        if matches!(thread_number(), 33 | 34) {
            lane::sync_warp(0b110);
        }
        if thread_number() == 34 {
            lane::fence_proxy_async();
        }
        lane::sync_threads();
        lane::load_async_proxy::<u32, 1>(shared + 4 * 33);
    })
    .unwrap();
    assert!(
        matches!(
            kind,
            FaultKind::Unpublished {
                other_thread: [33, 0, 0],
                ..
            }
        ),
        "{kind}"
    );
}
