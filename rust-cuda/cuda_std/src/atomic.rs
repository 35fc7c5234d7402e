//! Atomic operations on global and shared memory.
//!
//! They are relaxed: atomic, but no order for other accesses (see [`thread::device_fence`](crate::thread::device_fence)).
//! On global memory a [`Scope`] says among which threads they are atomic; on shared memory it is the block. Each returns
//! the value that was there before.
//!
//! | operation | u32 | i32 | u64 | i64 | f32 | f64 |
//! |---|---|---|---|---|---|---|
//! | add | x | x | x | x | x | x |
//! | min, max | x | x | x | x | | |
//! | exchange, compare-exchange, load, store | x | x | x | x | x | x |
//! | or, on shared memory | x | | | | | |
//!
//! # Safety
//!
//! As for plain accesses ([`memory`](crate::memory#safety)), except that other threads may access the same element by
//! atomic operations too.

use crate::backend;
use crate::element::Element;
use crate::memory::{GlobalMut, Shared};
pub use crate::scope::Scope;
use crate::word::{AtomicArithmetic, AtomicOrder, AtomicWord};

/// An element with atomic exchange and compare-exchange: those of 4 and 8 bytes.
pub trait Atomic: Element<Bits: AtomicWord> {}
impl Atomic for u32 {}
impl Atomic for i32 {}
impl Atomic for u64 {}
impl Atomic for i64 {}
impl Atomic for f32 {}
impl Atomic for f64 {}

/// An element with an atomic addition: integers wrap around, floats round to nearest in an unspecified order.
pub trait AtomicAdd: Atomic + AtomicArithmetic {}
impl<T: Atomic + AtomicArithmetic> AtomicAdd for T {}

/// An element with atomic minimum and maximum: the integers.
pub trait AtomicMinMax: Atomic + AtomicOrder {}
impl<T: Atomic + AtomicOrder> AtomicMinMax for T {}

impl<T: Atomic> GlobalMut<T> {
    /// The element at `index`, read past the caches that other threads' atomic writes do not reach.
    ///
    /// # Safety
    ///
    /// As the [module](self#safety) says.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_load(self, scope: Scope, index: usize) -> T {
        // SAFETY: the caller's contract.
        T::from_bits(unsafe { T::Bits::load_atomic(scope, self.element_address(index)) })
    }

    /// Writes `value` at `index`.
    ///
    /// # Safety
    ///
    /// As the [module](self#safety) says.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_store(self, scope: Scope, index: usize, value: T) {
        // SAFETY: the caller's contract.
        unsafe { T::Bits::store_atomic(scope, self.element_address(index), value.to_bits()) }
    }

    /// Writes `value` at `index`.
    ///
    /// # Safety
    ///
    /// As the [module](self#safety) says.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_exchange(self, scope: Scope, index: usize, value: T) -> T {
        // SAFETY: the caller's contract.
        T::from_bits(unsafe {
            T::Bits::exchange_global(scope, self.element_address(index), value.to_bits())
        })
    }

    /// Writes `new` at `index` if what is there has the bits of `expected`: it did if the returned value has them.
    ///
    /// # Safety
    ///
    /// As the [module](self#safety) says.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_compare_exchange(
        self,
        scope: Scope,
        index: usize,
        expected: T,
        new: T,
    ) -> T {
        // SAFETY: the caller's contract.
        T::from_bits(unsafe {
            T::Bits::compare_exchange_global(
                scope,
                self.element_address(index),
                expected.to_bits(),
                new.to_bits(),
            )
        })
    }
}

impl<T: AtomicAdd> GlobalMut<T> {
    /// Adds `value` to the element at `index`.
    ///
    /// # Safety
    ///
    /// As the [module](self#safety) says.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_add(self, scope: Scope, index: usize, value: T) -> T {
        // SAFETY: the caller's contract.
        unsafe { T::add_global(scope, self.element_address(index), value) }
    }

    /// Adds `value` to the element at `index`; cheaper than [`atomic_add`](Self::atomic_add), as nothing comes back (`red`).
    ///
    /// # Safety
    ///
    /// As the [module](self#safety) says.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn reduce_add(self, scope: Scope, index: usize, value: T) {
        // SAFETY: the caller's contract.
        unsafe { T::reduce_add_global(scope, self.element_address(index), value) }
    }
}

impl<T: AtomicMinMax> GlobalMut<T> {
    /// Replaces the element at `index` by `value` if that is less.
    ///
    /// # Safety
    ///
    /// As the [module](self#safety) says.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_min(self, scope: Scope, index: usize, value: T) -> T {
        // SAFETY: the caller's contract.
        unsafe { T::min_global(scope, self.element_address(index), value) }
    }

    /// Replaces the element at `index` by `value` if that is greater.
    ///
    /// # Safety
    ///
    /// As the [module](self#safety) says.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_max(self, scope: Scope, index: usize, value: T) -> T {
        // SAFETY: the caller's contract.
        unsafe { T::max_global(scope, self.element_address(index), value) }
    }
}

impl<T: Atomic> Shared<T> {
    /// Writes `value` at `index`.
    ///
    /// # Safety
    ///
    /// As the [module](self#safety) says.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_exchange(self, index: usize, value: T) -> T {
        // SAFETY: the caller's contract.
        T::from_bits(unsafe {
            T::Bits::exchange_shared(self.element_address(index), value.to_bits())
        })
    }

    /// Writes `new` at `index` if what is there has the bits of `expected`: it did if the returned value has them.
    ///
    /// # Safety
    ///
    /// As the [module](self#safety) says.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_compare_exchange(self, index: usize, expected: T, new: T) -> T {
        // SAFETY: the caller's contract.
        T::from_bits(unsafe {
            T::Bits::compare_exchange_shared(
                self.element_address(index),
                expected.to_bits(),
                new.to_bits(),
            )
        })
    }
}

impl<T: AtomicAdd> Shared<T> {
    /// Adds `value` to the element at `index`.
    ///
    /// # Safety
    ///
    /// As the [module](self#safety) says.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_add(self, index: usize, value: T) -> T {
        // SAFETY: the caller's contract.
        unsafe { T::add_shared(self.element_address(index), value) }
    }
}

impl<T: AtomicMinMax> Shared<T> {
    /// Replaces the element at `index` by `value` if that is less.
    ///
    /// # Safety
    ///
    /// As the [module](self#safety) says.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_min(self, index: usize, value: T) -> T {
        // SAFETY: the caller's contract.
        unsafe { T::min_shared(self.element_address(index), value) }
    }

    /// Replaces the element at `index` by `value` if that is greater.
    ///
    /// # Safety
    ///
    /// As the [module](self#safety) says.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_max(self, index: usize, value: T) -> T {
        // SAFETY: the caller's contract.
        unsafe { T::max_shared(self.element_address(index), value) }
    }
}

impl Shared<u32> {
    /// Sets the bits of `bits` in the element at `index`: how bitmaps are filled.
    ///
    /// # Safety
    ///
    /// As the [module](self#safety) says.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_or(self, index: usize, bits: u32) -> u32 {
        // SAFETY: the caller's contract.
        unsafe { backend::or_shared(self.element_address(index), bits) }
    }
}
