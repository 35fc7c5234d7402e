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
    /// The steps until the next one that needs more than to be counted.
    pub free: Cell<u64>,
    /// Further steps, each of which is recorded.
    recorded: Cell<u64>,
    /// Whether the threads unwind, because the launch has failed. No step is left then.
    unwinding: Cell<bool>,
}

impl Steps {
    /// Allows `max` steps, which are recorded or not.
    pub fn restart(&self, max: u64, recorded: bool) {
        let (free, recorded) = if recorded { (0, max) } else { (max, 0) };
        self.free.set(free);
        self.recorded.set(recorded);
        self.unwinding.set(false);
    }

    pub fn left(&self) -> u64 {
        self.free.get() + self.recorded.get()
    }

    /// Whether a step is left that is recorded. None is if the launch is not counted, or threads unwind.
    #[inline(always)]
    pub fn has_recorded(&self) -> bool {
        self.recorded.get() > 0
    }

    /// Takes a step that is recorded. Returns whether there was one.
    #[inline(always)]
    pub fn take_recorded(&self) -> bool {
        let left = self.recorded.get();
        self.recorded.set(left.saturating_sub(1));
        left > 0
    }

    /// Notes that threads of the block unwind from now on.
    pub fn end(&self) {
        self.free.set(0);
        self.recorded.set(0);
        self.unwinding.set(true);
    }

    pub fn ended(&self) -> bool {
        self.unwinding.get()
    }
}
