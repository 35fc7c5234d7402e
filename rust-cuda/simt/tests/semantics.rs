//! What correct kernels compute, on every schedule.

mod machine;

use machine::{
    block_number, download, get, get_shared, put, put_shared, run, shape, strict, thread_number,
    upload, variety, words, zeros,
};
use simt::{Launch, Reduce, Scope, Space, lane};

const FULL: u32 = u32::MAX;

#[test]
fn indices_count_every_thread_of_a_three_dimensional_grid_once() {
    let launch = Launch {
        kernel: "indices",
        grid: [3, 2, 2],
        block: [5, 3, 4],
        shared_bytes: 0,
    };
    for emulator in variety() {
        let found = words(&emulator, launch, || {
            assert_eq!(
                (lane::grid_dim(), lane::block_dim()),
                ([3, 2, 2], [5, 3, 4])
            );
            assert_eq!(lane::warp_id() * 32 + lane::lane_id(), thread_number());
            block_number() * 60 + thread_number()
        });
        assert!(found.into_iter().eq(0..720));
    }
}

/// PTX's own definition of `shfl.sync`.
fn ptx_shuffle(mode: &str, lane: u32, operand: u32, width: u32) -> (u32, bool) {
    let segment = !(width - 1) & 31;
    let clamp = if mode == "up" { 0 } else { 31 };
    let most = lane & segment | clamp & !segment;
    let (source, inside) = match mode {
        "up" => (
            lane.wrapping_sub(operand),
            lane as i32 - operand as i32 >= most as i32,
        ),
        "down" => (lane + operand, lane + operand <= most),
        "xor" => (lane ^ operand, lane ^ operand <= most),
        _ => {
            let source = lane & segment | operand & !segment;
            (source, source <= most)
        }
    };
    (if inside { source } else { lane }, inside)
}

#[test]
fn every_shuffle_of_every_width_reads_the_lane_that_ptx_defines() {
    type Shuffle = fn(u32, u64, u32, u32) -> (u64, bool);
    let modes: [(&str, Shuffle); 4] = [
        ("idx", lane::shuffle_idx),
        ("up", lane::shuffle_up),
        ("down", lane::shuffle_down),
        ("xor", lane::shuffle_xor),
    ];
    for emulator in variety() {
        run(&emulator, shape(3, 64), || {
            for (mode, shuffle) in modes {
                for width in [1, 2, 4, 8, 16, 32] {
                    for operand in 0..32 {
                        let lane = lane::lane_id();
                        let value = u64::from(lane) << 40 | 7;
                        let (source, inside) = ptx_shuffle(mode, lane, operand, width);
                        assert_eq!(
                            shuffle(FULL, value, operand, width),
                            (u64::from(source) << 40 | 7, inside),
                            "{mode} of width {width}, lane {lane}, operand {operand}"
                        );
                    }
                }
            }
        })
        .unwrap();
    }
}

#[test]
fn a_shuffle_with_an_operand_of_its_own_in_each_lane_permutes() {
    for emulator in variety() {
        let found = words(&emulator, shape(2, 32), || {
            let lane = lane::lane_id();
            lane::shuffle_idx(FULL, u64::from(lane * 3), lane * 7 + 1, 32).0 as u32
        });
        let expected = (0..64).map(|thread| (thread * 7 + 1) % 32 * 3);
        assert!(found.into_iter().eq(expected));
    }
}

#[test]
fn a_shuffle_from_a_lane_outside_the_mask_gives_no_number() {
    let emulator = strict();
    run(&emulator, shape(2, 32), || {
        if lane::lane_id() < 8 {
            let (value, inside) = lane::shuffle_down(0xff, 1, 8, 32);
            assert_eq!((value, inside), (lane::UNDEFINED, true));
            assert!(f32::from_bits(value as u32).is_nan() && f64::from_bits(value).is_nan());
        }
    })
    .unwrap();
}

#[test]
fn divergent_parts_of_a_warp_meet_separately_and_in_any_order() {
    for emulator in variety() {
        let found = words(&emulator, shape(5, 32), || {
            let lane = lane::lane_id();
            // Lane 0 belongs to both pairs: lane 2 waits for it while it still meets lane 1.
            let mut sum = 0;
            if lane < 2 {
                sum += lane::reduce(0b011, lane + 1, Reduce::Add);
            }
            if lane == 0 || lane == 2 {
                sum += lane::reduce(0b101, lane + 10, Reduce::Add);
            }
            if lane >= 16 {
                sum += lane::ballot(0xffff_0000, lane % 2 == 1).count_ones();
            }
            sum
        });
        for warp in found.chunks(32) {
            assert_eq!(warp[..4], [25, 3, 22, 0]);
            assert!(warp[16..].iter().all(|&votes| votes == 8));
        }
    }
}

#[test]
fn votes_matches_and_reductions_work_in_a_partial_warp() {
    let mask = 0b1_1111_1111;
    for emulator in variety() {
        run(&emulator, shape(4, 41), || {
            if lane::warp_id() == 0 {
                return;
            }
            let lane = lane::lane_id();
            assert_eq!(lane::ballot(mask, lane.is_multiple_of(3)), 0b0_0100_1001);
            assert_eq!(
                lane::match_any(mask, u64::from(lane % 3) << 33),
                0b0_0100_1001 << (lane % 3)
            );
            assert_eq!(lane::match_all(mask, u64::MAX), (mask, true));
            assert_eq!(lane::match_all(mask, u64::from(lane / 8)), (0, false));
            let value = (lane as i32 - 4).cast_unsigned();
            let reductions = [
                (Reduce::Add, 0),
                (Reduce::MinUnsigned, 0),
                (Reduce::MaxUnsigned, u32::MAX),
                (Reduce::MinSigned, (-4_i32).cast_unsigned()),
                (Reduce::MaxSigned, 4),
                (Reduce::And, 0),
                (Reduce::Or, u32::MAX),
                (
                    Reduce::Xor,
                    (-4_i32..=4)
                        .fold(0, |all, value| all ^ value)
                        .cast_unsigned(),
                ),
            ];
            for (operation, expected) in reductions {
                assert_eq!(
                    lane::reduce(mask, value, operation),
                    expected,
                    "{operation:?}"
                );
            }
        })
        .unwrap();
    }
}

#[test]
fn barriers_count_the_threads_of_blocks_of_any_size() {
    for emulator in variety() {
        for threads in [1, 31, 33, 100, 1024] {
            run(&emulator, shape(3, threads), || {
                let thread = thread_number();
                for round in 1..5 {
                    assert_eq!(
                        lane::sync_threads_count(thread.is_multiple_of(round)),
                        threads.div_ceil(round)
                    );
                }
                assert!(
                    lane::sync_threads_and(true) && lane::sync_threads_or(thread == threads - 1)
                );
                assert!(!lane::sync_threads_and(thread != 0) && !lane::sync_threads_or(false));
            })
            .unwrap();
        }
    }
}

#[test]
fn a_block_reverses_an_array_through_static_and_dynamic_shared_memory() {
    let launch = Launch {
        shared_bytes: 4 * 1000,
        ..shape(7, 1000)
    };
    for emulator in variety() {
        let found = words(&emulator, launch, || {
            let thread = thread_number();
            let (dynamic, bytes) = lane::shared_dynamic();
            let fixed = lane::shared_static(1, 4 * 1000, 16);
            let odd = lane::shared_static(2, 1, 1);
            let other = lane::shared_static(3, 8, 8);
            assert_eq!(bytes, 4000);
            assert!(dynamic != 0 && fixed.is_multiple_of(16) && odd >= fixed + 4000 && other > odd);
            for _ in 0..3 {
                put_shared(dynamic, thread, thread + block_number());
                lane::sync_threads();
                put_shared(fixed, 999 - thread, get_shared(dynamic, thread));
                lane::sync_threads();
            }
            get_shared(fixed, thread)
        });
        let expected = (0..7).flat_map(|block| (0..1000).map(move |thread| 999 - thread + block));
        assert!(found.into_iter().eq(expected));
    }
}

#[test]
fn neighbouring_bytes_in_shared_memory_belong_to_different_threads() {
    for emulator in variety() {
        let found = words(&emulator, shape(6, 96), || {
            let (bytes, thread) = (lane::shared_static(1, 96, 1), u64::from(thread_number()));
            lane::store(Space::Shared, bytes + thread, [thread as u8]);
            let [own] = lane::load::<u8, 1>(Space::Shared, bytes + thread);
            assert_eq!(u64::from(own), thread);
            lane::sync_threads();
            let [other] = lane::load::<u8, 1>(Space::Shared, bytes + (thread + 1) % 96);
            u32::from(other)
        });
        assert!(
            found
                .into_iter()
                .eq((0..6 * 96).map(|thread| (thread + 1) % 96))
        );
    }
}

#[test]
fn wide_accesses_move_all_their_words() {
    for emulator in variety() {
        let from = upload(&emulator, &(0..4 * 64).collect::<Vec<_>>());
        let to = zeros(&emulator, 4 * 64);
        run(&emulator, shape(2, 32), || {
            let at = 16 * u64::from(block_number() * 32 + thread_number());
            let words = lane::load::<u32, 4>(Space::GlobalReadOnly, from + at);
            lane::store(Space::Global, to + at, words.map(|word| word * 3));
        })
        .unwrap();
        assert!(
            download(&emulator, to, 4 * 64)
                .into_iter()
                .eq((0..4 * 64).map(|word| word * 3))
        );
    }
}

#[test]
fn atomics_lose_nothing_under_contention_of_many_blocks() {
    for emulator in variety() {
        let counters = zeros(&emulator, 3);
        run(&emulator, shape(500, 37), || {
            let thread = u64::from(thread_number());
            let counter = counters + 4 * (thread % 3);
            lane::atomic::<u32>(Space::Global, Scope::Device, counter, |value| {
                Some(value + 1)
            });
        })
        .unwrap();
        assert_eq!(
            download(&emulator, counters, 3),
            [500 * 13, 500 * 12, 500 * 12]
        );
    }
}

#[test]
fn an_atomic_that_keeps_the_word_reports_it() {
    for emulator in variety() {
        let word = upload(&emulator, &[5]);
        let kept = words(&emulator, shape(9, 3), || {
            lane::atomic::<u32>(Space::Global, Scope::System, word, |value| {
                (value == 4).then_some(9)
            })
        });
        assert_eq!(kept, [5; 27]);
        assert_eq!(download(&emulator, word, 1), [5]);
    }
}

#[test]
fn a_spin_lock_between_lanes_and_blocks_ends() {
    for emulator in variety() {
        let (lock, guarded) = (zeros(&emulator, 1), zeros(&emulator, 1));
        run(&emulator, shape(6, 40), || {
            while lane::atomic::<u32>(Space::Global, Scope::Device, lock, |_| Some(1)) != 0 {}
            lane::fence(Scope::Device);
            put(guarded, 0, get(guarded, 0) + 1);
            lane::fence(Scope::Device);
            lane::atomic::<u32>(Space::Global, Scope::Device, lock, |_| Some(0));
        })
        .unwrap();
        assert_eq!(download(&emulator, guarded, 1), [240]);
    }
}

#[test]
fn a_block_can_wait_for_a_later_one() {
    for emulator in variety() {
        let flags = zeros(&emulator, 8);
        run(&emulator, shape(8, 33), || {
            let flag = |block: u32| flags + 4 * u64::from(block);
            let block = block_number();
            if thread_number() == 32 {
                if block < 7 {
                    let read = || {
                        lane::atomic::<u32>(Space::Global, Scope::Device, flag(block + 1), |_| None)
                    };
                    while read() == 0 {}
                }
                lane::atomic::<u32>(Space::Global, Scope::Device, flag(block), |_| Some(1));
            }
            lane::sync_threads();
        })
        .unwrap();
        assert_eq!(download(&emulator, flags, 8), [1; 8]);
    }
}

#[test]
fn the_last_block_sees_what_all_have_written() {
    for emulator in variety() {
        let (partial, ticket, total) = (
            zeros(&emulator, 50),
            zeros(&emulator, 1),
            zeros(&emulator, 1),
        );
        run(&emulator, shape(50, 64), || {
            let last = lane::shared_static(1, 4, 4);
            if thread_number() == 0 {
                put(partial, block_number(), block_number());
                lane::fence(Scope::Device);
                let count = lane::atomic::<u32>(Space::Global, Scope::Device, ticket, |count| {
                    Some(count + 1)
                });
                put_shared(last, 0, u32::from(count == 49));
            }
            lane::sync_threads();
            if get_shared(last, 0) == 1 && lane::warp_id() == 0 {
                let lane = lane::lane_id();
                let mut sum = get(partial, lane);
                if lane < 18 {
                    sum += get(partial, lane + 32);
                }
                let sum = lane::reduce(FULL, sum, Reduce::Add);
                if lane == 0 {
                    put(total, 0, sum);
                }
            }
        })
        .unwrap();
        assert_eq!(download(&emulator, total, 1), [49 * 50 / 2]);
    }
}

#[test]
fn warp_barriers_order_memory_among_the_lanes_they_name() {
    for emulator in variety() {
        let found = words(&emulator, shape(20, 96), || {
            let (lane, base) = (lane::lane_id(), lane::shared_static(1, 4 * 96, 4));
            let own = base + 128 * u64::from(lane::warp_id());
            put_shared(own, lane, lane);
            lane::sync_warp(FULL);
            let mut sum = get_shared(own, lane ^ 1);
            lane::sync_warp(FULL);
            // Within the halves, step by step, down to one lane each.
            let half = if lane < 16 { 0xffff } else { 0xffff_0000 };
            for step in [8, 4, 2, 1] {
                let other = get_shared(own, lane ^ step);
                lane::sync_warp(half);
                put_shared(own, lane, other);
                lane::sync_warp(half);
                sum += other;
            }
            // Lane 0 has met lane 1, and lane 1 lane 2: what lane 2 did is ordered before what lane 0 does.
            lane::sync_warp(FULL);
            if lane == 2 {
                put_shared(own, 31, 5);
                lane::sync_warp(0b110);
            } else if lane == 1 {
                lane::sync_warp(0b110);
                lane::sync_warp(0b011);
            } else if lane == 0 {
                lane::sync_warp(0b011);
                sum += get_shared(own, 31);
            }
            sum
        });
        let mut expected = [0; 32];
        let mut held: Vec<u32> = (0..32).collect();
        for lane in 0..32 {
            expected[lane] += held[lane ^ 1];
        }
        for step in [8, 4, 2, 1] {
            held = (0..32).map(|lane| held[lane ^ step]).collect();
            for lane in 0..32 {
                expected[lane] += held[lane];
            }
        }
        expected[0] += 5;
        for warp in found.chunks(32) {
            assert_eq!(warp, expected);
        }
    }
}

#[test]
fn a_launch_counts_what_it_ran() {
    let emulator = strict();
    let statistics = run(&emulator, shape(70, 40), || {}).unwrap();
    assert_eq!(
        (statistics.blocks, statistics.threads, statistics.workers),
        (70, 2800, 1)
    );
    assert_eq!(
        statistics.switches, 70,
        "threads that do not wait share a fiber"
    );
}

#[test]
fn progress_ends_with_all_blocks() {
    use std::sync::{Arc, Mutex};
    let emulator = strict();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    emulator.set_progress(Some(Arc::new(move |done, total| {
        sink.lock().unwrap().push((done, total))
    })));
    run(&emulator, shape(5000, 1), || {}).unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.len() <= 1001 && seen.is_sorted());
    assert_eq!(seen.last(), Some(&(5000, 5000)));
}
