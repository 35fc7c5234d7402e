//! Atomic instructions: `atom` and `red` on global and shared memory.

use crate::scope::Scope;
use crate::word::{AtomicArithmetic, AtomicOrder, AtomicWord};
use core::arch::asm;

/// An `atom` instruction with the given operands. Its value is the old value.
macro_rules! atom {
    ($instruction:expr, $address:ident: $space:ident, $register:ident: $type:ty, [$($operand:ident)+]) => {{
        let old: $type;
        asm!(
            concat!($instruction, " {old}, [{address}]", $(", {", stringify!($operand), "}",)+ ";"),
            address = in($space) $address,
            $($operand = in($register) $operand,)+
            old = lateout($register) old,
            options(nostack),
        );
        old
    }};
}

/// An instruction in one of three scopes. The scope is a constant after inlining.
macro_rules! at_scope {
    ($scope:ident, $prefix:literal, $suffix:expr, $instruction:ident $rest:tt) => {
        match $scope {
            Scope::Block => at_scope!(@ concat!($prefix, ".cta.", $suffix), $instruction $rest),
            Scope::Device => at_scope!(@ concat!($prefix, ".gpu.", $suffix), $instruction $rest),
            Scope::System => at_scope!(@ concat!($prefix, ".sys.", $suffix), $instruction $rest),
        }
    };
    (@ $name:expr, $instruction:ident ($($rest:tt)*)) => { $instruction!($name, $($rest)*) };
}

/// A `red` or `st` instruction: it returns nothing.
macro_rules! red {
    ($instruction:expr, $address:ident, $register:ident, $value:ident) => {
        asm!(
            concat!($instruction, " [{address}], {value};"),
            address = in(reg64) $address,
            value = in($register) $value,
            options(nostack),
        )
    };
}

/// A `ld.relaxed` instruction.
macro_rules! relaxed_load {
    ($instruction:expr, $address:ident, $register:ident: $type:ty) => {{
        let value: $type;
        asm!(
            concat!($instruction, " {value}, [{address}];"),
            address = in(reg64) $address,
            value = lateout($register) value,
            options(nostack),
        );
        value
    }};
}

macro_rules! atomic_word {
    ($word:ident, $register:ident, $bits:literal) => {
        impl AtomicWord for $word {
            #[inline(always)]
            unsafe fn load_atomic(scope: Scope, address: u64) -> $word {
                // SAFETY: the caller guarantees a valid, aligned address; the assembly clobbers memory.
                unsafe {
                    at_scope!(
                        scope,
                        "ld.relaxed",
                        concat!("global.", $bits),
                        relaxed_load(address, $register: $word)
                    )
                }
            }

            #[inline(always)]
            unsafe fn store_atomic(scope: Scope, address: u64, value: $word) {
                // SAFETY: the caller guarantees a valid, aligned address; the assembly clobbers memory.
                unsafe { at_scope!(scope, "st.relaxed", concat!("global.", $bits), red(address, $register, value)) }
            }

            #[inline(always)]
            unsafe fn exchange_global(scope: Scope, address: u64, value: $word) -> $word {
                // SAFETY: the caller guarantees a valid, aligned address; the assembly clobbers memory.
                unsafe {
                    at_scope!(
                        scope,
                        "atom.relaxed",
                        concat!("global.exch.", $bits),
                        atom(address: reg64, $register: $word, [value])
                    )
                }
            }

            #[inline(always)]
            unsafe fn exchange_shared(address: u32, value: $word) -> $word {
                // SAFETY: the caller guarantees a valid, aligned address; the assembly clobbers memory.
                unsafe {
                    atom!(
                        concat!("atom.relaxed.cta.shared.exch.", $bits),
                        address: reg32, $register: $word,
                        [value]
                    )
                }
            }

            #[inline(always)]
            unsafe fn compare_exchange_global(scope: Scope, address: u64, expected: $word, new: $word) -> $word {
                // SAFETY: the caller guarantees a valid, aligned address; the assembly clobbers memory.
                unsafe {
                    at_scope!(
                        scope,
                        "atom.relaxed",
                        concat!("global.cas.", $bits),
                        atom(address: reg64, $register: $word, [expected new])
                    )
                }
            }

            #[inline(always)]
            unsafe fn compare_exchange_shared(address: u32, expected: $word, new: $word) -> $word {
                // SAFETY: the caller guarantees a valid, aligned address; the assembly clobbers memory.
                unsafe {
                    atom!(
                        concat!("atom.relaxed.cta.shared.cas.", $bits),
                        address: reg32, $register: $word,
                        [expected new]
                    )
                }
            }
        }
    };
}
atomic_word!(u32, reg32, "b32");
atomic_word!(u64, reg64, "b64");

macro_rules! arithmetic {
    ($element:ident, $register:ident, $type:literal) => {
        impl AtomicArithmetic for $element {
            #[inline(always)]
            unsafe fn add_global(scope: Scope, address: u64, value: $element) -> $element {
                // SAFETY: the caller guarantees a valid, aligned address; the assembly clobbers memory.
                unsafe {
                    at_scope!(
                        scope,
                        "atom.relaxed",
                        concat!("global.add.", $type),
                        atom(address: reg64, $register: $element, [value])
                    )
                }
            }

            #[inline(always)]
            unsafe fn add_shared(address: u32, value: $element) -> $element {
                // SAFETY: the caller guarantees a valid, aligned address; the assembly clobbers memory.
                unsafe {
                    atom!(
                        concat!("atom.relaxed.cta.shared.add.", $type),
                        address: reg32, $register: $element,
                        [value]
                    )
                }
            }

            #[inline(always)]
            unsafe fn reduce_add_global(scope: Scope, address: u64, value: $element) {
                // SAFETY: the caller guarantees a valid, aligned address; the assembly clobbers memory.
                unsafe {
                    at_scope!(
                        scope,
                        "red.relaxed",
                        concat!("global.add.", $type),
                        red(address, $register, value)
                    )
                }
            }
        }
    };
}
// PTX has no `.s64` form; in two's complement, signed and unsigned addition are the same.
arithmetic!(u32, reg32, "u32");
arithmetic!(i32, reg32, "u32");
arithmetic!(u64, reg64, "u64");
arithmetic!(i64, reg64, "u64");
arithmetic!(f32, reg32, "f32");
arithmetic!(f64, reg64, "f64");

macro_rules! order {
    ($element:ident, $register:ident, $type:literal) => {
        impl AtomicOrder for $element {
            order!(@ min_global min_shared "min", $element, $register, $type);
            order!(@ max_global max_shared "max", $element, $register, $type);
        }
    };
    (@ $global:ident $shared:ident $operation:literal, $element:ident, $register:ident, $type:literal) => {
        #[inline(always)]
        unsafe fn $global(scope: Scope, address: u64, value: $element) -> $element {
            // SAFETY: the caller guarantees a valid, aligned address; the assembly clobbers memory.
            unsafe {
                at_scope!(
                    scope,
                    "atom.relaxed",
                    concat!("global.", $operation, ".", $type),
                    atom(address: reg64, $register: $element, [value])
                )
            }
        }

        #[inline(always)]
        unsafe fn $shared(address: u32, value: $element) -> $element {
            // SAFETY: the caller guarantees a valid, aligned address; the assembly clobbers memory.
            unsafe {
                atom!(
                    concat!("atom.relaxed.cta.shared.", $operation, ".", $type),
                    address: reg32, $register: $element,
                    [value]
                )
            }
        }
    };
}
order!(u32, reg32, "u32");
order!(i32, reg32, "s32");
order!(u64, reg64, "u64");
order!(i64, reg64, "s64");

/// `atom.or` on shared memory.
#[inline(always)]
pub(crate) unsafe fn or_shared(address: u32, value: u32) -> u32 {
    // SAFETY: the caller guarantees a valid, aligned address; the assembly clobbers memory.
    unsafe { atom!("atom.relaxed.cta.shared.or.b32", address: reg32, reg32: u32, [value]) }
}
