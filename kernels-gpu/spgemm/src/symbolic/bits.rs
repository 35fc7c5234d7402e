//! The bits of a warp's words: their positions without gaps, and their transposition.

use crate::products::lanes::inclusive_sum;
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Writes the positions of the bits in the warp's words to `positions` without gaps: `first` and the
/// bit's number in the lane's word. Gives their number.
///
/// # Safety
///
/// All lanes of the warp call it. `positions` has room for a position of each bit, and no lane of the
/// warp still reads it.
#[inline(always)]
pub(super) unsafe fn compact_bits(word: u32, first: u32, positions: Shared<u16>) -> u32 {
    let sum = inclusive_sum::<32>(FULL_MASK, word.count_ones());
    let before = sum - word.count_ones();
    // SAFETY: the lane's positions begin below the number of bits in 32 words.
    unsafe { store_positions(word, first, positions.offset(before as usize)) };
    warp::sync_warp(FULL_MASK);
    warp::shfl_idx(FULL_MASK, sum, WARP_SIZE - 1, WARP_SIZE)
}

/// Writes `origin` plus the positions of the bits in the lanes' words to `to`: in the order of the
/// lanes, the bits of a lane's `N` words one after the other, from position `first` on. The positions
/// are compacted in shared memory first, so that the warp writes whole sectors. It takes as many lanes
/// at a time as have at most `ROOM` bits together. Gives the number of all bits.
///
/// # Safety
///
/// All lanes of the warp call it, with positions below 2^16. `positions` has room for `ROOM` of them,
/// at least 32 `N`, and no lane of the warp still reads it. `to` has room for a number for each bit.
#[inline(always)]
pub(super) unsafe fn write_bits<const N: usize, const ROOM: u32>(
    words: [u32; N],
    first: u32,
    positions: Shared<u16>,
    origin: u32,
    to: GlobalMut<u32>,
) -> u32 {
    const { assert!(ROOM >= 32 * N as u32) };
    let lane = warp::lane_id();
    let mut count = 0;
    let _: [(); N] = array::from_fn(|i| count += words[i].count_ones());
    let last = inclusive_sum::<32>(FULL_MASK, count);
    let all = warp::shfl_idx(FULL_MASK, last, WARP_SIZE - 1, WARP_SIZE);
    let mut begin = 0;
    // SAFETY: the bits of the lanes that take part have room, and at least one lane with bits takes
    // part. The warp synchronises between writes and reads of the positions; all lanes agree on
    // `begin` and `end`.
    unsafe {
        while begin < all {
            let mut end = all;
            if all - begin > ROOM {
                let fits = last <= begin + ROOM;
                end = warp::reduce_max(FULL_MASK, if fits { last } else { 0 });
            }
            if begin < last && last <= end {
                let mut at = positions.offset((last - count - begin) as usize);
                let _: [(); N] = array::from_fn(|i| {
                    at = store_positions(words[i], first + 32 * i as u32, at);
                });
            }
            warp::sync_warp(FULL_MASK);
            let mut i = begin + lane;
            while i < end {
                let position = u32::from(positions.load((i - begin) as usize));
                to.store(i as usize, origin + position);
                i += WARP_SIZE;
            }
            warp::sync_warp(FULL_MASK);
            begin = end;
        }
    }
    all
}

/// Writes the positions of the bits in a word to `to`: `first` and the bit's number, which are below
/// 2^16 together. Gives the place after them.
///
/// # Safety
///
/// `to` has room for a position of each bit.
#[inline(always)]
unsafe fn store_positions(word: u32, first: u32, to: Shared<u16>) -> Shared<u16> {
    let (mut word, mut to) = (word, to);
    while word != 0 {
        let position = first + word.trailing_zeros();
        // SAFETY: there is room for each bit, by the contract.
        unsafe { to.store(0, position as u16) };
        to = to.offset(1);
        word &= word - 1;
    }
    to
}

/// The transposed 32 x 32 bit matrix of the warp's words: bit i of lane j becomes bit j of lane i.
/// Five shuffles.
#[inline(always)]
pub(super) fn transposed(word: u32) -> u32 {
    let lane = warp::lane_id();
    let mut word = word;
    let mut distance = 16;
    let mut low = 0x0000_ffff_u32;
    while distance > 0 {
        let other = warp::shfl_xor(FULL_MASK, word, distance, WARP_SIZE);
        word = if lane & distance == 0 {
            word & low | (other & low) << distance
        } else {
            word & !low | (other & !low) >> distance
        };
        distance /= 2;
        low ^= low << distance;
    }
    word
}
