//! Operations among the 32 lanes of a warp.
//!
//! `mask` has a bit for each lane that takes part; lane 0 is the lowest bit. Each of these lanes must call the same
//! operation with the same mask, and the caller must be one of them. [`FULL_MASK`] means the whole warp.
//!
//! A kernel that breaks this rule accesses no wrong memory by it, so the functions are not `unsafe`. But it goes wrong:
//!
//! | the mask | emulator | GPU, where nothing checks it |
//! |---|---|---|
//! | leaves out the caller | fault | undefined: wrong results, or the launch fails |
//! | names a lane that calls something else, or with another mask | fault | lanes wait for ever, or wrong results |
//! | names a lane that has returned, or that the warp lacks | fault | nobody waits for it, results are wrong |
//! | leaves out the lane that a shuffle reads | fault | the value is undefined |

use crate::backend;
use crate::element::Element;
use crate::word::Word;

/// Number of lanes of a warp.
pub const WARP_SIZE: u32 = 32;

/// The mask of all 32 lanes.
pub const FULL_MASK: u32 = u32::MAX;

/// The number of the thread in its warp, 0 to 31. A warp is 32 consecutive threads; x is the fastest dimension.
#[inline(always)]
pub fn lane_id() -> u32 {
    backend::lane_id()
}

/// Waits until all lanes of `mask` have called it, and makes their writes visible to each other (`bar.warp.sync`).
///
/// All lanes of `mask` must call it; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn sync_warp(mask: u32) {
    backend::sync_warp(mask);
}

macro_rules! shuffle {
    ($($(#[$doc:meta])* $name:ident($operand:ident))*) => {$(
        $(#[$doc])*
        ///
        /// The warp is divided into segments of `width` lanes, which do not exchange values. `width` is a power of two
        /// up to 32. Any other is a fault on the emulator, and gives wrong values on a GPU.
        ///
        /// All lanes of `mask` must call it; see the [module](self).
        #[inline(always)]
        #[track_caller]
        pub fn $name<T: Element>(mask: u32, value: T, $operand: u32, width: u32) -> T {
            T::from_bits(value.to_bits().$name(mask, $operand, width))
        }
    )*};
}

shuffle! {
    /// Returns the `value` of lane `lane` (modulo `width`) of the segment (`shfl.sync.idx`). If all lanes pass the same
    /// `lane`, it is a broadcast.
    shfl_idx(lane)
    /// Returns the `value` of the lane whose number is lower by `delta` (`shfl.sync.up`), or the caller's own value if
    /// the segment has no such lane.
    shfl_up(delta)
    /// Returns the `value` of the lane whose number is higher by `delta` (`shfl.sync.down`), or the caller's own value
    /// if the segment has no such lane.
    shfl_down(delta)
    /// Returns the `value` of the lane whose number is the caller's xor `lane_mask` (`shfl.sync.bfly`), or the caller's
    /// own value if that lane is in a later segment.
    shfl_xor(lane_mask)
}

/// Returns a bit for each lane of `mask` whose `predicate` is true (`vote.sync.ballot`).
///
/// All lanes of `mask` must call it; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn ballot(mask: u32, predicate: bool) -> u32 {
    backend::ballot(mask, predicate)
}

/// Whether `predicate` is true in all lanes of `mask` (`vote.sync.all`).
///
/// All lanes of `mask` must call it; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn all(mask: u32, predicate: bool) -> bool {
    backend::all(mask, predicate)
}

/// Whether `predicate` is true in any lane of `mask` (`vote.sync.any`).
///
/// All lanes of `mask` must call it; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn any(mask: u32, predicate: bool) -> bool {
    backend::any(mask, predicate)
}

/// Returns a bit for each lane of `mask` whose `value` has the same bits as the caller's (`match.any.sync`).
///
/// All lanes of `mask` must call it; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn match_any<T: Element>(mask: u32, value: T) -> u32 {
    value.to_bits().match_any(mask)
}

/// Whether `value` has the same bits in all lanes of `mask` (`match.all.sync`).
///
/// All lanes of `mask` must call it; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn match_all<T: Element>(mask: u32, value: T) -> bool {
    value.to_bits().match_all(mask)
}

/// An integer type that one instruction reduces over a warp (`redux.sync`): u32 and i32.
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

/// The sum modulo 2^32 of `value` over the lanes of `mask`.
///
/// All lanes of `mask` must call it; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn reduce_add<T: Reduce>(mask: u32, value: T) -> T {
    T::add(mask, value)
}

/// The minimum of `value` over the lanes of `mask`.
///
/// All lanes of `mask` must call it; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn reduce_min<T: Reduce>(mask: u32, value: T) -> T {
    T::min(mask, value)
}

/// The maximum of `value` over the lanes of `mask`.
///
/// All lanes of `mask` must call it; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn reduce_max<T: Reduce>(mask: u32, value: T) -> T {
    T::max(mask, value)
}

/// The bitwise exclusive or of `value` over the lanes of `mask` (`redux.sync.xor`).
///
/// All lanes of `mask` must call it; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn reduce_xor(mask: u32, value: u32) -> u32 {
    backend::reduce_xor(mask, value)
}

/// The bitwise or of `value` over the lanes of `mask` (`redux.sync.or`).
///
/// All lanes of `mask` must call it; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn reduce_or(mask: u32, value: u32) -> u32 {
    backend::reduce_or(mask, value)
}

/// The bitwise and of `value` over the lanes of `mask` (`redux.sync.and`).
///
/// All lanes of `mask` must call it; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn reduce_and(mask: u32, value: u32) -> u32 {
    backend::reduce_and(mask, value)
}
