//! Whether neighbouring rows of A have their few nonzeros in nearly the same columns.

use crate::analysis::bin_limits::BinLimits;
use crate::products::operands::OperandPatterns;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Whether most rows of the warp have few nonzeros of A, the first and the last of which are near
/// those of the row before. The lane's row has the nonzeros from `start` to `end`. All lanes of the
/// warp call it.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]), and A has the nonzeros.
#[inline(always)]
pub(super) unsafe fn are_near(
    operands: &OperandPatterns,
    bin_limits: &BinLimits,
    (start, end): (u32, u32),
) -> bool {
    let is_short = start < end && end - start <= bin_limits.merge_nonzeros;
    let (mut first, mut last) = (0, 0);
    if is_short {
        // SAFETY: the nonzeros are those of A, by the contract.
        unsafe {
            first = operands.a.col_idx.load(start as usize);
            last = operands.a.col_idx.load(end as usize - 1);
        }
    }
    let before = |number: u32| warp::shfl_up(FULL_MASK, number, 1, WARP_SIZE);
    let apart = (first.abs_diff(before(first))).max(last.abs_diff(before(last)));
    let short = warp::ballot(FULL_MASK, is_short);
    let are_short = (short & (short << 1)) >> warp::lane_id() & 1 == 1;
    let is_near = are_short && apart <= bin_limits.merge_distance;
    let near = warp::ballot(FULL_MASK, is_near).count_ones();
    near >= WARP_SIZE / 2 || bin_limits.merge_distance == u32::MAX
}
