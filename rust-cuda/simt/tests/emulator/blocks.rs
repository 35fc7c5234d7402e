//! Barriers and shared memory give the same results on every schedule.

use crate::machine::{
    block_number, get_shared, put_shared, run, shape, thread_number, variety, words,
};
use simt::{Launch, Space, lane};

const FULL: u32 = u32::MAX;

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
fn warp_barriers_order_memory_among_the_lanes_they_name() {
    for emulator in variety() {
        let found = words(&emulator, shape(20, 96), || {
            let (lane, base) = (lane::lane_id(), lane::shared_static(1, 4 * 96, 4));
            let own = base + 128 * u64::from(lane::warp_id());
            put_shared(own, lane, lane);
            lane::sync_warp(FULL);
            let mut sum = get_shared(own, lane ^ 1);
            lane::sync_warp(FULL);
            // Within halves of the warp, then quarters, and so on down to single lanes.
            let half = if lane < 16 { 0xffff } else { 0xffff_0000 };
            for step in [8, 4, 2, 1] {
                let other = get_shared(own, lane ^ step);
                lane::sync_warp(half);
                put_shared(own, lane, other);
                lane::sync_warp(half);
                sum += other;
            }
            // Lane 2 synchronised with lane 1, then lane 1 with lane 0: the write of lane 2 happened before this read.
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
