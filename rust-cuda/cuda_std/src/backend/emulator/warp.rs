//! Shuffles, votes, match and reduce.

use simt::{Reduce, lane};

pub(crate) use lane::{all, any, ballot, lane_id, sync_warp};

macro_rules! reduce {
    ($($name:ident($word:ty) = $operation:ident;)*) => {$(
        #[inline(always)]
        #[track_caller]
        pub(crate) fn $name(mask: u32, value: $word) -> $word {
            lane::reduce(mask, value as u32, Reduce::$operation) as $word
        }
    )*};
}

reduce! {
    reduce_add(u32) = Add;
    reduce_min(u32) = MinUnsigned;
    reduce_max(u32) = MaxUnsigned;
    reduce_min_signed(i32) = MinSigned;
    reduce_max_signed(i32) = MaxSigned;
    reduce_xor(u32) = Xor;
    reduce_or(u32) = Or;
    reduce_and(u32) = And;
}
