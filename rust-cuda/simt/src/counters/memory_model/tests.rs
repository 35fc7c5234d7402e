//! Launches of a few requests, whose traffic one can count by hand.

use super::*;
use crate::counters::request::sectors::Sectors;
use crate::counters::request::tests::request;
use crate::counters::trace::RequestKind;

/// Two multiprocessors with an L1 cache of 16 lines each, beside 1 KiB of shared memory, and an L2 cache of 32 lines.
const TINY: Hardware = Hardware {
    multiprocessors: 2,
    l1_bytes: 16 * 128 + 1024,
    l2_bytes: 32 * 128,
    registers: 64 << 10,
    max_warps: 1,
    max_blocks: 1,
    shared_bytes: 1024,
    reserved_shared_bytes: 1024,
};

fn model(hardware: Hardware) -> MemoryModel {
    MemoryModel::new(hardware, 32)
}

/// A stream in which 32 lanes access 128 consecutive bytes at each of the addresses.
fn stream(kind: RequestKind, addresses: impl IntoIterator<Item = u64>) -> Stream {
    let mut stream = Stream::default();
    for address in addresses {
        let request = request(kind, 4, |lane| Some(address + 4 * lane));
        stream.push(&request, &Sectors::of(&request));
    }
    stream
}

fn loads(addresses: impl IntoIterator<Item = u64>) -> Stream {
    stream(RequestKind::GlobalLoad, addresses)
}

/// Bytes from L2 and from memory of blocks with these streams.
fn traffic(blocks: impl IntoIterator<Item = Stream>) -> (u64, u64) {
    let mut model = model(TINY);
    for (number, stream) in (0..).zip(blocks) {
        model.add(number, 0, stream);
    }
    let traffic = model.finish();
    (traffic.l2_read_bytes, traffic.memory_read_bytes)
}

#[test]
fn what_is_loaded_once_is_read_once() {
    assert_eq!(traffic([loads([0, 128, 256])]), (384, 384));
    assert_eq!(traffic([]), (0, 0));
}

#[test]
fn blocks_of_one_multiprocessor_share_its_l1_cache_and_all_share_l2() {
    // Blocks 0 and 2 run on one multiprocessor, block 1 on the other.
    let blocks = || [loads([0, 128]), loads([0, 128]), loads([0, 128])];
    assert_eq!(traffic(blocks()), (512, 256));
}

#[test]
fn what_leaves_l1_is_read_from_l2_again() {
    // 17 lines do not fit into the 16 of L1; all fit into L2.
    let lines = (0..17).map(|line| 128 * line);
    let twice = loads(lines.clone().chain(lines));
    assert_eq!(traffic([twice]).0, 2 * 17 * 128);
}

#[test]
fn stores_of_whole_sectors_read_nothing_and_are_in_l2() {
    let store = stream(RequestKind::GlobalStore, [0, 128]);
    assert_eq!(traffic([store.clone()]), (0, 0));
    assert_eq!(traffic([store, loads([0, 128, 256])]), (384, 128));
}

#[test]
fn an_atomic_operation_reads_from_memory_but_not_into_l1() {
    let atomic = || stream(RequestKind::GlobalReduction, [0, 128]);
    assert_eq!(traffic([atomic()]), (0, 256));
    assert_eq!(traffic([atomic(), loads([0])]), (128, 256));
    // L1 forgets what an atomic operation changes.
    assert_eq!(
        traffic([loads([0]), loads([]), atomic(), loads([]), loads([0])]),
        (256, 256)
    );
}

#[test]
fn asynchronous_copies_of_16_bytes_bypass_l1() {
    let request = request(RequestKind::AsyncCopy, 16, |lane| Some(16 * lane));
    let mut copies = Stream::default();
    for _ in 0..2 {
        copies.push(&request, &Sectors::of(&request));
    }
    assert_eq!(traffic([copies]), (1024, 512));
}

#[test]
fn blocks_run_in_the_order_of_their_numbers() {
    // 40 lines through an L2 cache of 32: the order decides what is still there.
    let block = |number: u64| loads((0..8).map(|line| 128 * (8 * (number % 5) + line)));
    let mut ascending = model(TINY);
    (0..20).for_each(|number| ascending.add(number, 0, block(number)));
    let mut descending = model(TINY);
    (0..20)
        .rev()
        .for_each(|number| descending.add(number, 0, block(number)));
    assert_eq!(ascending.finish(), descending.finish());
}

#[test]
fn blocks_that_run_together_take_turns() {
    // Two resident blocks on one multiprocessor. Each reads 12 lines twice; together they are more than L1 holds.
    let hardware = Hardware {
        multiprocessors: 1,
        l1_bytes: 16 * 128 + 2048,
        shared_bytes: 2048,
        max_warps: 2,
        max_blocks: 2,
        ..TINY
    };
    let block = |first: u64| {
        let lines = (first..first + 12).map(|line| 128 * line);
        loads(lines.clone().chain(lines))
    };
    let mut together = model(hardware);
    together.add(0, 0, block(0));
    together.add(1, 0, block(12));
    assert_eq!(together.finish().l2_read_bytes, 2 * 24 * 128);
    let mut alone = model(Hardware {
        max_blocks: 1,
        ..hardware
    });
    alone.add(0, 0, block(0));
    alone.add(1, 0, block(12));
    assert_eq!(alone.finish().l2_read_bytes, 24 * 128);
}

#[test]
fn shared_memory_leaves_less_of_l1() {
    let hardware = Hardware {
        shared_bytes: 3 * 1024,
        l1_bytes: 3 * 1024 + 16 * 128,
        ..TINY
    };
    let lines = (0..24).map(|line| 128 * line);
    let l2_bytes = |shared| {
        let mut model = model(hardware);
        model.add(0, shared, loads(lines.clone().chain(lines.clone())));
        model.finish().l2_read_bytes
    };
    assert_eq!(l2_bytes(0), 24 * 128);
    assert_eq!(l2_bytes(2048), 2 * 24 * 128);
}
