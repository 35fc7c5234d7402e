//! Operations among the 32 lanes of a warp.
//!
//! `mask` names the lanes that take part, lane 0 the lowest bit: every one of them must call the same operation with the
//! same mask, and the caller must be one of them. [`FULL_MASK`] where the whole warp takes part.

use crate::backend;
use crate::element::Element;
use crate::word::Word;

/// Lanes in a warp.
pub const WARP_SIZE: u32 = 32;

/// The mask of all lanes.
pub const FULL_MASK: u32 = u32::MAX;

/// The thread's lane in its warp, 0 to 31. Threads form warps in the order of their indices, x fastest.
#[inline(always)]
pub fn lane_id() -> u32 {
    backend::lane_id()
}

/// Waits until the lanes in `mask` are here, and makes their writes visible to each other (`bar.warp.sync`).
#[inline(always)]
#[track_caller]
pub fn sync_warp(mask: u32) {
    backend::sync_warp(mask);
}

macro_rules! shuffle {
    ($($(#[$doc:meta])* $name:ident($operand:ident))*) => {$(
        $(#[$doc])*
        ///
        /// `width` is 1, 2, 4, 8, 16 or 32: the warp is cut into segments of that many lanes, and each works by itself.
        #[inline(always)]
        #[track_caller]
        pub fn $name<T: Element>(mask: u32, value: T, $operand: u32, width: u32) -> T {
            T::from_bits(value.to_bits().$name(mask, $operand, width))
        }
    )*};
}

shuffle! {
    /// The `value` of lane `lane` of the segment (modulo `width`): a broadcast if all ask for the same (`shfl.sync.idx`).
    shfl_idx(lane)
    /// The `value` of the lane `delta` below; the lane's own where there is none in the segment (`shfl.sync.up`).
    shfl_up(delta)
    /// The `value` of the lane `delta` above; the lane's own where there is none in the segment (`shfl.sync.down`).
    shfl_down(delta)
    /// The `value` of the lane whose number is this one's exclusive-or `lane_mask`; the lane's own where that lies in a
    /// later segment (`shfl.sync.bfly`).
    shfl_xor(lane_mask)
}

/// The lanes of `mask` whose `predicate` is true (`vote.sync.ballot`).
#[inline(always)]
#[track_caller]
pub fn ballot(mask: u32, predicate: bool) -> u32 {
    backend::ballot(mask, predicate)
}

/// Whether all lanes of `mask` came with a true `predicate` (`vote.sync.all`).
#[inline(always)]
#[track_caller]
pub fn all(mask: u32, predicate: bool) -> bool {
    backend::all(mask, predicate)
}

/// Whether any lane of `mask` came with a true `predicate` (`vote.sync.any`).
#[inline(always)]
#[track_caller]
pub fn any(mask: u32, predicate: bool) -> bool {
    backend::any(mask, predicate)
}

/// The lanes of `mask` whose `value` has the same bits as this lane's (`match.any.sync`).
#[inline(always)]
#[track_caller]
pub fn match_any<T: Element>(mask: u32, value: T) -> u32 {
    value.to_bits().match_any(mask)
}

/// Whether the `value`s of all lanes of `mask` have the same bits (`match.all.sync`).
#[inline(always)]
#[track_caller]
pub fn match_all<T: Element>(mask: u32, value: T) -> bool {
    value.to_bits().match_all(mask)
}

/// An integer that [`reduce_add`] and its like take in one instruction (`redux.sync`): u32 and i32.
pub trait Reduce: Element {
    #[doc(hidden)]
    #[track_caller]
    fn add(mask: u32, value: Self) -> Self;
    #[doc(hidden)]
    #[track_caller]
    fn min(mask: u32, value: Self) -> Self;
    #[doc(hidden)]
    #[track_caller]
    fn max(mask: u32, value: Self) -> Self;
}

impl Reduce for u32 {
    #[inline(always)]
    #[track_caller]
    fn add(mask: u32, value: u32) -> u32 {
        backend::reduce_add(mask, value)
    }

    #[inline(always)]
    #[track_caller]
    fn min(mask: u32, value: u32) -> u32 {
        backend::reduce_min(mask, value)
    }

    #[inline(always)]
    #[track_caller]
    fn max(mask: u32, value: u32) -> u32 {
        backend::reduce_max(mask, value)
    }
}

impl Reduce for i32 {
    #[inline(always)]
    #[track_caller]
    fn add(mask: u32, value: i32) -> i32 {
        backend::reduce_add(mask, value as u32) as i32
    }

    #[inline(always)]
    #[track_caller]
    fn min(mask: u32, value: i32) -> i32 {
        backend::reduce_min_signed(mask, value)
    }

    #[inline(always)]
    #[track_caller]
    fn max(mask: u32, value: i32) -> i32 {
        backend::reduce_max_signed(mask, value)
    }
}

/// The sum, modulo 2^32, of the lanes of `mask`.
#[inline(always)]
#[track_caller]
pub fn reduce_add<T: Reduce>(mask: u32, value: T) -> T {
    T::add(mask, value)
}

/// The least `value` of the lanes of `mask`.
#[inline(always)]
#[track_caller]
pub fn reduce_min<T: Reduce>(mask: u32, value: T) -> T {
    T::min(mask, value)
}

/// The greatest `value` of the lanes of `mask`.
#[inline(always)]
#[track_caller]
pub fn reduce_max<T: Reduce>(mask: u32, value: T) -> T {
    T::max(mask, value)
}

/// The bits set in an odd number of the `value`s of the lanes of `mask` (`redux.sync.xor`).
#[inline(always)]
#[track_caller]
pub fn reduce_xor(mask: u32, value: u32) -> u32 {
    backend::reduce_xor(mask, value)
}

/// The bits set in any `value` of the lanes of `mask` (`redux.sync.or`).
#[inline(always)]
#[track_caller]
pub fn reduce_or(mask: u32, value: u32) -> u32 {
    backend::reduce_or(mask, value)
}

/// The bits set in every `value` of the lanes of `mask` (`redux.sync.and`).
#[inline(always)]
#[track_caller]
pub fn reduce_and(mask: u32, value: u32) -> u32 {
    backend::reduce_and(mask, value)
}
