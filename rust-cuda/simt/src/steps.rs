//! The steps that the threads of a block may take, and what unwinds a thread when its launch has failed.

use std::cell::Cell;
use std::panic::resume_unwind;

/// The panic payload that unwinds a thread of a failed launch.
pub(crate) struct LaunchFailed;

/// Unwinds the running thread.
#[cold]
pub(crate) fn unwind() -> ! {
    resume_unwind(Box::new(LaunchFailed))
}

/// The steps that the threads of a block may still take.
#[derive(Default)]
pub(crate) struct Steps {
    pub left: Cell<u64>,
    /// Whether the threads unwind, because the launch has failed. No step is left then.
    unwinding: Cell<bool>,
}

impl Steps {
    pub fn restart(&self, max: u64) {
        self.left.set(max);
        self.unwinding.set(false);
    }

    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Notes that threads of the block unwind from now on.
    pub fn end(&self) {
        self.left.set(0);
        self.unwinding.set(true);
    }

    pub fn ended(&self) -> bool {
        self.unwinding.get()
    }
}
