//! The largest allocation that a thread asks for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// Runs `f`, and says how many bytes its largest allocation asks for.
pub fn largest_of<R>(f: impl FnOnce() -> R) -> (R, usize) {
    LARGEST.set(0);
    let result = f();
    (result, LARGEST.get())
}

struct Recording;

// SAFETY: every call is the system allocator's; a thread's own number is written besides, without an allocation.
unsafe impl GlobalAlloc for Recording {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record(layout.size());
        // SAFETY: this function's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        record(layout.size());
        // SAFETY: this function's contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        record(size);
        // SAFETY: this function's contract.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: this function's contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn record(bytes: usize) {
    LARGEST.set(LARGEST.get().max(bytes));
}

#[global_allocator]
static ALLOCATOR: Recording = Recording;
