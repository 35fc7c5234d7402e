//! The lane that runs on an OS thread.

use std::cell::Cell;
use std::ptr;

use crate::block::Lane;

thread_local! {
    static CURRENT: Cell<*const Lane> = const { Cell::new(ptr::null()) };
}

/// Sets the lane that runs on this OS thread; null means none.
#[inline(always)]
pub(crate) fn set_current(lane: *const Lane) {
    CURRENT.set(lane);
}

/// The lane that runs on this OS thread, if any.
#[inline(always)]
pub(crate) fn try_current<'a>() -> Option<&'a Lane> {
    // SAFETY: the scheduler sets the pointer before a lane runs, and clears it when the lane stops running. The block
    // that owns the lane lives longer, and only code that the lane runs uses the reference.
    unsafe { CURRENT.get().as_ref() }
}

/// The lane that runs on this OS thread, for functions that only a kernel may call.
///
/// # Panics
///
/// If no lane runs.
#[inline(always)]
#[track_caller]
pub(crate) fn current<'a>() -> &'a Lane {
    try_current()
        .expect("device functions can be called only by a kernel that an emulator has launched")
}
