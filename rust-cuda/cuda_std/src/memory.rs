//! Typed device pointers: thin, `Copy`, and explicit about the memory they point to.
//!
//! A pointer to a known memory space compiles to that space's instruction (`ld.global.nc.v4.b32`, `st.shared.b32`); a
//! Rust reference would compile to a generic one, which is slower and which the emulator could not check. All indices
//! count elements of `T` from the pointer.
//!
//! # Safety
//!
//! On a GPU nothing checks these accesses. Every `load` and `store` asks of its caller that
//!
//! - the accessed elements lie inside one allocation of the pointer's space that is alive during the launch,
//! - the address is a multiple of the access's size: `index` a multiple of 2 or 4 for the wide ones, relative to a
//!   pointer aligned to that (allocations are aligned to 256 bytes); the four-wide access of 8-byte elements is two of
//!   two, and needs 16 bytes,
//! - no other thread writes the same elements without a barrier or a kernel's end between, and none writes, during the
//!   whole launch, what a [`Global`] reads,
//! - what is loaded was written before.
//!
//! The emulator reports each violation with the source line.

use crate::backend;
use crate::element::Element;
use crate::word::Word;
use core::marker::PhantomData;

/// A pointer to global memory that no thread writes during the launch: read through the non-coherent cache
/// (`ld.global.nc`).
#[repr(transparent)]
pub struct Global<T> {
    address: u64,
    element: PhantomData<fn() -> T>,
}

/// A pointer to global memory that the kernel may read and write.
#[repr(transparent)]
pub struct GlobalMut<T> {
    address: u64,
    element: PhantomData<fn() -> T>,
}

/// A pointer to the block's shared memory: 4 bytes, an address in the shared window.
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

            /// The pointer `index` elements further on.
            #[inline(always)]
            #[must_use]
            pub const fn offset(self, index: usize) -> Self {
                Self::from_address(self.element_address(index))
            }

            /// The pointer `bytes` further on: where a stride is kept in bytes, one multiplication less for each access.
            #[inline(always)]
            #[must_use]
            pub const fn offset_bytes(self, bytes: $address) -> Self {
                Self::from_address(self.address.wrapping_add(bytes))
            }

            /// The same address as a pointer to elements of another type.
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
            /// The pointer `rows` rows of `row_bytes` bytes each further on. The 64-bit product of 32-bit numbers is one instruction, where the compiler
            /// knows that they are such; this tells it.
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
            /// The element at `index`.
            ///
            /// # Safety
            ///
            /// As the [module](self#safety) says.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn load(self, index: usize) -> T {
                // SAFETY: the caller's contract.
                let [element] = unsafe { self.load_array(index) };
                element
            }

            /// The `N` elements from `index` on, 1, 2 or 4, in one access (two for four elements of 8 bytes).
            ///
            /// # Safety
            ///
            /// As the [module](self#safety) says; the address is a multiple of `N` elements, or of 16 bytes if that is
            /// less.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn load_array<const N: usize>(self, index: usize) -> [T; N] {
                // SAFETY: the caller's contract.
                unsafe { T::Bits::$load::<N>(self.element_address(index)) }.map(T::from_bits)
            }

            /// The two elements from `index` on, in one access.
            ///
            /// # Safety
            ///
            /// As the [module](self#safety) says; the address is a multiple of two elements.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn load2(self, index: usize) -> [T; 2] {
                // SAFETY: the caller's contract.
                unsafe { self.load_array(index) }
            }

            /// The four elements from `index` on, in one access (two for elements of 8 bytes).
            ///
            /// # Safety
            ///
            /// As the [module](self#safety) says; the address is a multiple of four elements, or of 16 bytes if that is
            /// less.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn load4(self, index: usize) -> [T; 4] {
                // SAFETY: the caller's contract.
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
            /// Writes the element at `index`.
            ///
            /// # Safety
            ///
            /// As the [module](self#safety) says.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn store(self, index: usize, value: T) {
                // SAFETY: the caller's contract.
                unsafe { self.store_array(index, [value]) }
            }

            /// Writes the `N` elements from `index` on, 1, 2 or 4, in one access (two for four elements of 8 bytes).
            ///
            /// # Safety
            ///
            /// As the [module](self#safety) says; the address is a multiple of `N` elements, or of 16 bytes if that is
            /// less.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn store_array<const N: usize>(self, index: usize, values: [T; N]) {
                // SAFETY: the caller's contract.
                unsafe { T::Bits::$store(self.element_address(index), values.map(T::to_bits)) }
            }

            /// Writes the two elements from `index` on, in one access.
            ///
            /// # Safety
            ///
            /// As the [module](self#safety) says; the address is a multiple of two elements.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn store2(self, index: usize, values: [T; 2]) {
                // SAFETY: the caller's contract.
                unsafe { self.store_array(index, values) }
            }

            /// Writes the four elements from `index` on, in one access (two for elements of 8 bytes).
            ///
            /// # Safety
            ///
            /// As the [module](self#safety) says; the address is a multiple of four elements, or of 16 bytes if that is
            /// less.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn store4(self, index: usize, values: [T; 4]) {
                // SAFETY: the caller's contract.
                unsafe { self.store_array(index, values) }
            }
        }
    };
}
stores!(GlobalMut, store_global);
stores!(Shared, store_shared);

impl<T: Element> GlobalMut<T> {
    /// As [`store_array`](Self::store_array), for what is not read again soon: the caches drop it first (`st.global.cs`).
    ///
    /// # Safety
    ///
    /// As the [module](self#safety) says; the address is a multiple of `N` elements, or of 16 bytes if that is less.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn store_streaming<const N: usize>(self, index: usize, values: [T; N]) {
        // SAFETY: the caller's contract.
        unsafe { T::Bits::store_streaming(self.element_address(index), values.map(T::to_bits)) }
    }

    /// The same memory as a read-only pointer.
    ///
    /// # Safety
    ///
    /// No thread writes, during this launch, what is read through it.
    #[inline(always)]
    pub const unsafe fn as_read_only(self) -> Global<T> {
        Global::from_address(self.address)
    }
}
