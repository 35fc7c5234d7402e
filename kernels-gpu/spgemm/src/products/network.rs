//! A bitonic network that sorts the numbers of a group of lanes in their registers.

use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;

/// The group's numbers in ascending order, number `KEYS * lane + key` the lane's key `key`, by a bitonic network whose merges
/// begin with a comparison of the first with the last, so that all of it ascends. All lanes of the warp take part.
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

/// A lane's keys in ascending order: of any order, or of a bitonic one. There are 1, 2, 4, 8 or 16.
#[inline(always)]
fn merged_in_lane<const KEYS: usize, const ANY: bool>(keys: [u32; KEYS]) -> [u32; KEYS] {
    let mut keys = keys;
    // Each key and the one at that distance, by exclusive or. Written out, so that the distances are constants.
    let mut exchange = |distance: usize| {
        if distance < KEYS {
            keys = array::from_fn(|key| {
                let other = key ^ distance;
                least_or_greatest(keys[key], keys[other], key < other)
            });
        }
    };
    if ANY {
        // Runs of 2, 4, 8 and 16: each begins with the first and the last of it.
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

/// A lane's keys from shared memory, four at a time if they are so many.
#[inline(always)]
pub(crate) unsafe fn load_keys<const KEYS: usize>(from: Shared<u32>) -> [u32; KEYS] {
    // SAFETY: the caller has them there, aligned as the vectors want.
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

/// The same the other way.
#[inline(always)]
pub(crate) unsafe fn store_keys<const KEYS: usize>(to: Shared<u32>, keys: [u32; KEYS]) {
    // SAFETY: the caller has room for them, aligned as the vectors want.
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

/// Whether two of a group's sorted keys are of the same column, one of them the lane's; all lanes of the warp take part.
#[inline(always)]
pub(crate) fn has_equals<const LANES: u32, const KEYS: usize>(
    number_bits: u32,
    keys: [u32; KEYS],
) -> bool {
    let column = |key: u32| key >> number_bits;
    let before = warp::shfl_up(FULL_MASK, keys[KEYS - 1], 1, LANES);
    let mut has_equals = !warp::lane_id().is_multiple_of(LANES)
        && keys[0] != u32::MAX
        && column(before) == column(keys[0]);
    let _: [(); KEYS] = array::from_fn(|key| {
        if key > 0 && keys[key] != u32::MAX && column(keys[key - 1]) == column(keys[key]) {
            has_equals = true;
        }
    });
    has_equals
}
