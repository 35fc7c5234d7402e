//! Reports: totals, lines, blocks, traces, and the work of workers on any schedule.

use std::num::NonZeroUsize;

use super::*;
use simt::{CounterOptions, Schedule, Scope, TracedWarp};

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
        if (thread + k).is_multiple_of(3) {
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
        let options = Options::new()
            .workers(NonZeroUsize::new(workers))
            .schedule(schedule)
            .counters(CounterOptions::new().traces(std::array::from_fn(|i| {
                Some(TracedWarp {
                    block: 5 * i as u64,
                    warp: 1,
                    requests: 100,
                })
            })));
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
    assert!(first.file.ends_with("reports.rs"), "{}", first.file);
    assert_eq!(first.counters.global_loads.requests, 1);
}

#[test]
fn a_traced_warp_shows_its_first_requests() {
    let counters = CounterOptions::new().traces([
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
    ]);
    let options = Options::new().counters(counters);
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
    emulator.set_counters(Some(CounterOptions::new().work_buffer(buffer)));
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
