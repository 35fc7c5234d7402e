//! Loads and stores of one, two or four words: global, global read-only, shared.

use crate::word::Word;
use core::arch::asm;

/// The registers of an access of one, two or four words in the syntax of PTX.
macro_rules! registers {
    (a) => {
        "{a}"
    };
    (a b) => {
        "{{{a}, {b}}}"
    };
    (a b c d) => {
        "{{{a}, {b}, {c}, {d}}}"
    };
}

/// A load instruction. Its value is the array of the loaded words.
macro_rules! load {
    (
        $instruction:expr, $address:ident: $space:ident, $word:ty, $register:ident: $carrier:ty, $options:tt,
        [$($out:ident)+]
    ) => {{
        $(let $out: $carrier;)+
        asm!(
            concat!($instruction, " ", registers!($($out)+), ", [{address}];"),
            address = in($space) $address,
            $($out = lateout($register) $out,)+
            options $options,
        );
        [$($out as $word),+]
    }};
}

/// A store instruction.
macro_rules! store {
    ($instruction:expr, $address:ident: $space:ident, $register:ident: $carrier:ty, [$($value:ident)+]) => {
        asm!(
            concat!($instruction, " [{address}], ", registers!($($value)+), ";"),
            address = in($space) $address,
            $($value = in($register) $value as $carrier,)+
            options(nostack),
        )
    };
}

/// The 64-bit product `a * b` (`mul.wide.u32`).
#[inline(always)]
pub(crate) fn mul_wide(a: u32, b: u32) -> u64 {
    let result: u64;
    // SAFETY: the instruction only reads and writes registers.
    unsafe {
        asm!(
            "mul.wide.u32 {result}, {a}, {b};",
            a = in(reg32) a,
            b = in(reg32) b,
            result = lateout(reg64) result,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    result
}

/// Converts between arrays of the same length, which the compiler cannot see: `M` equals `N` in every branch that runs.
#[inline(always)]
fn same_length<W: Copy, const M: usize, const N: usize>(words: [W; M]) -> [W; N] {
    core::array::from_fn(|i| words[i])
}

macro_rules! word_load {
    (
        $name:ident($address_type:ty: $space:ident) = $instruction:literal, $options:tt,
        $word:ty, $suffix:literal, $register:ident: $carrier:ty
    ) => {
        #[inline(always)]
        unsafe fn $name<const N: usize>(address: $address_type) -> [$word; N] {
            const { assert!(N == 1 || N == 2 || N == 4, "an access is of 1, 2 or 4 words") };
            // SAFETY: the caller guarantees that the words lie in an allocation, are aligned and initialised, and that
            // no other thread writes them.
            unsafe {
                match N {
                    1 => same_length(load!(
                        concat!($instruction, ".", $suffix),
                        address: $space, $word, $register: $carrier, $options, [a]
                    )),
                    2 => same_length(load!(
                        concat!($instruction, ".v2.", $suffix),
                        address: $space, $word, $register: $carrier, $options, [a b]
                    )),
                    // An instruction of sm_80 accesses at most 16 bytes.
                    _ if size_of::<$word>() == 8 => {
                        let [a, b] = Self::$name::<2>(address);
                        let [c, d] = Self::$name::<2>(address + 16);
                        same_length([a, b, c, d])
                    }
                    _ => same_length(load!(
                        concat!($instruction, ".v4.", $suffix),
                        address: $space, $word, $register: $carrier, $options, [a b c d]
                    )),
                }
            }
        }
    };
}

macro_rules! word_store {
    (
        $name:ident($address_type:ty: $space:ident) = $instruction:literal,
        $word:ty, $suffix:literal, $register:ident: $carrier:ty
    ) => {
        #[inline(always)]
        unsafe fn $name<const N: usize>(address: $address_type, words: [$word; N]) {
            const { assert!(N == 1 || N == 2 || N == 4, "an access is of 1, 2 or 4 words") };
            // SAFETY: the caller guarantees that the words lie in an allocation and are aligned, and that no other
            // thread accesses them.
            unsafe {
                match N {
                    1 => {
                        let [a] = same_length(words);
                        store!(concat!($instruction, ".", $suffix), address: $space, $register: $carrier, [a]);
                    }
                    2 => {
                        let [a, b] = same_length(words);
                        store!(concat!($instruction, ".v2.", $suffix), address: $space, $register: $carrier, [a b]);
                    }
                    _ if size_of::<$word>() == 8 => {
                        let [a, b, c, d] = same_length(words);
                        Self::$name(address, [a, b]);
                        Self::$name(address + 16, [c, d]);
                    }
                    _ => {
                        let [a, b, c, d] = same_length(words);
                        store!(concat!($instruction, ".v4.", $suffix), address: $space, $register: $carrier, [a b c d]);
                    }
                }
            }
        }
    };
}

macro_rules! word {
    ($word:ident, $suffix:literal, $register:ident: $carrier:ty) => {
        impl Word for $word {
            word_load!(load_global(u64: reg64) = "ld.global", (nostack), $word, $suffix, $register: $carrier);
            word_load!(
                load_read_only(u64: reg64) = "ld.global.nc", (pure, readonly, nostack),
                $word, $suffix, $register: $carrier
            );
            word_load!(
                load_streaming(u64: reg64) = "ld.global.cs.nc", (pure, readonly, nostack),
                $word, $suffix, $register: $carrier
            );
            word_load!(load_shared(u32: reg32) = "ld.shared", (nostack), $word, $suffix, $register: $carrier);
            word_store!(store_global(u64: reg64) = "st.global", $word, $suffix, $register: $carrier);
            word_store!(store_streaming(u64: reg64) = "st.global.cs", $word, $suffix, $register: $carrier);
            word_store!(store_shared(u32: reg32) = "st.shared", $word, $suffix, $register: $carrier);
            super::warp::word_shuffles!($word);
        }
    };
}

word!(u8, "u8", reg16: u16);
word!(u16, "b16", reg16: u16);
word!(u32, "b32", reg32: u32);
word!(u64, "b64", reg64: u64);
