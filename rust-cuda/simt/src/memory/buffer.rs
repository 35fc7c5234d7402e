//! Zeroed host memory. Allocation can fail without a panic, and the host provides pages when they are first touched.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// A type that may have all bytes zero.
///
/// # Safety
///
/// All bytes zero must be a valid value. The type must need no drop, and an alignment of at most 16 bytes.
pub(crate) unsafe trait Zeroable {}

/// `len` elements of type `T`, zeroed at first. Access is by raw pointer; each use must justify how it shares elements.
pub(crate) struct Zeroed<T: Zeroable> {
    pointer: NonNull<T>,
    len: usize,
}

// SAFETY: the buffer only returns raw pointers. Code that dereferences them must justify why no data race occurs.
unsafe impl<T: Zeroable> Send for Zeroed<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Zeroable> Sync for Zeroed<T> {}

impl<T: Zeroable> Zeroed<T> {
    /// A buffer of `len` elements; `None` if the size overflows or the host has not enough memory.
    pub fn try_new(len: usize) -> Option<Self> {
        let layout = Layout::array::<T>(len).ok()?;
        if layout.size() == 0 {
            return Some(Self {
                pointer: NonNull::dangling(),
                len,
            });
        }
        // SAFETY: the size of the layout is not zero, checked above.
        let pointer = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self {
            pointer: pointer.cast(),
            len,
        })
    }

    /// A buffer of `len` elements, for small structures of the emulator itself.
    ///
    /// # Panics
    ///
    /// If the size overflows. It aborts the process if the host has not enough memory.
    pub fn new(len: usize) -> Self {
        Self::try_new(len).unwrap_or_else(|| match Layout::array::<T>(len) {
            Ok(layout) => handle_alloc_error(layout),
            Err(_) => panic!("{len} elements exceed the address space"),
        })
    }

    pub fn pointer(&self) -> *mut T {
        self.pointer.as_ptr()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// A pointer to element `index`.
    ///
    /// # Panics
    ///
    /// If there is no such element.
    #[inline]
    pub fn at(&self, index: usize) -> *mut T {
        assert!(index < self.len, "element {index} of {}", self.len);
        // SAFETY: `index` < `len`, checked above, so the pointer stays in the allocation.
        unsafe { self.pointer.as_ptr().add(index) }
    }
}

impl<T: Zeroable> Drop for Zeroed<T> {
    fn drop(&mut self) {
        if let Ok(layout) = Layout::array::<T>(self.len)
            && layout.size() != 0
        {
            // SAFETY: `try_new` allocated the memory with this layout, and `T` needs no drop.
            unsafe { dealloc(self.pointer.as_ptr().cast(), layout) }
        }
    }
}
