//! The machine words that kernels load and store, and how they are accessed in global memory.
//!
//! All accesses to global memory are relaxed atomic accesses of aligned units of 4 bytes, whatever the size of the
//! word. So a race in a kernel is no data race in the emulator itself, and atomics of different sizes never overlap.
//! An 8-byte word consists of two units; atomic operations on it need a lock, which [`update`] asks for.

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

/// An aligned unit.
///
/// # Safety
///
/// The unit must be aligned, and valid for `'a`. All accesses to it must be those of this module.
#[inline(always)]
unsafe fn unit<'a>(pointer: *mut u8) -> &'a AtomicU32 {
    // SAFETY: the unit is valid, aligned and only accessed as an atomic, by the contract.
    unsafe { AtomicU32::from_ptr(pointer.cast()) }
}

/// The unit that contains a byte, and the position of the byte in it, in bits.
///
/// # Safety
///
/// As for [`unit`], except that the pointer need not be aligned.
#[inline(always)]
unsafe fn unit_around<'a>(pointer: *mut u8) -> (&'a AtomicU32, usize) {
    let within = pointer.addr() % UNIT;
    // SAFETY: by the contract of this function.
    (unsafe { unit(pointer.wrapping_sub(within)) }, 8 * within)
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
    let half = |offset| unsafe { unit(pointer.wrapping_add(offset)) }.load(Relaxed);
    W::narrow(match size_of::<W>() {
        8 => u64::from(half(0)) | u64::from(half(UNIT)) << 32,
        4 => half(0).into(),
        _ => {
            // SAFETY: by the contract of this function.
            let (unit, shift) = unsafe { unit_around(pointer) };
            (unit.load(Relaxed) >> shift).into()
        }
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
    // SAFETY: by the contract of this function; words that fill units start at one.
    let unit = |offset| unsafe { unit(pointer.wrapping_add(offset)) };
    match size {
        8 => {
            for (i, value) in values.into_iter().enumerate() {
                let bits = value.widen();
                unit(size * i).store(bits as u32, Relaxed);
                unit(size * i + UNIT).store((bits >> 32) as u32, Relaxed);
            }
        }
        _ if size * N >= UNIT => {
            for (i, words) in values.chunks(UNIT / size).enumerate() {
                let joined = |bits, word: &W| bits << (8 * size % 32) | word.widen() as u32;
                unit(UNIT * i).store(words.iter().rev().fold(0, joined), Relaxed);
            }
        }
        _ => {
            for (i, value) in values.into_iter().enumerate() {
                // SAFETY: by the contract of this function.
                let (unit, shift) = unsafe { unit_around(pointer.wrapping_add(size * i)) };
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

#[cfg(test)]
mod tests {
    use super::{Word, copy_in, copy_out, load, store, update};
    use crate::memory::allocations::AlignedBytes;
    use crate::memory::buffer::Zeroed;

    /// The memory that the threads of a test access at the same time.
    fn shared_bytes(threads: &[&(dyn Fn(*mut u8) + Sync)]) {
        let memory = Zeroed::<AlignedBytes>::new(2);
        std::thread::scope(|scope| {
            for thread in threads {
                let memory = &memory;
                scope.spawn(move || (0..20).for_each(|_| thread(memory.pointer().cast())));
            }
        });
    }

    fn copies<W: Word + Sync, const N: usize>(at: usize, value: W) -> impl Fn(*mut u8) + Sync {
        move |memory| {
            // SAFETY: all accesses lie in the 32 bytes, are aligned, and are those of this module.
            unsafe {
                store(memory.add(at), [value; N]);
                load::<W>(memory.add(at));
            }
        }
    }

    /// With mixed sizes that overlap, Miri would report undefined behaviour.
    #[test]
    fn threads_access_overlapping_words_of_all_sizes_at_the_same_time() {
        shared_bytes(&[
            &copies::<u8, 1>(9, 1),
            &copies::<u8, 4>(8, 2),
            &copies::<u16, 1>(10, 3),
            &copies::<u16, 4>(8, 4),
            &copies::<u32, 2>(8, 5),
            &copies::<u64, 2>(0, 6),
            &|memory| {
                let mut bytes = [0; 17];
                // SAFETY: as in `copies`.
                unsafe {
                    copy_out(memory.add(3), &mut bytes);
                    copy_in(memory.add(6), &bytes);
                }
            },
        ]);
    }

    #[test]
    fn words_that_share_a_unit_lose_no_write() {
        let memory = Zeroed::<AlignedBytes>::new(1);
        std::thread::scope(|scope| {
            for byte in 0..4_usize {
                let memory = &memory;
                scope.spawn(move || {
                    for _ in 0..100 {
                        // SAFETY: as in `copies`; each thread updates a byte of its own.
                        unsafe {
                            let byte = memory.pointer().cast::<u8>().add(byte);
                            update(byte, |old: u8| Some(old.wrapping_add(1)));
                        }
                    }
                });
            }
        });
        // SAFETY: as in `copies`.
        assert_eq!(unsafe { load::<u32>(memory.pointer().cast()) }, 0x6464_6464);
    }

    #[test]
    fn words_of_all_sizes_lie_in_memory_as_the_machine_stores_them() {
        let memory = Zeroed::<AlignedBytes>::new(2);
        let at = |offset| memory.pointer().cast::<u8>().wrapping_add(offset);
        let mut bytes = [0; 32];
        // SAFETY: as in `copies`.
        unsafe {
            store(at(0), [0x0123_4567_89ab_cdef_u64]);
            store(at(8), [0x0102_u16, 0x0304, 0x0506, 0x0708]);
            store(at(17), [0x11_u8]);
            store(at(18), [0x2233_u16]);
            store(at(20), [1_u8, 2, 3, 4]);
            store(at(24), [0xa0b0_c0d0_u32, 5]);
            assert_eq!(
                update(at(24), |old: u64| Some(old + (1 << 32))),
                (0x5_a0b0_c0d0, true)
            );
            assert_eq!(load::<u16>(at(10)), 0x0304);
            assert_eq!(load::<u8>(at(22)), 3);
            copy_out(at(0), &mut bytes);
        }
        let mut expected = Vec::new();
        expected.extend(0x0123_4567_89ab_cdef_u64.to_ne_bytes());
        expected.extend(
            [0x0102_u16, 0x0304, 0x0506, 0x0708]
                .iter()
                .flat_map(|word| word.to_ne_bytes()),
        );
        expected.extend([0, 0x11, 0x33, 0x22, 1, 2, 3, 4]);
        expected.extend(
            [0xa0b0_c0d0_u32, 6]
                .iter()
                .flat_map(|word| word.to_ne_bytes()),
        );
        assert_eq!(bytes.to_vec(), expected);
    }
}
