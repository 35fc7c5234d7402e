//! Accesses of the lanes of one warp.

use super::*;
use simt::Scope;

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
fn atomic_operations_are_told_apart_by_their_result() {
    let counters = one_warp(64, |buffer| {
        let own = buffer + 4 * u64::from(lane::lane_id());
        lane::atomic::<u32>(Space::Global, Scope::Device, own, |old| Some(old + 1));
        lane::atomic_reduction::<u32>(Space::Global, Scope::Device, own, |old| old + 1);
        lane::atomic_store::<u32>(Space::Global, Scope::Device, own, 7);
        assert_eq!(
            lane::atomic_load::<u32>(Space::Global, Scope::Device, own),
            7
        );
    });
    for counted in [
        counters.global_atomics,
        counters.global_reductions,
        counters.global_stores,
        counters.global_loads,
    ] {
        assert_eq!(
            [counted.requests, counted.sectors, counted.lanes],
            [1, 4, 32]
        );
    }
}

#[test]
fn an_asynchronous_copy_is_one_request_and_no_load_or_store() {
    let (emulator, buffer) = counting(Options::default(), 128);
    let launch = Launch {
        shared_bytes: 512,
        ..LAUNCH
    };
    let counters = report(&emulator, launch, &|| {
        let offset = 16 * u64::from(lane::lane_id());
        let (shared, _) = lane::shared_dynamic();
        lane::copy_async(shared + offset, buffer + offset, 16, 16);
        lane::commit_async();
        lane::wait_async(0);
    })
    .total;
    let copies = counters.async_copies;
    assert_eq!([copies.requests, copies.sectors, copies.lanes], [1, 16, 32]);
    assert_eq!(counters.global_loads.requests, 0);
    assert_eq!(counters.shared_stores.requests, 0);
}
