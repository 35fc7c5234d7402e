//! Small kernels for pictures: accesses that are easy to recognise, uneven blocks, and faults.

use simt::{Scope, Space, lane};

const FULL: u32 = u32::MAX;

/// Accesses of one warp to `x` and `y`, from the best pattern to the worst one.
pub fn patterns(x: u64, y: u64) {
    let lane = lane::lane_id();
    let coalesced = load(x, lane);
    let shifted = load(x, lane + 3);
    let broadcast = load(x, 40);
    let [a, b] = lane::load::<u32, 2>(Space::Global, x + 8 * u64::from(lane));
    let every_second = load(x, 2 * lane);
    let strided = load(x, 32 * lane);
    let random = load(x, lane * 389 % 1024);
    let sum = coalesced + shifted + broadcast + a + b + every_second + strided + random;
    let (from_lane_0, _) = lane::shuffle_idx(FULL, sum.into(), 0, 32);
    if lane < 9 {
        store(y, lane, from_lane_0 as u32);
    }
    lane::sync_warp(FULL);
    add(y, 64 + lane / 8, sum);
}

/// Reads a tile of 32 x 32 words by columns, by columns of a wider tile, and by four words of each lane.
pub fn tile() {
    let lane = lane::lane_id();
    let tile = lane::shared_array(1, 4 * 32 * 36, 4, ("u32", 4));
    for row in 0..36 {
        lane::store(Space::Shared, word(tile, 32 * row + lane), [row]);
    }
    lane::sync_threads();
    lane::load::<u32, 1>(Space::Shared, word(tile, 8 * lane));
    lane::load::<u32, 1>(Space::Shared, word(tile, 33 * lane));
    lane::load::<u32, 4>(Space::Shared, word(tile, 4 * lane));
    lane::load::<u32, 1>(Space::Shared, word(tile, lane / 4));
}

/// A block sums up as many words as its number says; block 560 has many more.
pub fn uneven(x: u64, y: u64) {
    let [block, ..] = lane::block_idx();
    let length = if block == 560 { 90 } else { 4 + block % 13 };
    let mut sum = 0;
    for index in 0..length {
        sum += load(x, (index * 32 + lane::lane_id()) % 1024);
    }
    if lane::lane_id() == 0 {
        store(y, block, sum);
    }
}

/// Each thread reads the word of its neighbour, with no barrier after the writes.
pub fn race_in_a_block() {
    let [thread, ..] = lane::thread_idx();
    let sums = lane::shared_array(1, 4 * 64, 4, ("u32", 4));
    lane::store(Space::Shared, word(sums, thread), [thread]);
    let neighbour = (thread + 1) % 64;
    lane::load::<u32, 1>(Space::Shared, word(sums, neighbour));
}

/// The second block reads what the first one writes.
pub fn race_of_blocks(y: u64) {
    let [block, ..] = lane::block_idx();
    if block == 0 {
        store(y, 5, 1);
    } else {
        load(y, 5);
    }
}

/// Threads without a row leave before the barrier.
pub fn early_return() {
    let [thread, ..] = lane::thread_idx();
    let rows = 40;
    if thread >= rows {
        return;
    }
    lane::sync_threads();
}

/// Half of the warp takes part in a shuffle of all lanes.
pub fn partial_shuffle() {
    if lane::lane_id() < 20 {
        lane::shuffle_xor(FULL, 1, 1, 32);
    }
}

/// The address of a word.
fn word(base: u64, index: u32) -> u64 {
    base + 4 * u64::from(index)
}

#[track_caller]
fn load(base: u64, index: u32) -> u32 {
    lane::load::<u32, 1>(Space::Global, word(base, index))[0]
}

#[track_caller]
fn store(base: u64, index: u32, value: u32) {
    lane::store(Space::Global, word(base, index), [value]);
}

#[track_caller]
fn add(base: u64, index: u32, value: u32) {
    let sum = |old: u32| old.wrapping_add(value);
    lane::atomic_reduction(Space::Global, Scope::Device, word(base, index), sum);
}
