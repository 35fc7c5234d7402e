//! Proxy fences: which writes to shared memory tensor cores see when they read it themselves.
//!
//! Threads write through the generic proxy, `wgmma` reads through the asynchronous one. A write is published by a proxy
//! fence that its thread executes later, or that any thread executes after a barrier which the write happened before.

use std::cell::Cell;

use crate::memory::shadow::Record;

/// Accesses before these times are published.
pub(crate) struct ProxyFences {
    /// Those of all threads.
    pub block: Cell<u32>,
    /// Those of each thread, which may be earlier.
    pub threads: Box<[Cell<u32>]>,
}

impl ProxyFences {
    pub fn new(threads: u32) -> Self {
        Self {
            block: Cell::new(0),
            threads: (0..threads).map(|_| Cell::new(0)).collect(),
        }
    }

    /// Forgets all times, because the clock of the block starts again.
    pub fn reset_times(&self) {
        self.block.set(0);
        self.threads.iter().for_each(|time| time.set(0));
    }

    /// Whether a fence has published the write of `record`.
    pub fn published(&self, record: &Record) -> bool {
        let of_thread = self.threads[record.thread() as usize].get();
        record.time() < self.block.get().max(of_thread)
    }
}
