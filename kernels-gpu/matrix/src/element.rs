//! The element types of dense matrices, and the types in which their products are summed.

use cuda_std::float::{Float16, Narrow};
use cuda_std::prelude::*;

/// An element type of a dense matrix: f32, f64, f16 or bf16. Products and sums have the type
/// [`Sum`](Self::Sum): 16-bit elements are multiplied and summed in f32.
pub trait Operand: Element {
    /// f32 for the 16-bit types; the type itself for f32 and f64.
    type Sum: Real + Operand<Sum = Self::Sum>;

    /// Converts an element to the type of sums; exact.
    fn widen(self) -> Self::Sum;

    /// Rounds a sum to the nearest element.
    fn narrow(sum: Self::Sum) -> Self;

    /// The first sums, as many as 16 bytes have elements, rounded and packed in memory order.
    fn words(sums: [Self::Sum; 8]) -> [u32; 4];

    /// Up to `MAX_WIDTH` neighbouring elements, as they stand in memory. Two 16-bit elements stay
    /// packed in a register until they are used, because a kernel has many loads in flight.
    type Vector: Copy;

    /// Maximum number of elements that a lane loads at once: those of 16 bytes; for f64 four, which
    /// take two loads.
    const MAX_WIDTH: usize;

    /// A placeholder for a vector that was not loaded.
    const ABSENT: Self::Vector;

    /// Loads `WIDTH` elements from `index` on. `WIDTH` is 1, 2, 4 or 8, and at most `MAX_WIDTH`.
    ///
    /// # Safety
    ///
    /// The elements exist and nothing writes them, as [`cuda_std::memory`] asks. The address is a
    /// multiple of `WIDTH` elements.
    #[track_caller]
    unsafe fn load<const WIDTH: usize>(from: Global<Self>, index: usize) -> Self::Vector;

    /// As [`load`](Self::load), from memory that the kernel may write.
    ///
    /// # Safety
    ///
    /// As for [`load`](Self::load), but only that no other thread writes the elements at the same
    /// time.
    #[track_caller]
    unsafe fn load_mut<const WIDTH: usize>(from: GlobalMut<Self>, index: usize) -> Self::Vector;

    /// As [`load`](Self::load), from shared memory.
    ///
    /// # Safety
    ///
    /// The elements have been stored, and no other thread writes them at the same time. The address
    /// is a multiple of `WIDTH` elements.
    #[track_caller]
    unsafe fn load_shared<const WIDTH: usize>(from: Shared<Self>, index: usize) -> Self::Vector;

    /// The element at `index` of a vector, converted to the type of sums; exact.
    fn get(vector: &Self::Vector, index: usize) -> Self::Sum;

    /// Stores `numbers`, each rounded to the nearest element, from `index` on. `WIDTH` is 1, 2, 4
    /// or 8.
    ///
    /// # Safety
    ///
    /// The elements exist, and no other thread accesses them at the same time. The address is a
    /// multiple of `WIDTH` elements.
    #[track_caller]
    unsafe fn store<const WIDTH: usize>(
        to: GlobalMut<Self>,
        index: usize,
        numbers: [Self::Sum; WIDTH],
    );

    /// As [`store`](Self::store), for elements that the kernel does not read again: caches evict
    /// them first.
    ///
    /// # Safety
    ///
    /// As for [`store`](Self::store).
    #[track_caller]
    unsafe fn store_streaming<const WIDTH: usize>(
        to: GlobalMut<Self>,
        index: usize,
        numbers: [Self::Sum; WIDTH],
    );
}

/// The type of `T`'s sums, in a form that `#[kernel]` understands in a list of arguments.
pub type SumOf<T> = <T as Operand>::Sum;

/// Loads of f32 and f64 vectors: arrays of four elements, of which the first `WIDTH` are loaded.
macro_rules! load_wide {
    ($name:ident($pointer:ident)) => {
        #[inline(always)]
        unsafe fn $name<const WIDTH: usize>(from: $pointer<Self>, index: usize) -> [Self; 4] {
            let zero = Self::ZERO;
            // SAFETY: the contract is the same, for these elements.
            unsafe {
                match WIDTH {
                    1 => [from.load(index), zero, zero, zero],
                    2 => {
                        let [a, b] = from.load2(index);
                        [a, b, zero, zero]
                    }
                    _ => from.load4(index),
                }
            }
        }
    };
}

/// Stores of f32 and f64 elements.
macro_rules! store_wide {
    ($name:ident($access:ident)) => {
        #[inline(always)]
        unsafe fn $name<const WIDTH: usize>(
            to: GlobalMut<Self>,
            index: usize,
            numbers: [Self; WIDTH],
        ) {
            let four = |first: usize| core::array::from_fn::<_, 4, _>(|i| numbers[first + i]);
            // SAFETY: the contract is the same, for these elements.
            unsafe {
                match WIDTH {
                    1 => to.$access(index, [numbers[0]]),
                    2 => to.$access(index, [numbers[0], numbers[1]]),
                    4 => to.$access(index, four(0)),
                    _ => {
                        // Eight sums, as kernels compute for 16-bit elements.
                        to.$access(index, four(0));
                        to.$access(index + 4, four(4));
                    }
                }
            }
        }
    };
}

macro_rules! wide {
    ($($element:ident: $words:expr;)*) => {$(
        impl Operand for $element {
            type Sum = Self;
            type Vector = [Self; 4];

            #[inline(always)]
            fn widen(self) -> Self {
                self
            }

            #[inline(always)]
            fn narrow(sum: Self) -> Self {
                sum
            }

            #[inline(always)]
            fn words(sums: [Self; 8]) -> [u32; 4] {
                let words: fn([Self; 8]) -> [u32; 4] = $words;
                words(sums)
            }

            const MAX_WIDTH: usize = 4;
            const ABSENT: [Self; 4] = [0.0; 4];

            load_wide!(load(Global));
            load_wide!(load_mut(GlobalMut));
            load_wide!(load_shared(Shared));

            #[inline(always)]
            fn get(vector: &[Self; 4], index: usize) -> Self {
                vector[index]
            }

            store_wide!(store(store_array));
            store_wide!(store_streaming(store_streaming));
        }
    )*};
}
wide! {
    f32: |sums| [0, 1, 2, 3].map(|i: usize| sums[i].to_bits());
    f64: |sums| [0, 1, 2, 3].map(|i: usize| (sums[i / 2].to_bits() >> (32 * (i % 2))) as u32);
}

/// Loads of f16 and bf16 vectors: four words of two elements, of which the first `WIDTH / 2` are
/// loaded. A single element is the lower half of the first word.
macro_rules! load_narrow {
    ($name:ident($pointer:ident)) => {
        #[inline(always)]
        unsafe fn $name<const WIDTH: usize>(from: $pointer<Self>, index: usize) -> [u32; 4] {
            let from = from.offset(index);
            // SAFETY: the contract is the same, for these elements.
            unsafe {
                match WIDTH {
                    1 => [u32::from(from.cast::<u16>().load(0)), 0, 0, 0],
                    2 => [from.cast().load(0), 0, 0, 0],
                    4 => {
                        let [a, b] = from.cast().load2(0);
                        [a, b, 0, 0]
                    }
                    _ => from.cast().load4(0),
                }
            }
        }
    };
}

/// Stores of f16 and bf16 elements, two packed in a word.
macro_rules! store_narrow {
    ($name:ident($access:ident)) => {
        #[inline(always)]
        unsafe fn $name<const WIDTH: usize>(
            to: GlobalMut<Self>,
            index: usize,
            numbers: [f32; WIDTH],
        ) {
            let word = |i: usize| Self::pack(numbers[2 * i], numbers[2 * i + 1]);
            let to = to.offset(index);
            // SAFETY: the contract is the same, for these elements.
            unsafe {
                match WIDTH {
                    // Not the inherent function of that name, which computes with integers.
                    1 => to.$access(0, [<Self as Narrow>::from_f32(numbers[0])]),
                    2 => to.cast().$access(0, [word(0)]),
                    4 => to.cast().$access(0, [word(0), word(1)]),
                    _ => to.cast().$access(0, [word(0), word(1), word(2), word(3)]),
                }
            }
        }
    };
}

macro_rules! narrow {
    ($($element:ident)*) => {$(
        impl Operand for $element {
            type Sum = f32;
            type Vector = [u32; 4];

            #[inline(always)]
            fn widen(self) -> f32 {
                // Not the inherent method, which computes with integers.
                Narrow::to_f32(self)
            }

            #[inline(always)]
            fn narrow(sum: f32) -> Self {
                <Self as Narrow>::from_f32(sum)
            }

            #[inline(always)]
            fn words(sums: [f32; 8]) -> [u32; 4] {
                // Two per instruction: converting a single element runs at a quarter of the rate.
                [0, 1, 2, 3].map(|i| <Self as Float16>::pack(sums[2 * i], sums[2 * i + 1]))
            }

            const MAX_WIDTH: usize = 8;
            const ABSENT: [u32; 4] = [0; 4];

            load_narrow!(load(Global));
            load_narrow!(load_mut(GlobalMut));
            load_narrow!(load_shared(Shared));

            #[inline(always)]
            fn get(vector: &[u32; 4], index: usize) -> f32 {
                let half = vector[index / 2] >> (index % 2 * 16);
                Narrow::to_f32($element::from_bits(half as u16))
            }

            store_narrow!(store(store_array));
            store_narrow!(store_streaming(store_streaming));
        }
    )*};
}
narrow!(f16 bf16);
