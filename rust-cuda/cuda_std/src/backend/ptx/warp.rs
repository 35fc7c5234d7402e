//! Shuffles, votes, match and reduce.

use core::arch::asm;

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
    // SAFETY: the caller guarantees that all lanes of `mask` call it; the assembly clobbers memory.
    unsafe { asm!("bar.warp.sync {mask};", mask = in(reg32) mask, options(nostack)) }
}

/// The third operand of `shfl`: the segment mask in bits 8 to 12, and the clamp value in bits 0 to 4.
#[inline(always)]
const fn segment(width: u32, clamp: u32) -> u32 {
    ((32 - width) << 8) | clamp
}

macro_rules! shuffle {
    ($($name:ident = $mode:literal, clamp $clamp:literal;)*) => {$(
        #[inline(always)]
        pub(super) fn $name(mask: u32, value: u32, operand: u32, width: u32) -> u32 {
            let result: u32;
            // SAFETY: the caller guarantees that all lanes of `mask` call it.
            unsafe {
                asm!(
                    concat!("shfl.sync.", $mode, ".b32 {result}, {value}, {operand}, {segment}, {mask};"),
                    value = in(reg32) value,
                    operand = in(reg32) operand,
                    segment = in(reg32) segment(width, $clamp),
                    mask = in(reg32) mask,
                    result = lateout(reg32) result,
                    options(nomem, nostack, preserves_flags),
                );
            }
            result
        }
    )*};
}

shuffle! {
    idx = "idx", clamp 31;
    up = "up", clamp 0;
    down = "down", clamp 31;
    xor = "bfly", clamp 31;
}

#[inline(always)]
pub(super) fn match_any_b32(mask: u32, value: u32) -> u32 {
    let lanes: u32;
    // SAFETY: the caller guarantees that all lanes of `mask` call it.
    unsafe {
        asm!(
            "match.any.sync.b32 {lanes}, {value}, {mask};",
            value = in(reg32) value,
            mask = in(reg32) mask,
            lanes = lateout(reg32) lanes,
            options(nomem, nostack, preserves_flags),
        );
    }
    lanes
}

#[inline(always)]
pub(super) fn match_any_b64(mask: u32, value: u64) -> u32 {
    let lanes: u32;
    // SAFETY: the caller guarantees that all lanes of `mask` call it.
    unsafe {
        asm!(
            "match.any.sync.b64 {lanes}, {value}, {mask};",
            value = in(reg64) value,
            mask = in(reg32) mask,
            lanes = lateout(reg32) lanes,
            options(nomem, nostack, preserves_flags),
        );
    }
    lanes
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
    let lanes: u32;
    // SAFETY: the caller guarantees that all lanes of `mask` call it.
    unsafe {
        asm!(
            "{{ .reg .pred p; setp.ne.u32 p, {predicate}, 0; vote.sync.ballot.b32 {lanes}, p, {mask}; }}",
            predicate = in(reg32) u32::from(predicate),
            mask = in(reg32) mask,
            lanes = lateout(reg32) lanes,
            options(nomem, nostack, preserves_flags),
        );
    }
    lanes
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
    ($($name:ident($word:ty) = $operation:literal;)*) => {$(
        #[inline(always)]
        pub(crate) fn $name(mask: u32, value: $word) -> $word {
            let result: $word;
            // SAFETY: the caller guarantees that all lanes of `mask` call it.
            unsafe {
                asm!(
                    concat!("redux.sync.", $operation, " {result}, {value}, {mask};"),
                    value = in(reg32) value,
                    mask = in(reg32) mask,
                    result = lateout(reg32) result,
                    options(nomem, nostack, preserves_flags),
                );
            }
            result
        }
    )*};
}

reduce! {
    reduce_add(u32) = "add.u32";
    reduce_min(u32) = "min.u32";
    reduce_max(u32) = "max.u32";
    reduce_min_signed(i32) = "min.s32";
    reduce_max_signed(i32) = "max.s32";
    reduce_xor(u32) = "xor.b32";
    reduce_or(u32) = "or.b32";
    reduce_and(u32) = "and.b32";
}
