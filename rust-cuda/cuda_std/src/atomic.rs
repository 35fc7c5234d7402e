//! Atomic operations on global and shared memory.
//!
//! They are relaxed: they do not order other accesses (see [`device_fence`](crate::thread::device_fence)). On global
//! memory, a [`Scope`] names the threads for which they are atomic; on shared memory these are the threads of the
//! block. Each operation returns the old value.
//!
//! | operation | u32 | i32 | u64 | i64 | f32 | f64 |
//! |---|---|---|---|---|---|---|
//! | add | x | x | x | x | x | x |
//! | min, max | x | x | x | x | | |
//! | exchange, compare-exchange, load, store | x | x | x | x | x | x |
//! | or (shared memory only) | x | | | | | |
//!
//! # Safety
//!
//! As for plain accesses ([`memory`](crate::memory#safety)), except that other threads may access the same element at
//! the same time by atomic operations.

use crate::backend;
use crate::element::Element;
use crate::memory::{GlobalMut, Shared};
pub use crate::scope::Scope;
use crate::word::{AtomicArithmetic, AtomicOrder, AtomicWord};

/// An element type with atomic exchange and compare-exchange: all of 4 and 8 bytes.
pub trait Atomic: Element<Bits: AtomicWord> {}
impl Atomic for u32 {}
impl Atomic for i32 {}
impl Atomic for u64 {}
impl Atomic for i64 {}
impl Atomic for f32 {}
impl Atomic for f64 {}

/// An element type with atomic addition. Integers wrap around; floats are added in an unspecified order and rounded to
/// nearest.
pub trait AtomicAdd: Atomic + AtomicArithmetic {}
impl<T: Atomic + AtomicArithmetic> AtomicAdd for T {}

/// An element type with atomic minimum and maximum: the integers.
pub trait AtomicMinMax: Atomic + AtomicOrder {}
impl<T: Atomic + AtomicOrder> AtomicMinMax for T {}

impl<T: Atomic> GlobalMut<T> {
    /// Loads the element at `index`. It bypasses caches that atomic writes of other threads do not update.
    ///
    /// # Safety
    ///
    /// See the [module](self#safety).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_load(self, scope: Scope, index: usize) -> T {
        // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
        T::from_bits(unsafe { T::Bits::load_atomic(scope, self.element_address(index)) })
    }

    /// Stores `value` at `index`.
    ///
    /// # Safety
    ///
    /// See the [module](self#safety).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_store(self, scope: Scope, index: usize, value: T) {
        // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
        unsafe { T::Bits::store_atomic(scope, self.element_address(index), value.to_bits()) }
    }

    /// Stores `value` at `index`.
    ///
    /// # Safety
    ///
    /// See the [module](self#safety).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_exchange(self, scope: Scope, index: usize, value: T) -> T {
        // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
        T::from_bits(unsafe {
            T::Bits::exchange_global(scope, self.element_address(index), value.to_bits())
        })
    }

    /// Stores `new` at `index` if the element has the same bits as `expected`. The returned old value has them if it
    /// did.
    ///
    /// # Safety
    ///
    /// See the [module](self#safety).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_compare_exchange(
        self,
        scope: Scope,
        index: usize,
        expected: T,
        new: T,
    ) -> T {
        // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
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
    /// See the [module](self#safety).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_add(self, scope: Scope, index: usize, value: T) -> T {
        // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
        unsafe { T::add_global(scope, self.element_address(index), value) }
    }

    /// Adds `value` to the element at `index` (`red`). It returns nothing, which makes it cheaper than
    /// [`atomic_add`](Self::atomic_add).
    ///
    /// # Safety
    ///
    /// See the [module](self#safety).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn reduce_add(self, scope: Scope, index: usize, value: T) {
        // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
        unsafe { T::reduce_add_global(scope, self.element_address(index), value) }
    }
}

impl<T: AtomicMinMax> GlobalMut<T> {
    /// Replaces the element at `index` by the minimum of it and `value`.
    ///
    /// # Safety
    ///
    /// See the [module](self#safety).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_min(self, scope: Scope, index: usize, value: T) -> T {
        // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
        unsafe { T::min_global(scope, self.element_address(index), value) }
    }

    /// Replaces the element at `index` by the maximum of it and `value`.
    ///
    /// # Safety
    ///
    /// See the [module](self#safety).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_max(self, scope: Scope, index: usize, value: T) -> T {
        // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
        unsafe { T::max_global(scope, self.element_address(index), value) }
    }
}

impl<T: Atomic> Shared<T> {
    /// Stores `value` at `index`.
    ///
    /// # Safety
    ///
    /// See the [module](self#safety).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_exchange(self, index: usize, value: T) -> T {
        // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
        T::from_bits(unsafe {
            T::Bits::exchange_shared(self.element_address(index), value.to_bits())
        })
    }

    /// Stores `new` at `index` if the element has the same bits as `expected`. The returned old value has them if it
    /// did.
    ///
    /// # Safety
    ///
    /// See the [module](self#safety).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_compare_exchange(self, index: usize, expected: T, new: T) -> T {
        // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
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
    /// See the [module](self#safety).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_add(self, index: usize, value: T) -> T {
        // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
        unsafe { T::add_shared(self.element_address(index), value) }
    }
}

impl<T: AtomicMinMax> Shared<T> {
    /// Replaces the element at `index` by the minimum of it and `value`.
    ///
    /// # Safety
    ///
    /// See the [module](self#safety).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_min(self, index: usize, value: T) -> T {
        // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
        unsafe { T::min_shared(self.element_address(index), value) }
    }

    /// Replaces the element at `index` by the maximum of it and `value`.
    ///
    /// # Safety
    ///
    /// See the [module](self#safety).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_max(self, index: usize, value: T) -> T {
        // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
        unsafe { T::max_shared(self.element_address(index), value) }
    }
}

impl Shared<u32> {
    /// Sets the bits of `bits` in the element at `index`, for example in a bitmap.
    ///
    /// # Safety
    ///
    /// See the [module](self#safety).
    #[inline(always)]
    #[track_caller]
    pub unsafe fn atomic_or(self, index: usize, bits: u32) -> u32 {
        // SAFETY: the caller upholds the rules of the module, which are those of the instruction.
        unsafe { backend::or_shared(self.element_address(index), bits) }
    }
}
