//! A bitonic network that sorts the numbers of a group of lanes in registers.
//!
//! Numbers that one lane holds are compared in its registers; the others are exchanged by
//! `shfl_xor`. N numbers on L lanes cost `log2(N) (log2(N) + 1) / 2` steps, of which those at
//! distances of a lane or more need shuffles.

use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

/// The group's numbers in ascending order: the lane's number `key` becomes number `KEYS * lane +
/// key`. Each merge begins by comparing the first with the last number of a run, so all runs
/// ascend. All lanes of the warp take part.
#[inline(always)]
pub(crate) fn sorted<const LANES: u32, const KEYS: usize>(keys: [u32; KEYS]) -> [u32; KEYS] {
    let lane = warp::lane_id();
    let mut keys = merged_in_lane::<KEYS, true>(keys);
    let mut run = 2;
    while run <= LANES {
        keys = array::from_fn(|key| {
            let other = warp::shfl_xor(FULL_MASK, keys[KEYS - 1 - key], run - 1, LANES);
            least_or_greatest(keys[key], other, lane & (run / 2) == 0)
        });
        let mut distance = run / 4;
        while distance > 0 {
            keys = array::from_fn(|key| {
                let other = warp::shfl_xor(FULL_MASK, keys[key], distance, LANES);
                least_or_greatest(keys[key], other, lane & distance == 0)
            });
            distance /= 2;
        }
        keys = merged_in_lane::<KEYS, false>(keys);
        run *= 2;
    }
    keys
}

/// A lane's keys in ascending order. They come in any order (`ANY`), or as a bitonic sequence.
/// `KEYS` is 1, 2, 4, 8 or 16.
#[inline(always)]
fn merged_in_lane<const KEYS: usize, const ANY: bool>(keys: [u32; KEYS]) -> [u32; KEYS] {
    let mut keys = keys;
    // Compares each key with the one at `key ^ distance`. The calls are written out so that
    // distances are constants.
    let mut exchange = |distance: usize| {
        if distance < KEYS {
            keys = array::from_fn(|key| {
                let other = key ^ distance;
                least_or_greatest(keys[key], keys[other], key < other)
            });
        }
    };
    if ANY {
        // Runs of 2, 4, 8 and 16 keys: each merge begins by comparing the first key of the run with
        // the last.
        exchange(1);
        if KEYS >= 4 {
            exchange(3);
            exchange(1);
        }
        if KEYS >= 8 {
            exchange(7);
            exchange(2);
            exchange(1);
        }
        if KEYS >= 16 {
            exchange(15);
            exchange(4);
            exchange(2);
            exchange(1);
        }
    } else {
        exchange(8);
        exchange(4);
        exchange(2);
        exchange(1);
    }
    keys
}

/// A lane's keys from shared memory, up to four per load.
///
/// # Safety
///
/// `from` holds `KEYS` numbers and is aligned to the smaller of `KEYS` and 4 of them.
#[inline(always)]
pub(crate) unsafe fn load_keys<const KEYS: usize>(from: Shared<u32>) -> [u32; KEYS] {
    // SAFETY: indices are below `KEYS`, and the alignment is part of the contract.
    unsafe {
        if KEYS == 1 {
            return array::from_fn(|key| from.load(key));
        }
        if KEYS == 2 {
            let pair = from.load2(0);
            return array::from_fn(|key| pair[key % 2]);
        }
        let vectors: [[u32; 4]; KEYS] = array::from_fn(|key| {
            if key % 4 == 0 {
                from.load4(key)
            } else {
                [0; 4]
            }
        });
        array::from_fn(|key| vectors[key / 4 * 4][key % 4])
    }
}

/// A lane's keys to shared memory, up to four per store.
///
/// # Safety
///
/// As for [`load_keys`].
#[inline(always)]
pub(crate) unsafe fn store_keys<const KEYS: usize>(to: Shared<u32>, keys: [u32; KEYS]) {
    // SAFETY: indices are below `KEYS`, and the alignment is part of the contract.
    unsafe {
        if KEYS == 1 {
            return to.store(0, keys[0]);
        }
        if KEYS == 2 {
            return to.store2(0, [keys[0], keys[1 % KEYS]]);
        }
        let _: [(); KEYS] = array::from_fn(|key| {
            if key % 4 == 0 {
                to.store4(key, array::from_fn(|i| keys[(key + i) % KEYS]));
            }
        });
    }
}

#[inline(always)]
fn least_or_greatest(number: u32, other: u32, least: bool) -> u32 {
    if least {
        number.min(other)
    } else {
        number.max(other)
    }
}

/// Whether the column of one of the lane's sorted keys also stands before it in the group. A key is
/// a column, then a product's number in `number_bits` low bits. All lanes of the warp take part.
#[inline(always)]
pub(crate) fn has_duplicates<const LANES: u32, const KEYS: usize>(
    number_bits: u32,
    keys: [u32; KEYS],
) -> bool {
    let column = |key: u32| key >> number_bits;
    let before = warp::shfl_up(FULL_MASK, keys[KEYS - 1], 1, LANES);
    let mut has_duplicates = !warp::lane_id().is_multiple_of(LANES)
        && keys[0] != u32::MAX
        && column(before) == column(keys[0]);
    let _: [(); KEYS] = array::from_fn(|key| {
        if key > 0 && keys[key] != u32::MAX && column(keys[key - 1]) == column(keys[key]) {
            has_duplicates = true;
        }
    });
    has_duplicates
}
