//! Counters: what hardware would execute, request by request.

use std::num::NonZeroUsize;

use simt::{
    CounterOptions, Counters, Emulator, Launch, LaunchReport, Options, Schedule, Scope, Space,
    TracedWarp, lane,
};

/// An emulator that counts, and a buffer of zeros of 4 byte words.
fn counting(options: Options, words: u64) -> (Emulator, u64) {
    let emulator = Emulator::new(Options {
        counters: Some(options.counters.unwrap_or_default()),
        ..options
    });
    let buffer = emulator.allocate(4 * words, 4).unwrap();
    emulator.zero(buffer, 4 * words).unwrap();
    (emulator, buffer)
}

const LAUNCH: Launch<'_> = Launch {
    kernel: "counted",
    grid: [1, 1, 1],
    block: [32, 1, 1],
    shared_bytes: 0,
};

/// The report of one launch.
fn report(emulator: &Emulator, launch: Launch<'_>, kernel: &(dyn Fn() + Sync)) -> LaunchReport {
    emulator.launch(launch, kernel).unwrap();
    let mut reports = emulator.take_reports();
    assert_eq!(reports.len(), 1, "each launch has one report");
    reports.pop().unwrap()
}

/// The counters of one warp that loads from the words of a buffer, and the kernel that it runs.
fn one_warp(words: u64, kernel: impl Fn(u64) + Sync) -> Counters {
    let (emulator, buffer) = counting(Options::default(), words);
    report(&emulator, LAUNCH, &|| kernel(buffer)).total
}

#[track_caller]
fn load(buffer: u64, word: u32) -> u32 {
    lane::load::<u32, 1>(Space::GlobalReadOnly, buffer + 4 * u64::from(word))[0]
}

/// Requests, sectors and lanes of loads from global memory.
fn loads(counters: Counters) -> [u64; 3] {
    let loads = counters.global_loads;
    [loads.requests, loads.sectors, loads.lanes]
}

#[test]
fn neighbouring_words_share_sectors() {
    let counters = one_warp(64, |buffer| {
        load(buffer, lane::lane_id());
    });
    assert_eq!(loads(counters), [1, 4, 32]);
}

#[test]
fn a_stride_of_two_words_touches_twice_the_sectors_and_of_32_one_for_each_lane() {
    let counters = one_warp(64, |buffer| {
        load(buffer, 2 * lane::lane_id());
    });
    assert_eq!(loads(counters), [1, 8, 32]);
    let counters = one_warp(1024, |buffer| {
        load(buffer, 32 * lane::lane_id());
    });
    assert_eq!(loads(counters), [1, 32, 32]);
}

#[test]
fn lanes_that_load_one_word_touch_one_sector() {
    let counters = one_warp(64, |buffer| {
        load(buffer, 5);
    });
    assert_eq!(loads(counters), [1, 1, 32]);
}

#[test]
fn scattered_loads_touch_the_sectors_of_their_addresses() {
    let word = |lane: u32| lane * 37 % 61 * 5 % 256;
    let counters = one_warp(256, |buffer| {
        load(buffer, word(lane::lane_id()));
    });
    let mut sectors: Vec<_> = (0..32).map(|lane| word(lane) / 8).collect();
    sectors.sort_unstable();
    sectors.dedup();
    assert_eq!(loads(counters), [1, sectors.len() as u64, 32]);
}

#[test]
fn wide_loads_that_begin_in_the_middle_of_a_sector_touch_one_sector_more() {
    let counters = one_warp(256, |buffer| {
        let address = buffer + 16 + 16 * u64::from(lane::lane_id());
        lane::load::<u32, 4>(Space::GlobalReadOnly, address);
    });
    assert_eq!(loads(counters), [1, 17, 32]);
}

#[test]
fn lanes_that_skip_a_load_are_inactive() {
    let counters = one_warp(64, |buffer| {
        if lane::lane_id() < 5 {
            load(buffer, lane::lane_id());
        }
        lane::store(
            Space::Global,
            buffer + 128 + 4 * u64::from(lane::lane_id()),
            [1_u32],
        );
    });
    assert_eq!(loads(counters), [1, 1, 5]);
    let stores = counters.global_stores;
    assert_eq!([stores.requests, stores.sectors, stores.lanes], [1, 4, 32]);
}

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
        if lane::lane_id() % 2 == 0 {
            return;
        }
        load(buffer, 1);
    });
    assert_eq!(loads(counters), [2, 2, 48]);
}

#[inline(never)]
fn load_twice(buffer: u64, word: u32) -> u32 {
    load(buffer, word) + load(buffer, word + 1)
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

#[inline(always)]
#[track_caller]
fn load_inlined(buffer: u64, word: u32) -> u32 {
    load(buffer, word)
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
fn barriers_count_the_warps_that_wait() {
    let (emulator, _) = counting(Options::default(), 1);
    let launch = Launch {
        grid: [3, 1, 1],
        block: [70, 1, 1],
        shared_bytes: 280,
        ..LAUNCH
    };
    let report = report(&emulator, launch, &|| {
        let thread = lane::thread_idx()[0];
        let (shared, _) = lane::shared_dynamic();
        lane::store(Space::Shared, shared + 4 * u64::from(thread), [thread]);
        lane::sync_threads();
        lane::load::<u32, 1>(Space::Shared, shared + 4 * u64::from(69 - thread));
    });
    let total = report.total;
    assert_eq!(
        [total.block_barriers.executed, total.block_barriers.lanes],
        [9, 210]
    );
    assert_eq!(
        [total.shared_stores.requests, total.shared_stores.lanes],
        [9, 210]
    );
    assert_eq!(
        [total.shared_loads.requests, total.shared_loads.lanes],
        [9, 210]
    );
    assert_eq!(report.dynamic_shared_bytes, 280);
    assert_eq!((report.grid, report.block), ([3, 1, 1], [70, 1, 1]));
    let warps: Vec<_> = report
        .blocks
        .iter()
        .map(|work| (work.block, &*work.warps))
        .collect();
    assert_eq!(
        warps,
        [(0, &[3, 3, 3][..]), (1, &[3, 3, 3]), (2, &[3, 3, 3])]
    );
}

/// A kernel with all that depends on an order: divergence, collective operations and barriers.
fn mixed(buffer: u64) {
    let thread = lane::block_idx()[0] * 96 + lane::thread_idx()[0];
    let lane = lane::lane_id();
    for k in 0..thread % 7 {
        load(buffer, (thread + k) % 64);
        if (thread + k) % 3 == 0 {
            load_twice(buffer, k);
        }
    }
    lane::sync_threads();
    let half = if lane < 16 { 0xffff } else { 0xffff_0000 };
    for _ in 0..=lane::warp_id() {
        lane::shuffle_xor(half, 0, 1, 16);
        load_twice(buffer, lane);
    }
    lane::atomic_reduction::<u32>(Space::Global, Scope::Device, buffer + 4 * 64, |sum| sum + 1);
}

#[test]
fn workers_and_schedules_do_not_change_the_report() {
    let run = |workers: usize, schedule: Schedule| {
        let options = Options {
            workers: NonZeroUsize::new(workers),
            schedule,
            counters: Some(CounterOptions {
                traces: std::array::from_fn(|i| {
                    Some(TracedWarp {
                        block: 5 * i as u64,
                        warp: 1,
                        requests: 100,
                    })
                }),
                ..CounterOptions::default()
            }),
            ..Options::default()
        };
        let (emulator, buffer) = counting(options, 65);
        let launch = Launch {
            grid: [37, 1, 1],
            block: [96, 1, 1],
            ..LAUNCH
        };
        let mut report = report(&emulator, launch, &|| mixed(buffer));
        for word in &mut report.contended {
            word.address -= buffer;
        }
        for trace in &mut report.traces {
            for address in trace
                .requests
                .iter_mut()
                .flat_map(|request| &mut request.addresses)
            {
                *address -= buffer;
            }
        }
        report
    };
    let expected = run(1, Schedule::InOrder);
    assert_eq!(expected.traces.len(), 8);
    assert_eq!(expected.total.global_reductions.lanes, 37 * 96);
    for seed in 0..5 {
        assert_eq!(run(3, Schedule::InOrder), expected);
        assert_eq!(
            run(1 + seed as usize % 3, Schedule::Random { seed }),
            expected
        );
    }
}

#[test]
fn lines_add_up_to_the_total_and_name_the_kernel() {
    let (emulator, buffer) = counting(Options::default(), 64);
    let line = line!() + 2;
    let report = report(&emulator, LAUNCH, &|| {
        lane::load::<u32, 1>(Space::Global, buffer);
        load_inlined(buffer, 3);
        lane::sync_warp(u32::MAX);
    });
    let mut sum = Counters::default();
    report.lines.iter().for_each(|line| sum += line.counters);
    assert_eq!(sum, report.total);
    let first = report
        .lines
        .iter()
        .find(|counted| counted.line == line)
        .unwrap();
    assert!(first.file.ends_with("counters.rs"), "{}", first.file);
    assert_eq!(first.counters.global_loads.requests, 1);
}

#[test]
fn a_traced_warp_shows_its_first_requests() {
    let counters = CounterOptions {
        traces: [
            Some(TracedWarp {
                block: 1,
                warp: 0,
                requests: 2,
            }),
            Some(TracedWarp {
                block: 7,
                warp: 0,
                requests: 2,
            }),
            None,
            None,
            None,
            None,
            None,
            None,
        ],
        ..CounterOptions::default()
    };
    let options = Options {
        counters: Some(counters),
        ..Options::default()
    };
    let (emulator, buffer) = counting(options, 64);
    let launch = Launch {
        grid: [2, 1, 1],
        ..LAUNCH
    };
    let report = report(&emulator, launch, &|| {
        let lane = lane::lane_id();
        if lane < 2 {
            load(buffer, lane);
        }
        lane::sync_warp(u32::MAX);
        load(buffer, lane);
    });
    let [trace] = &*report.traces else {
        panic!("the launch has no block 7")
    };
    assert_eq!((trace.block, trace.warp, trace.executed), (1, 0, 3));
    let [first, second] = &*trace.requests else {
        panic!("two requests are kept")
    };
    assert_eq!(
        (first.lanes, first.bytes, &*first.addresses),
        (3, 4, &[buffer, buffer + 4][..])
    );
    assert_eq!(
        (second.lanes, second.bytes, &*second.addresses),
        (u32::MAX, 0, &[][..])
    );
}

#[test]
fn a_block_counts_the_different_elements_that_it_loads_from_the_work_buffer() {
    let (emulator, buffer) = counting(Options::default(), 256);
    let other = emulator.allocate(4 * 256, 4).unwrap();
    emulator.zero(other, 4 * 256).unwrap();
    emulator.set_counters(Some(CounterOptions {
        work_buffer: Some(buffer),
        ..CounterOptions::default()
    }));
    let launch = Launch {
        grid: [3, 1, 1],
        block: [64, 1, 1],
        ..LAUNCH
    };
    let report = report(&emulator, launch, &|| {
        let (block, thread) = (lane::block_idx()[0], lane::thread_idx()[0]);
        load(other, thread);
        load(buffer, thread % (1 + 20 * block));
        lane::load::<u32, 4>(Space::Global, buffer + 16);
    });
    let elements: Vec<_> = report.blocks.iter().map(|work| work.elements).collect();
    assert_eq!(elements, [5, 21, 41]);
}

#[test]
fn a_launch_with_a_fault_has_no_report_and_the_next_one_has() {
    let (emulator, buffer) = counting(Options::default(), 64);
    let fault = emulator.launch(LAUNCH, &|| {
        load(buffer, 40 + lane::lane_id());
    });
    assert!(fault.is_err());
    assert!(emulator.last_report().is_none());
    let counted = report(&emulator, LAUNCH, &|| {
        load(buffer, lane::lane_id());
    });
    assert_eq!(loads(counted.total), [1, 4, 32]);
}

#[test]
fn reports_come_in_the_order_of_the_launches() {
    let (emulator, buffer) = counting(Options::default(), 64);
    for kernel in ["first", "second"] {
        let launch = Launch { kernel, ..LAUNCH };
        emulator
            .launch(launch, &|| {
                load(buffer, 0);
            })
            .unwrap();
    }
    assert_eq!(emulator.last_report().unwrap().kernel, "second");
    let names: Vec<_> = emulator
        .take_reports()
        .into_iter()
        .map(|report| report.kernel)
        .collect();
    assert_eq!(names, ["first", "second"]);
    assert!(emulator.last_report().is_none());
    emulator.set_counters(None);
    emulator.launch(LAUNCH, &|| {}).unwrap();
    assert!(emulator.take_reports().is_empty());
}
