//! The lane that runs on an OS thread.

use std::cell::Cell;
use std::ptr;

use crate::block::Lane;

thread_local! {
    static CURRENT: Cell<*const Lane> = const { Cell::new(ptr::null()) };
}

/// Makes a lane the one that runs on this OS thread; null for none.
#[inline(always)]
pub(crate) fn set_current(lane: *const Lane) {
    CURRENT.set(lane);
}

/// The lane that runs on this OS thread.
#[inline(always)]
pub(crate) fn try_current<'a>() -> Option<&'a Lane> {
    // SAFETY: the scheduler sets the pointer before a lane runs and clears it before the block goes away; the
    // reference stays with code that the lane runs.
    unsafe { CURRENT.get().as_ref() }
}

/// The same, for functions that only a kernel may call.
#[inline(always)]
#[track_caller]
pub(crate) fn current<'a>() -> &'a Lane {
    try_current()
        .expect("device functions can be called only by a kernel that an emulator has launched")
}
