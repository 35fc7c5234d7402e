//! Atomic operations: each is an atomic update of a word.

use crate::element::Element;
use crate::scope::Scope;
use crate::word::{AtomicArithmetic, AtomicOrder, AtomicWord};
use simt::{Space, Word, lane};

fn scope(scope: Scope) -> simt::Scope {
    match scope {
        Scope::Block => simt::Scope::Block,
        Scope::Device => simt::Scope::Device,
        Scope::System => simt::Scope::System,
    }
}

#[inline(never)]
#[track_caller]
fn global<W: Word>(at: Scope, address: u64, update: impl FnMut(W) -> Option<W>) -> W {
    lane::atomic(Space::Global, scope(at), address, update)
}

#[inline(never)]
#[track_caller]
fn shared<W: Word>(address: u32, update: impl FnMut(W) -> Option<W>) -> W {
    lane::atomic(
        Space::Shared,
        simt::Scope::Block,
        u64::from(address),
        update,
    )
}

macro_rules! atomic_word {
    ($($word:ident)*) => {$(
        impl AtomicWord for $word {
            #[inline(never)]
            #[track_caller]
            unsafe fn load_atomic(scope: Scope, address: u64) -> $word {
                lane::atomic_load(Space::Global, self::scope(scope), address)
            }

            #[inline(never)]
            #[track_caller]
            unsafe fn store_atomic(scope: Scope, address: u64, value: $word) {
                lane::atomic_store(Space::Global, self::scope(scope), address, value);
            }

            #[inline(never)]
            #[track_caller]
            unsafe fn exchange_global(scope: Scope, address: u64, value: $word) -> $word {
                global(scope, address, |_| Some(value))
            }

            #[inline(never)]
            #[track_caller]
            unsafe fn exchange_shared(address: u32, value: $word) -> $word {
                shared(address, |_| Some(value))
            }

            #[inline(never)]
            #[track_caller]
            unsafe fn compare_exchange_global(scope: Scope, address: u64, expected: $word, new: $word) -> $word {
                global(scope, address, |old| (old == expected).then_some(new))
            }

            #[inline(never)]
            #[track_caller]
            unsafe fn compare_exchange_shared(address: u32, expected: $word, new: $word) -> $word {
                shared(address, |old| (old == expected).then_some(new))
            }
        }
    )*};
}
atomic_word!(u32 u64);

/// An update of an element in global memory, and the same one in shared memory.
macro_rules! update {
    ($global:ident $shared:ident, $element:ident, |$old:ident, $value:ident| $new:expr) => {
        #[inline(never)]
        #[track_caller]
        unsafe fn $global(scope: Scope, address: u64, $value: $element) -> $element {
            <$element as Element>::from_bits(global(scope, address, |bits| {
                let $old = <$element as Element>::from_bits(bits);
                Some(<$element as Element>::to_bits($new))
            }))
        }

        #[inline(never)]
        #[track_caller]
        unsafe fn $shared(address: u32, $value: $element) -> $element {
            <$element as Element>::from_bits(shared(address, |bits| {
                let $old = <$element as Element>::from_bits(bits);
                Some(<$element as Element>::to_bits($new))
            }))
        }
    };
}

macro_rules! arithmetic {
    ($($element:ident: |$old:ident, $value:ident| $sum:expr;)*) => {$(
        impl AtomicArithmetic for $element {
            update!(add_global add_shared, $element, |$old, $value| $sum);

            #[inline(never)]
            #[track_caller]
            unsafe fn reduce_add_global(scope: Scope, address: u64, value: $element) {
                lane::atomic_reduction(Space::Global, self::scope(scope), address, |bits| {
                    let $old = <$element as Element>::from_bits(bits);
                    let $value = value;
                    <$element as Element>::to_bits($sum)
                });
            }
        }
    )*};
}

arithmetic! {
    u32: |old, value| old.wrapping_add(value);
    i32: |old, value| old.wrapping_add(value);
    u64: |old, value| old.wrapping_add(value);
    i64: |old, value| old.wrapping_add(value);
    f32: |old, value| old + value;
    f64: |old, value| old + value;
}

macro_rules! order {
    ($($element:ident)*) => {$(
        impl AtomicOrder for $element {
            update!(min_global min_shared, $element, |old, value| old.min(value));
            update!(max_global max_shared, $element, |old, value| old.max(value));
        }
    )*};
}
order!(u32 i32 u64 i64);

#[inline(never)]
#[track_caller]
pub(crate) unsafe fn or_shared(address: u32, value: u32) -> u32 {
    shared(address, |old: u32| Some(old | value))
}
