//! Masks of the lanes of a warp.

use crate::limits::WARP_SIZE;

/// The positions of the bits that are set, lowest first.
pub(crate) fn bits(mut mask: u32) -> impl Iterator<Item = u32> + Clone {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (bit < WARP_SIZE).then_some(bit)
    })
}
