//! The machine words that kernels load and store. Accesses are relaxed atomics, so a race in a kernel is no data race
//! in the emulator itself.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

mod sealed {
    pub trait Sealed {}
}

/// An unsigned integer of 1, 2, 4 or 8 bytes: the unit of memory accesses of a kernel. Floats are passed as their bits.
pub trait Word: Copy + PartialEq + sealed::Sealed + 'static {
    #[doc(hidden)]
    const ZERO: Self;

    /// # Safety
    ///
    /// `pointer` must be valid for reads and aligned for `Self`. All accesses to this memory must be those of [`Word`].
    #[doc(hidden)]
    unsafe fn load(pointer: *mut u8) -> Self;

    /// # Safety
    ///
    /// As for [`Word::load`], for writes.
    #[doc(hidden)]
    unsafe fn store(pointer: *mut u8, value: Self);

    /// Replaces the word by the result of `update`, atomically. Returns the old value and whether it wrote a new one.
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
            const ZERO: Self = 0;

            #[inline(always)]
            unsafe fn load(pointer: *mut u8) -> Self {
                // SAFETY: the pointer is valid, aligned, and only accessed as an atomic, by the contract of `load`.
                unsafe { <$atomic>::from_ptr(pointer.cast()) }.load(Relaxed)
            }

            #[inline(always)]
            unsafe fn store(pointer: *mut u8, value: Self) {
                // SAFETY: as in `load`, by the contract of `store`.
                unsafe { <$atomic>::from_ptr(pointer.cast()) }.store(value, Relaxed);
            }

            #[inline(always)]
            unsafe fn update(
                pointer: *mut u8,
                update: impl FnMut(Self) -> Option<Self>,
            ) -> (Self, bool) {
                // SAFETY: as in `load`, by the contract of `update`.
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

/// Copies from memory that kernels may write meanwhile.
///
/// # Safety
///
/// `from` must be valid for reads of `into.len()` bytes. All other accesses to this memory must be those of [`Word`].
pub(crate) unsafe fn copy_out(from: *mut u8, into: &mut [u8]) {
    let head = from.align_offset(8).min(into.len());
    let (head, rest) = into.split_at_mut(head);
    let mut at = from;
    for byte in head {
        // SAFETY: `at` visits each byte of the range once, so it is valid; a byte is always aligned.
        *byte = unsafe { u8::load(at) };
        at = at.wrapping_add(1);
    }
    let (words, tail) = rest.as_chunks_mut::<8>();
    for word in words {
        // SAFETY: after the head, `at` is a multiple of 8, and a whole word of the range is left.
        *word = unsafe { u64::load(at) }.to_ne_bytes();
        at = at.wrapping_add(8);
    }
    for byte in tail {
        // SAFETY: as for the head.
        *byte = unsafe { u8::load(at) };
        at = at.wrapping_add(1);
    }
}

/// Copies to memory that kernels may read meanwhile.
///
/// # Safety
///
/// `into` must be valid for writes of `from.len()` bytes. All other accesses to this memory must be those of [`Word`].
pub(crate) unsafe fn copy_in(into: *mut u8, from: &[u8]) {
    let head = into.align_offset(8).min(from.len());
    let (head, rest) = from.split_at(head);
    let mut at = into;
    for &byte in head {
        // SAFETY: `at` visits each byte of the range once, so it is valid; a byte is always aligned.
        unsafe { u8::store(at, byte) };
        at = at.wrapping_add(1);
    }
    let (words, tail) = rest.as_chunks::<8>();
    for &word in words {
        // SAFETY: after the head, `at` is a multiple of 8, and a whole word of the range is left.
        unsafe { u64::store(at, u64::from_ne_bytes(word)) };
        at = at.wrapping_add(8);
    }
    for &byte in tail {
        // SAFETY: as for the head.
        unsafe { u8::store(at, byte) };
        at = at.wrapping_add(1);
    }
}
