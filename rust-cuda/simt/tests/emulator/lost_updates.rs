//! Updates that are an atomic load and an atomic store: random schedules lose some of them.

use crate::machine::*;
use simt::*;

/// The sum after each thread has added 1 by two atomic operations, or by one.
fn sum(schedule: Schedule, launch: Launch<'_>, as_one: bool) -> u32 {
    let emulator = emulator(1, Checks::Full, schedule);
    let word = zeros(&emulator, 1);
    let (space, scope) = (Space::Global, Scope::Device);
    run(&emulator, launch, || {
        if as_one {
            lane::atomic::<u32>(space, scope, word, |old| Some(old + 1));
        } else {
            let old = lane::atomic_load::<u32>(space, scope, word);
            lane::atomic_store::<u32>(space, scope, word, old + 1);
        }
    })
    .unwrap();
    download(&emulator, word, 1)[0]
}

#[test]
fn an_atomic_load_and_store_lose_updates_between_lanes_warps_and_blocks() {
    for (blocks, threads) in [(1, 32), (1, 2), (8, 1), (2, 1), (3, 70)] {
        let launch = || shape(blocks, threads);
        let seeds = || (0..50).map(|seed| Schedule::Random { seed });
        let lost = |schedule| sum(schedule, launch(), false) < blocks * threads;
        assert!(seeds().any(lost), "{blocks} blocks of {threads} threads");
        for schedule in seeds() {
            assert_eq!(sum(schedule, launch(), true), blocks * threads);
        }
    }
}

#[test]
fn a_lock_that_is_tested_and_then_set_does_not_keep_others_out() {
    let (space, scope) = (Space::Global, Scope::Device);
    let fails = |seed| {
        let emulator = emulator(1, Checks::Full, Schedule::Random { seed });
        let (locks, data) = (zeros(&emulator, 1), zeros(&emulator, 1));
        run(&emulator, shape(2, 1), || {
            while lane::atomic_load::<u32>(space, scope, locks) != 0 {}
            lane::atomic_store::<u32>(space, scope, locks, 1);
            lane::fence(scope);
            put(data, 0, get(data, 0) + 1);
            lane::fence(scope);
            lane::atomic_store::<u32>(space, scope, locks, 0);
        })
        .is_err()
    };
    assert!((0..50).any(fails));
}
