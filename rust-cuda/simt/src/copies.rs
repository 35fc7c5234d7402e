//! The copies from global to shared memory that a thread has begun and not yet waited for.

use std::collections::VecDeque;
use std::panic::Location;

/// One copy of some bytes, the first `read` of them from its source and the others zeros, and the line that began it.
#[derive(Clone, Copy)]
pub(crate) struct Copy {
    pub from: u64,
    pub to: u64,
    pub bytes: u32,
    pub read: u32,
    pub location: &'static Location<'static>,
}

/// A thread's copies, the oldest first.
#[derive(Default)]
pub(crate) struct Copies {
    begun: VecDeque<Copy>,
    /// How many copies each group has.
    groups: VecDeque<usize>,
    /// How many copies are in no group yet.
    open: usize,
}

impl Copies {
    pub fn begin(&mut self, copy: Copy) {
        self.begun.push_back(copy);
        self.open += 1;
    }

    /// Makes a group of the copies that are in none.
    pub fn commit(&mut self) {
        self.groups.push_back(self.open);
        self.open = 0;
    }

    /// Takes out the copies of all groups but the last `pending` ones.
    pub fn finish(&mut self, pending: u32) -> Vec<Copy> {
        let finished = self.groups.len().saturating_sub(pending as usize);
        let copies: usize = self.groups.drain(..finished).sum();
        self.begun.drain(..copies).collect()
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
