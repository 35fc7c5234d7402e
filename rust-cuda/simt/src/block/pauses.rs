//! Pauses in random schedules: a thread may pause after an atomic load, so that others change the word before it goes on.
//!
//! Without them, no schedule would show that a thread loads a word, computes, and stores it by two atomic operations.

use std::cell::Cell;

use crate::threads::order::Random;

/// Maximum number of pauses in a block. After them, a thread that waits for a change polls in the ordinary way.
const MAX_PAUSES: u32 = 16;

/// The pauses of a block's threads.
#[derive(Default)]
pub(crate) struct Pauses {
    /// Number of pauses that threads may still make.
    left: Cell<u32>,
    /// Whether a thread has paused since [`take`](Self::take) was called.
    happened: Cell<bool>,
}

impl Pauses {
    /// Allows pauses for the next block.
    pub fn restart(&self) {
        self.left.set(MAX_PAUSES);
        self.happened.set(false);
    }

    /// Whether a thread pauses after an atomic load: in every second case, at random.
    #[inline]
    pub fn draw(&self, random: &Random) -> bool {
        let left = self.left.get();
        if left == 0 || random.below(2) == 0 {
            return false;
        }
        self.left.set(left - 1);
        self.happened.set(true);
        true
    }

    /// Whether a thread has paused since the last call. Then the worker starts another block.
    pub fn take(&self) -> bool {
        self.happened.take()
    }
}
