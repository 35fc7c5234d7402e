//! The machine words that kernels load and store: relaxed atomics, so that a racing kernel is no race in the emulator.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

mod sealed {
    pub trait Sealed {}
}

/// An unsigned integer of 1, 2, 4 or 8 bytes: the unit of every memory access of a kernel. Floats travel as their bits.
pub trait Word: Copy + PartialEq + sealed::Sealed + 'static {
    /// # Safety
    ///
    /// `pointer` is valid for reads and aligned for `Self`, and is touched by others through [`Word`] only.
    #[doc(hidden)]
    unsafe fn load(pointer: *mut u8) -> Self;

    /// # Safety
    ///
    /// As for [`Word::load`], for writes.
    #[doc(hidden)]
    unsafe fn store(pointer: *mut u8, value: Self);

    /// Replaces the word by what `update` makes of it, atomically; gives the old value and whether one was written.
    ///
    /// # Safety
    ///
    /// As for [`Word::load`], for reads and writes.
    #[doc(hidden)]
    unsafe fn update(pointer: *mut u8, update: impl FnMut(Self) -> Option<Self>) -> (Self, bool);
}

macro_rules! words {
    ($($word:ty: $atomic:ty),*) => {$(
        impl sealed::Sealed for $word {}
        impl Word for $word {
            #[inline(always)]
            unsafe fn load(pointer: *mut u8) -> Self {
                // SAFETY: the caller's contract.
                unsafe { <$atomic>::from_ptr(pointer.cast()) }.load(Relaxed)
            }

            #[inline(always)]
            unsafe fn store(pointer: *mut u8, value: Self) {
                // SAFETY: the caller's contract.
                unsafe { <$atomic>::from_ptr(pointer.cast()) }.store(value, Relaxed);
            }

            #[inline(always)]
            unsafe fn update(
                pointer: *mut u8,
                update: impl FnMut(Self) -> Option<Self>,
            ) -> (Self, bool) {
                // SAFETY: the caller's contract.
                let word = unsafe { <$atomic>::from_ptr(pointer.cast()) };
                match word.fetch_update(Relaxed, Relaxed, update) {
                    Ok(old) => (old, true),
                    Err(old) => (old, false),
                }
            }
        }
    )*};
}

words!(u8: AtomicU8, u16: AtomicU16, u32: AtomicU32, u64: AtomicU64);

/// Copies out of memory that kernels may be writing.
///
/// # Safety
///
/// `from` is valid for `into.len()` bytes and is touched by others through [`Word`] only.
pub(crate) unsafe fn copy_out(from: *mut u8, into: &mut [u8]) {
    let head = from.align_offset(8).min(into.len());
    let (head, rest) = into.split_at_mut(head);
    let mut at = from;
    for byte in head {
        // SAFETY: `at` walks over the bytes of the range, once each.
        *byte = unsafe { u8::load(at) };
        at = at.wrapping_add(1);
    }
    let (words, tail) = rest.as_chunks_mut::<8>();
    for word in words {
        // SAFETY: `at` is 8-byte aligned and a whole word is left.
        *word = unsafe { u64::load(at) }.to_ne_bytes();
        at = at.wrapping_add(8);
    }
    for byte in tail {
        // SAFETY: as for the head.
        *byte = unsafe { u8::load(at) };
        at = at.wrapping_add(1);
    }
}

/// Copies into memory that kernels may be reading.
///
/// # Safety
///
/// `into` is valid for `from.len()` bytes and is touched by others through [`Word`] only.
pub(crate) unsafe fn copy_in(into: *mut u8, from: &[u8]) {
    let head = into.align_offset(8).min(from.len());
    let (head, rest) = from.split_at(head);
    let mut at = into;
    for &byte in head {
        // SAFETY: `at` walks over the bytes of the range, once each.
        unsafe { u8::store(at, byte) };
        at = at.wrapping_add(1);
    }
    let (words, tail) = rest.as_chunks::<8>();
    for &word in words {
        // SAFETY: `at` is 8-byte aligned and a whole word is left.
        unsafe { u64::store(at, u64::from_ne_bytes(word)) };
        at = at.wrapping_add(8);
    }
    for &byte in tail {
        // SAFETY: as for the head.
        unsafe { u8::store(at, byte) };
        at = at.wrapping_add(1);
    }
}
