//! The threads that a launch runs, their indices, and its statistics.

use crate::machine::{block_number, run, shape, strict, thread_number, variety, words};
use simt::{Launch, lane};

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
