//! The bits of a warp's words: their positions without gaps, and their transposition.

use crate::products::lanes::inclusive_sum;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Writes the positions of the bits in the warp's words, `BITS * lane + bit`, to `positions` without
/// gaps. Gives their number.
///
/// # Safety
///
/// All lanes of the warp call it, with words of `BITS` bits. `positions` has room for a position of
/// each bit, and no lane of the warp still reads it.
#[inline(always)]
pub(super) unsafe fn compact_bits<const BITS: u32>(word: u32, positions: Shared<u16>) -> u32 {
    let sum = inclusive_sum::<32>(FULL_MASK, word.count_ones());
    let mut position = sum - word.count_ones();
    let mut word = word;
    while word != 0 {
        let bit = warp::lane_id() * BITS + word.trailing_zeros();
        // SAFETY: `position` is below the number of bits in 32 words.
        unsafe { positions.store(position as usize, bit as u16) };
        word &= word - 1;
        position += 1;
    }
    warp::sync_warp(FULL_MASK);
    warp::shfl_idx(FULL_MASK, sum, WARP_SIZE - 1, WARP_SIZE)
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
