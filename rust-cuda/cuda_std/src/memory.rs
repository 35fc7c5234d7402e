//! Typed device pointers. They have no length, they are `Copy`, and each type names its memory space.
//!
//! Accesses compile to the instructions of the space (`ld.global.nc.v4.b32`, `st.shared.b32`). A Rust reference would
//! compile to generic instructions, which are slower, and the emulator could not check it. Indices count elements.
//!
//! # Safety
//!
//! A GPU checks none of these accesses. The caller of every `load` and `store` must guarantee:
//!
//! - The elements lie in one allocation of the pointer's space, which is alive during the launch.
//! - The address is a multiple of the size of the access. Allocations are aligned to 256 bytes, so for accesses of 2 or
//!   4 elements `index` must be a multiple of 2 or 4. Four elements of 8 bytes need an alignment of 16 bytes only.
//! - No other thread writes the same elements without a barrier or the end of a kernel in between. No thread writes,
//!   during the whole launch, what a [`Global`] reads.
//! - A loaded element was written before.
//!
//! The emulator reports each violation with the source line.

use crate::backend;
use crate::element::Element;
use crate::word::Word;
use core::marker::PhantomData;

/// A pointer to global memory that no thread writes during the launch. Loads use the non-coherent cache
/// (`ld.global.nc`).
#[repr(transparent)]
pub struct Global<T> {
    address: u64,
    element: PhantomData<fn() -> T>,
}

/// A pointer to global memory that the kernel reads and writes.
#[repr(transparent)]
pub struct GlobalMut<T> {
    address: u64,
    element: PhantomData<fn() -> T>,
}

/// A pointer to the block's shared memory. It has 4 bytes: an address in the shared window.
#[repr(transparent)]
pub struct Shared<T> {
    address: u32,
    element: PhantomData<fn() -> T>,
}

macro_rules! pointer {
    ($pointer:ident, $address:ty) => {
        impl<T> Clone for $pointer<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $pointer<T> {}

        impl<T> core::fmt::Debug for $pointer<T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, concat!(stringify!($pointer), "({:#x})"), self.address)
            }
        }

        impl<T: Element> $pointer<T> {
            /// The pointer to `address`.
            #[inline(always)]
            pub const fn from_address(address: $address) -> Self {
                Self {
                    address,
                    element: PhantomData,
                }
            }

            /// The address.
            #[inline(always)]
            pub const fn address(self) -> $address {
                self.address
            }

            /// The pointer plus `index` elements.
            #[inline(always)]
            #[must_use]
            pub const fn offset(self, index: usize) -> Self {
                Self::from_address(self.element_address(index))
            }

            /// The pointer plus `bytes`. A stride in bytes saves a multiplication for each access.
            #[inline(always)]
            #[must_use]
            pub const fn offset_bytes(self, bytes: $address) -> Self {
                Self::from_address(self.address.wrapping_add(bytes))
            }

            /// The same address as a pointer to another element type.
            #[inline(always)]
            pub const fn cast<U: Element>(self) -> $pointer<U> {
                $pointer::from_address(self.address)
            }

            #[inline(always)]
            pub(crate) const fn element_address(self, index: usize) -> $address {
                self.address
                    .wrapping_add((index as $address).wrapping_mul(size_of::<T>() as $address))
            }
        }
    };
}
pointer!(Global, u64);
pointer!(GlobalMut, u64);
pointer!(Shared, u32);

macro_rules! rows {
    ($($pointer:ident),*) => {$(
        impl<T: Element> $pointer<T> {
            /// The pointer plus `rows` rows of `row_bytes` bytes each. It multiplies two 32-bit numbers to a 64-bit
            /// product by one instruction.
            #[inline(always)]
            #[must_use]
            pub fn offset_rows(self, rows: u32, row_bytes: u32) -> Self {
                self.offset_bytes(backend::mul_wide(rows, row_bytes))
            }
        }
    )*};
}

rows!(Global, GlobalMut);

macro_rules! loads {
    ($pointer:ident, $load:ident) => {
        impl<T: Element> $pointer<T> {
            /// Loads the element at `index`.
            ///
            /// # Safety
            ///
            /// See the [module](self#safety).
            #[inline(always)]
            #[track_caller]
            pub unsafe fn load(self, index: usize) -> T {
                // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
                let [element] = unsafe { self.load_array(index) };
                element
            }

            /// Loads `N` elements, 1, 2 or 4, from `index` on in one access; four elements of 8 bytes take two.
            ///
            /// # Safety
            ///
            /// See the [module](self#safety). The address must be a multiple of the size of `N` elements, or of 16
            /// bytes if that is less.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn load_array<const N: usize>(self, index: usize) -> [T; N] {
                // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
                unsafe { T::Bits::$load::<N>(self.element_address(index)) }.map(T::from_bits)
            }

            /// Loads two elements from `index` on in one access.
            ///
            /// # Safety
            ///
            /// See the [module](self#safety). The address must be a multiple of the size of two elements.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn load2(self, index: usize) -> [T; 2] {
                // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
                unsafe { self.load_array(index) }
            }

            /// Loads four elements from `index` on in one access; elements of 8 bytes take two.
            ///
            /// # Safety
            ///
            /// See the [module](self#safety). The address must be a multiple of the size of four elements, or of 16
            /// bytes if that is less.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn load4(self, index: usize) -> [T; 4] {
                // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
                unsafe { self.load_array(index) }
            }
        }
    };
}
loads!(Global, load_read_only);
loads!(GlobalMut, load_global);
loads!(Shared, load_shared);

macro_rules! stores {
    ($pointer:ident, $store:ident) => {
        impl<T: Element> $pointer<T> {
            /// Stores `value` at `index`.
            ///
            /// # Safety
            ///
            /// See the [module](self#safety).
            #[inline(always)]
            #[track_caller]
            pub unsafe fn store(self, index: usize, value: T) {
                // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
                unsafe { self.store_array(index, [value]) }
            }

            /// Stores `N` elements, 1, 2 or 4, from `index` on in one access; four elements of 8 bytes take two.
            ///
            /// # Safety
            ///
            /// See the [module](self#safety). The address must be a multiple of the size of `N` elements, or of 16
            /// bytes if that is less.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn store_array<const N: usize>(self, index: usize, values: [T; N]) {
                // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
                unsafe { T::Bits::$store(self.element_address(index), values.map(T::to_bits)) }
            }

            /// Stores two elements from `index` on in one access.
            ///
            /// # Safety
            ///
            /// See the [module](self#safety). The address must be a multiple of the size of two elements.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn store2(self, index: usize, values: [T; 2]) {
                // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
                unsafe { self.store_array(index, values) }
            }

            /// Stores four elements from `index` on in one access; elements of 8 bytes take two.
            ///
            /// # Safety
            ///
            /// See the [module](self#safety). The address must be a multiple of the size of four elements, or of 16
            /// bytes if that is less.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn store4(self, index: usize, values: [T; 4]) {
                // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
                unsafe { self.store_array(index, values) }
            }
        }
    };
}
stores!(GlobalMut, store_global);
stores!(Shared, store_shared);

impl<T: Element> Global<T> {
    /// As [`load_array`](Self::load_array), for data that no thread reads again soon: caches evict them first
    /// (`ld.global.cs.nc`). Other data then stay in the caches for longer.
    ///
    /// # Safety
    ///
    /// See the [module](self#safety). The address must be a multiple of the size of `N` elements, or of 16 bytes if
    /// that is less.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_streaming<const N: usize>(self, index: usize) -> [T; N] {
        // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
        unsafe { T::Bits::load_streaming(self.element_address(index)) }.map(T::from_bits)
    }
}

impl<T: Element> GlobalMut<T> {
    /// As [`store_array`](Self::store_array), for data that are not read again soon: caches evict them first
    /// (`st.global.cs`).
    ///
    /// # Safety
    ///
    /// See the [module](self#safety). The address must be a multiple of the size of `N` elements, or of 16 bytes if
    /// that is less.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_streaming<const N: usize>(self, index: usize, values: [T; N]) {
        // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
        unsafe { T::Bits::store_streaming(self.element_address(index), values.map(T::to_bits)) }
    }

    /// The same memory as a read-only pointer.
    ///
    /// # Safety
    ///
    /// During this launch, no thread may write what is read through the returned pointer.
    #[inline(always)]
    pub const unsafe fn as_read_only(self) -> Global<T> {
        Global::from_address(self.address)
    }
}
