//! Asynchronous copies from global to shared memory that a thread has started and not yet waited for.

use std::collections::VecDeque;
use std::panic::Location;

/// One asynchronous copy.
#[derive(Clone, Copy)]
pub(crate) struct AsyncCopy {
    /// The address in global memory.
    pub from: u64,
    /// The address in shared memory.
    pub to: u64,
    /// Bytes that are written.
    pub bytes: u32,
    /// Bytes that are read; the rest is written as zeros.
    pub read: u32,
    /// The line that started the copy.
    pub location: &'static Location<'static>,
}

/// The copies of a thread, the oldest first.
#[derive(Default)]
pub(crate) struct AsyncCopies {
    pending: VecDeque<AsyncCopy>,
    /// The number of copies in each committed group.
    groups: VecDeque<usize>,
    /// The number of copies that are in no group yet.
    uncommitted: usize,
}

impl AsyncCopies {
    pub fn start(&mut self, copy: AsyncCopy) {
        self.pending.push_back(copy);
        self.uncommitted += 1;
    }

    /// Makes a group of all uncommitted copies.
    pub fn commit(&mut self) {
        self.groups.push_back(self.uncommitted);
        self.uncommitted = 0;
    }

    /// Removes and returns the copies of all groups except the last `pending` ones.
    pub fn finish(&mut self, pending: u32) -> Vec<AsyncCopy> {
        let finished = self.groups.len().saturating_sub(pending as usize);
        let copies: usize = self.groups.drain(..finished).sum();
        self.pending.drain(..copies).collect()
    }

    /// The first copy in flight, if any.
    pub fn first(&self) -> Option<&AsyncCopy> {
        self.pending.front()
    }

    /// A copy in flight that writes one of `bytes` bytes from `address`, if any.
    pub fn writing(&self, address: u64, bytes: u64) -> Option<&AsyncCopy> {
        let overlaps = |copy: &&AsyncCopy| {
            copy.to < address + bytes && address < copy.to + u64::from(copy.bytes)
        };
        self.pending.iter().find(overlaps)
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
