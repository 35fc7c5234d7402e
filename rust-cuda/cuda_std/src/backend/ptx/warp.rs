//! Shuffles, votes, match and reduce, by intrinsics, which LLVM knows to be convergent.

use core::arch::asm;

unsafe extern "unadjusted" {
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    fn bar_warp_sync(mask: u32);
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    fn shfl_sync_idx(mask: u32, value: u32, operand: u32, segment: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.up.i32"]
    fn shfl_sync_up(mask: u32, value: u32, operand: u32, segment: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.down.i32"]
    fn shfl_sync_down(mask: u32, value: u32, operand: u32, segment: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
    fn shfl_sync_bfly(mask: u32, value: u32, operand: u32, segment: u32) -> u32;
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    fn vote_ballot_sync(mask: u32, predicate: bool) -> u32;
    #[link_name = "llvm.nvvm.match.any.sync.i32"]
    fn match_any_sync_b32(mask: u32, value: u32) -> u32;
    #[link_name = "llvm.nvvm.match.any.sync.i64"]
    fn match_any_sync_b64(mask: u32, value: u64) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.add"]
    fn redux_sync_add(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.umin"]
    fn redux_sync_min_u32(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.umax"]
    fn redux_sync_max_u32(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.min"]
    fn redux_sync_min_s32(value: i32, mask: u32) -> i32;
    #[link_name = "llvm.nvvm.redux.sync.max"]
    fn redux_sync_max_s32(value: i32, mask: u32) -> i32;
    #[link_name = "llvm.nvvm.redux.sync.xor"]
    fn redux_sync_xor(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.or"]
    fn redux_sync_or(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.and"]
    fn redux_sync_and(value: u32, mask: u32) -> u32;
}

#[inline(always)]
pub(crate) fn lane_id() -> u32 {
    let lane: u32;
    // SAFETY: the instruction reads a special register, and has no preconditions.
    unsafe {
        asm!("mov.u32 {lane}, %laneid;", lane = lateout(reg32) lane, options(pure, nomem, nostack, preserves_flags))
    }
    lane
}

#[inline(always)]
pub(crate) fn sync_warp(mask: u32) {
    // SAFETY: the caller guarantees that all lanes of `mask` call it.
    unsafe { bar_warp_sync(mask) }
}

/// The third operand of `shfl`: the segment mask in bits 8 to 12, and the clamp value in bits 0 to 4.
#[inline(always)]
const fn segment(width: u32, clamp: u32) -> u32 {
    ((32 - width) << 8) | clamp
}

macro_rules! shuffle {
    ($($name:ident = $instruction:ident, clamp $clamp:literal;)*) => {$(
        #[inline(always)]
        pub(super) fn $name(mask: u32, value: u32, operand: u32, width: u32) -> u32 {
            // SAFETY: the caller guarantees that all lanes of `mask` call it.
            unsafe { $instruction(mask, value, operand, segment(width, $clamp)) }
        }
    )*};
}

shuffle! {
    idx = shfl_sync_idx, clamp 31;
    up = shfl_sync_up, clamp 0;
    down = shfl_sync_down, clamp 31;
    xor = shfl_sync_bfly, clamp 31;
}

#[inline(always)]
pub(super) fn match_any_b32(mask: u32, value: u32) -> u32 {
    // SAFETY: the caller guarantees that all lanes of `mask` call it.
    unsafe { match_any_sync_b32(mask, value) }
}

#[inline(always)]
pub(super) fn match_any_b64(mask: u32, value: u64) -> u32 {
    // SAFETY: the caller guarantees that all lanes of `mask` call it.
    unsafe { match_any_sync_b64(mask, value) }
}

/// Shuffles and matches of a word, with instructions on 32 or 64 bits.
macro_rules! word_shuffles {
    (u64) => {
        super::warp::word_shuffles!(@wide shfl_idx idx lane);
        super::warp::word_shuffles!(@wide shfl_up up delta);
        super::warp::word_shuffles!(@wide shfl_down down delta);
        super::warp::word_shuffles!(@wide shfl_xor xor lane_mask);

        #[inline(always)]
        fn match_any(self, mask: u32) -> u32 {
            super::warp::match_any_b64(mask, self)
        }

        #[inline(always)]
        fn match_all(self, mask: u32) -> bool {
            super::warp::match_any_b64(mask, self) == mask
        }
    };
    (@wide $name:ident $mode:ident $operand:ident) => {
        #[inline(always)]
        fn $name(self, mask: u32, $operand: u32, width: u32) -> u64 {
            let low = super::warp::$mode(mask, self as u32, $operand, width);
            let high = super::warp::$mode(mask, (self >> 32) as u32, $operand, width);
            u64::from(high) << 32 | u64::from(low)
        }
    };
    ($word:ident) => {
        super::warp::word_shuffles!(@narrow $word shfl_idx idx lane);
        super::warp::word_shuffles!(@narrow $word shfl_up up delta);
        super::warp::word_shuffles!(@narrow $word shfl_down down delta);
        super::warp::word_shuffles!(@narrow $word shfl_xor xor lane_mask);

        #[inline(always)]
        fn match_any(self, mask: u32) -> u32 {
            super::warp::match_any_b32(mask, self as u32)
        }

        #[inline(always)]
        fn match_all(self, mask: u32) -> bool {
            super::warp::match_any_b32(mask, self as u32) == mask
        }
    };
    (@narrow $word:ident $name:ident $mode:ident $operand:ident) => {
        #[inline(always)]
        fn $name(self, mask: u32, $operand: u32, width: u32) -> $word {
            super::warp::$mode(mask, self as u32, $operand, width) as $word
        }
    };
}
pub(super) use word_shuffles;

#[inline(always)]
pub(crate) fn ballot(mask: u32, predicate: bool) -> u32 {
    // SAFETY: the caller guarantees that all lanes of `mask` call it.
    unsafe { vote_ballot_sync(mask, predicate) }
}

#[inline(always)]
pub(crate) fn all(mask: u32, predicate: bool) -> bool {
    ballot(mask, predicate) == mask
}

#[inline(always)]
pub(crate) fn any(mask: u32, predicate: bool) -> bool {
    ballot(mask, predicate) != 0
}

macro_rules! reduce {
    ($($name:ident($word:ty) = $instruction:ident;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name(mask: u32, value: $word) -> $word {
            // SAFETY: the caller guarantees that all lanes of `mask` call it.
            unsafe { $instruction(value, mask) }
        }
    )*};
}

reduce! {
    reduce_add(u32) = redux_sync_add;
    reduce_min(u32) = redux_sync_min_u32;
    reduce_max(u32) = redux_sync_max_u32;
    reduce_min_signed(i32) = redux_sync_min_s32;
    reduce_max_signed(i32) = redux_sync_max_s32;
    reduce_xor(u32) = redux_sync_xor;
    reduce_or(u32) = redux_sync_or;
    reduce_and(u32) = redux_sync_and;
}
