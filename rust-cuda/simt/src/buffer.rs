//! Zeroed host memory that may fail to be there, and that costs nothing until it is touched.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// A type for which all bytes zero is a value.
///
/// # Safety
///
/// A zeroed instance must be valid, and the type must need no drop and an alignment of at most 16 bytes.
pub(crate) unsafe trait Zeroable {}

/// A slice's worth of `T`, zeroed. Elements are reached by pointer: their users say how they are shared.
pub(crate) struct Zeroed<T: Zeroable> {
    pointer: NonNull<T>,
    len: usize,
}

// SAFETY: the buffer only hands out raw pointers; whoever dereferences them answers for the sharing.
unsafe impl<T: Zeroable> Send for Zeroed<T> {}
// SAFETY: as above.
unsafe impl<T: Zeroable> Sync for Zeroed<T> {}

impl<T: Zeroable> Zeroed<T> {
    /// `None` when the host has no memory for it or the size overflows.
    pub fn try_new(len: usize) -> Option<Self> {
        let layout = Layout::array::<T>(len).ok()?;
        if layout.size() == 0 {
            return Some(Self {
                pointer: NonNull::dangling(),
                len,
            });
        }
        // SAFETY: the layout's size is not zero.
        let pointer = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self {
            pointer: pointer.cast(),
            len,
        })
    }

    /// For the emulator's own small structures.
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
    /// When there is no such element.
    #[inline]
    pub fn at(&self, index: usize) -> *mut T {
        assert!(index < self.len, "element {index} of {}", self.len);
        // SAFETY: the index was just checked.
        unsafe { self.pointer.as_ptr().add(index) }
    }
}

impl<T: Zeroable> Drop for Zeroed<T> {
    fn drop(&mut self) {
        if let Ok(layout) = Layout::array::<T>(self.len)
            && layout.size() != 0
        {
            // SAFETY: allocated with this layout, and `T` needs no drop.
            unsafe { dealloc(self.pointer.as_ptr().cast(), layout) }
        }
    }
}
