//! The machine words that kernels load and store, and how they are accessed in global memory.
//!
//! All accesses to global memory are relaxed atomic accesses of aligned units of 4 bytes, whatever the size of the word.
//! So a race in a kernel is no data race in the emulator itself, and atomics of different sizes never overlap. An
//! 8-byte word consists of two units; atomic operations on it need a lock, which [`update`] asks for.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const UNIT: usize = size_of::<AtomicU32>();

// Words smaller than a unit are found by shifts, the first one in the lowest bits.
const _: () = assert!(cfg!(target_endian = "little"));

mod sealed {
    pub trait Sealed {}
}

/// An unsigned integer of 1, 2, 4 or 8 bytes: the unit of memory accesses of a kernel. Floats are passed as their bits.
pub trait Word: Copy + PartialEq + sealed::Sealed + 'static {
    #[doc(hidden)]
    fn widen(self) -> u64;

    /// The lowest bits of `bits`.
    #[doc(hidden)]
    fn narrow(bits: u64) -> Self;
}

macro_rules! words {
    ($($word:ty)*) => {$(
        impl sealed::Sealed for $word {}
        impl Word for $word {
            #[inline(always)]
            fn widen(self) -> u64 {
                self as u64
            }

            #[inline(always)]
            fn narrow(bits: u64) -> Self {
                bits as Self
            }
        }
    )*};
}

words!(u8 u16 u32 u64);

/// The unit that contains a byte, and the position of the byte in it, in bits.
///
/// # Safety
///
/// The unit must be valid for `'a`, and all accesses to it must be those of this module.
#[inline(always)]
unsafe fn unit<'a>(pointer: *mut u8) -> (&'a AtomicU32, usize) {
    let within = pointer.addr() % UNIT;
    // SAFETY: the pointer is that of an aligned unit, which is valid and only accessed as an atomic, by the contract.
    let unit = unsafe { AtomicU32::from_ptr(pointer.wrapping_sub(within).cast()) };
    (unit, 8 * within)
}

/// Loads a word.
///
/// # Safety
///
/// `pointer` must be aligned for `W`. The units of the word must be valid, and all accesses to them must be those of
/// this module.
#[inline(always)]
pub(crate) unsafe fn load<W: Word>(pointer: *mut u8) -> W {
    // SAFETY: by the contract of this function; a word of 8 bytes consists of two units.
    let unit = |offset| unsafe { unit(pointer.wrapping_add(offset)) };
    let half = |offset| u64::from(unit(offset).0.load(Relaxed));
    W::narrow(match size_of::<W>() {
        8 => half(0) | half(UNIT) << 32,
        4 => half(0),
        _ => half(0) >> unit(0).1,
    })
}

/// Stores consecutive words.
///
/// # Safety
///
/// As for [`load`], for each word; `pointer` must be aligned for all words together.
#[inline(always)]
pub(crate) unsafe fn store<W: Word, const N: usize>(pointer: *mut u8, values: [W; N]) {
    let size = size_of::<W>();
    // SAFETY: by the contract of this function.
    let unit = |offset| unsafe { unit(pointer.wrapping_add(offset)) };
    match size {
        8 => {
            for (i, value) in values.into_iter().enumerate() {
                let bits = value.widen();
                unit(size * i).0.store(bits as u32, Relaxed);
                unit(size * i + UNIT).0.store((bits >> 32) as u32, Relaxed);
            }
        }
        _ if size * N >= UNIT => {
            for (i, words) in values.chunks(UNIT / size).enumerate() {
                let joined = |bits, word: &W| bits << (8 * size % 32) | word.widen() as u32;
                let bits = words.iter().rev().fold(0, joined);
                unit(UNIT * i).0.store(bits, Relaxed);
            }
        }
        _ => {
            for (i, value) in values.into_iter().enumerate() {
                let (unit, shift) = unit(size * i);
                replace(unit, shift, value);
            }
        }
    }
}

/// Replaces the part of a unit that holds a smaller word.
#[inline(always)]
fn replace<W: Word>(unit: &AtomicU32, shift: usize, value: W) {
    let mask = ((1_u64 << (8 * size_of::<W>())) - 1) as u32;
    let new = (value.widen() as u32) << shift;
    unit.fetch_update(Relaxed, Relaxed, |old| Some(old & !(mask << shift) | new))
        .expect("the update is never refused");
}

/// Replaces a word by the result of `update`. Returns the old value and whether it wrote a new one.
///
/// It is atomic among the calls of `update` on the word, which must exclude each other.
///
/// # Safety
///
/// As for [`load`].
#[inline(always)]
pub(crate) unsafe fn update<W: Word>(
    pointer: *mut u8,
    update: impl FnOnce(W) -> Option<W>,
) -> (W, bool) {
    // SAFETY: by the contract of this function.
    let old = unsafe { load(pointer) };
    let new = update(old);
    if let Some(new) = new {
        // SAFETY: as above.
        unsafe { store(pointer, [new]) };
    }
    (old, new.is_some())
}

/// Copies from memory that kernels may write meanwhile.
///
/// # Safety
///
/// All units of `into.len()` bytes from `from` must be valid, and all accesses to them must be those of this module.
pub(crate) unsafe fn copy_out(from: *mut u8, into: &mut [u8]) {
    let head = from.align_offset(UNIT).min(into.len());
    let (head, rest) = into.split_at_mut(head);
    let mut at = from;
    for byte in head {
        // SAFETY: `at` visits each byte of the range once, so it is valid; a byte is always aligned.
        *byte = unsafe { load(at) };
        at = at.wrapping_add(1);
    }
    let (units, tail) = rest.as_chunks_mut::<UNIT>();
    for unit in units {
        // SAFETY: after the head, `at` is aligned, and a whole unit of the range is left.
        *unit = unsafe { load::<u32>(at) }.to_ne_bytes();
        at = at.wrapping_add(UNIT);
    }
    for byte in tail {
        // SAFETY: as for the head.
        *byte = unsafe { load(at) };
        at = at.wrapping_add(1);
    }
}

/// Copies to memory that kernels may read meanwhile.
///
/// # Safety
///
/// As for [`copy_out`], for the range from `into`.
pub(crate) unsafe fn copy_in(into: *mut u8, from: &[u8]) {
    let head = into.align_offset(UNIT).min(from.len());
    let (head, rest) = from.split_at(head);
    let mut at = into;
    for &byte in head {
        // SAFETY: `at` visits each byte of the range once, so it is valid; a byte is always aligned.
        unsafe { store(at, [byte]) };
        at = at.wrapping_add(1);
    }
    let (units, tail) = rest.as_chunks::<UNIT>();
    for &unit in units {
        // SAFETY: after the head, `at` is aligned, and a whole unit of the range is left.
        unsafe { store(at, [u32::from_ne_bytes(unit)]) };
        at = at.wrapping_add(UNIT);
    }
    for &byte in tail {
        // SAFETY: as for the head.
        unsafe { store(at, [byte]) };
        at = at.wrapping_add(1);
    }
}
