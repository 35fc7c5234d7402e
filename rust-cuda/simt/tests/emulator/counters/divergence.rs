//! Lanes that take different ways through a kernel, and where they meet again.

use super::*;
use simt::Schedule;

#[test]
fn lanes_wait_behind_a_loop_for_the_longest_one() {
    let counters = one_warp(64, |buffer| {
        let lane = lane::lane_id();
        for _ in 0..lane % 4 {
            load(buffer, lane);
        }
        load(buffer, 32 + lane);
    });
    // Three iterations, with 24, 16 and 8 lanes, and the load behind the loop.
    assert_eq!(loads(counters), [4, 16, 24 + 16 + 8 + 32]);
}

#[test]
fn lanes_wait_behind_an_inner_loop_in_each_iteration_of_the_outer_one() {
    let counters = one_warp(64, |buffer| {
        let lane = lane::lane_id();
        for outer in 0..3 {
            for _ in 0..(lane + outer) % 3 {
                load(buffer, lane);
            }
            load(buffer, 32 + lane);
        }
    });
    // In each iteration: two inner ones, and the load behind them, of all lanes.
    assert_eq!(counters.global_loads.requests, 3 * 3);
    assert_eq!(counters.global_loads.lanes, 3 * 32 + 32 * 3);
}

#[test]
fn loops_with_different_trip_counts_at_both_depths_take_the_longest_of_each() {
    let counters = one_warp(64, |buffer| {
        let lane = lane::lane_id();
        for outer in 0..1 + lane % 5 {
            for _ in 0..(lane + outer) % 4 {
                load(buffer, lane);
            }
        }
        load(buffer, 32 + lane);
    });
    let inner = |outer: u32| {
        let lanes = (0..32).filter(|lane| outer < 1 + lane % 5);
        lanes.map(|lane| (lane + outer) % 4).max().unwrap()
    };
    // Without a site in the outer loop, nothing shows where an iteration of it begins: lanes of different iterations
    // go on together, as long as each has a load left.
    let at_most = u64::from((0..5).map(inner).sum::<u32>()) + 1;
    let total = |lane: u32| {
        (0..1 + lane % 5)
            .map(|outer| (lane + outer) % 4)
            .sum::<u32>()
    };
    let at_least = u64::from((0..32).map(total).max().unwrap()) + 1;
    assert!((at_least..=at_most).contains(&counters.global_loads.requests));
}

#[test]
fn lanes_that_return_early_leave_the_others() {
    let counters = one_warp(64, |buffer| {
        load(buffer, 0);
        if lane::lane_id().is_multiple_of(2) {
            return;
        }
        load(buffer, 1);
    });
    assert_eq!(loads(counters), [2, 2, 48]);
}

#[test]
fn two_calls_of_a_function_are_two_places() {
    let counters = one_warp(64, |buffer| {
        // The even lanes are in the second call while the odd ones are in the first, which comes first.
        if lane::lane_id() % 2 == 1 {
            load_twice(buffer, 0);
        }
        load_twice(buffer, 8);
    });
    assert_eq!(loads(counters), [4, 4, 32 + 64]);
}

#[test]
fn inlined_functions_in_a_loop_keep_the_lanes_together() {
    let counters = one_warp(64, |buffer| {
        let lane = lane::lane_id();
        for k in 0..4 {
            if lane > 2 * k {
                load_inlined(buffer, lane);
            }
            load_inlined(buffer, 32 + lane);
        }
    });
    assert_eq!(counters.global_loads.requests, 8);
    assert_eq!(counters.global_loads.lanes, 31 + 29 + 27 + 25 + 4 * 32);
}

#[test]
fn branches_of_a_condition_execute_one_after_the_other() {
    let counters = one_warp(64, |buffer| {
        if lane::lane_id() < 16 {
            load(buffer, 0);
        } else {
            load(buffer, 8);
            load(buffer, 16);
        }
        load(buffer, 24);
    });
    assert_eq!(loads(counters), [4, 4, 16 + 16 + 16 + 32]);
}

#[test]
fn shuffles_of_a_part_of_the_warp_count_its_lanes() {
    let (emulator, _) = counting(Options::default(), 1);
    let counters = report(&emulator, LAUNCH, &|| {
        let lane = lane::lane_id();
        if lane < 8 {
            lane::shuffle_down(0xff, 0, 1, 8);
        } else {
            lane::shuffle_xor(!0xff, 0, 1, 32);
            lane::ballot(!0xff, true);
        }
        lane::shuffle_idx(u32::MAX, 0, 0, 32);
        lane::sync_warp(u32::MAX);
    })
    .total;
    assert_eq!(
        [counters.shuffles.executed, counters.shuffles.lanes],
        [3, 8 + 24 + 32]
    );
    assert_eq!([counters.votes.executed, counters.votes.lanes], [1, 24]);
    assert_eq!(
        [
            counters.warp_barriers.executed,
            counters.warp_barriers.lanes
        ],
        [1, 32]
    );
}

#[test]
fn a_lane_at_a_shuffle_waits_for_the_lanes_of_its_mask() {
    let counters = one_warp(64, |buffer| {
        let lane = lane::lane_id();
        for k in 0..3 {
            for _ in 0..(lane + k) % 5 {
                load(buffer, lane);
            }
            lane::shuffle_xor(u32::MAX, 0, 1, 32);
        }
    });
    assert_eq!(
        [counters.shuffles.executed, counters.shuffles.lanes],
        [3, 96]
    );
    assert_eq!(counters.global_loads.requests, 3 * 4);
}

#[test]
fn loops_without_a_collective_operation_are_merged_in_parts_and_stay_exact() {
    // More events of a lane than the emulator keeps, and lanes that end in different parts.
    let trips = |lane: u32| 1500 * (lane % 20);
    let run = |schedule| {
        let options = Options::new().schedule(schedule);
        let (emulator, buffer) = counting(options, 64);
        let launch = Launch {
            block: [45, 1, 1],
            ..LAUNCH
        };
        report(&emulator, launch, &|| {
            let lane = lane::lane_id();
            for k in 0..trips(lane) {
                load(buffer, lane);
                if k.is_multiple_of(3) {
                    load(buffer, 32);
                }
            }
            load(buffer, 33);
        })
        .total
    };
    let expected = run(Schedule::InOrder);
    // In each warp, lanes with the longest loop: 19 in the first one, 12 in the second one.
    let requests = |longest: u32| u64::from(longest + longest.div_ceil(3) + 1);
    assert_eq!(
        expected.global_loads.requests,
        requests(trips(19)) + requests(trips(12))
    );
    let lanes = (0..32).chain(0..13).map(|lane| requests(trips(lane)));
    assert_eq!(expected.global_loads.lanes, lanes.sum::<u64>());
    for seed in 0..3 {
        assert_eq!(run(Schedule::Random { seed }), expected);
    }
}

#[test]
fn parts_of_a_merge_know_the_loops_of_the_parts_before() {
    // Parts begin in the middle of the inner loop, while other lanes wait behind it.
    let trips = |lane: u32| if lane == 7 { 3001 } else { lane % 3 };
    let counters = one_warp(128, |buffer| {
        let lane = lane::lane_id();
        for _ in 0..8 {
            for _ in 0..trips(lane) {
                load(buffer, lane);
                load(buffer, 40);
            }
            let own = buffer + 4 * u64::from(64 + lane);
            lane::store(Space::Global, own, [lane]);
        }
    });
    let stores = counters.global_stores;
    assert_eq!([stores.requests, stores.lanes], [8, 8 * 32]);
    assert_eq!(counters.global_loads.requests, 8 * 2 * 3001);
}
