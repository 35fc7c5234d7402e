//! Proxy fences: which writes to shared memory tensor cores see when they read it themselves.
//!
//! Threads write through the generic proxy, `wgmma` reads through the asynchronous one. A write is published by a proxy
//! fence that its thread executes later, or that any thread executes after a barrier which the write happened before.

use std::cell::Cell;

use crate::limits::WARP_SIZE;
use crate::shadow::Record;

/// Accesses before these times are published.
pub(crate) struct ProxyFences {
    /// Those of all threads.
    pub block: Cell<u32>,
    /// Those of the threads of each warp.
    pub warps: Box<[Cell<u32>]>,
    /// Those of each thread.
    pub threads: Box<[Cell<u32>]>,
}

impl ProxyFences {
    pub fn new(threads: u32) -> Self {
        let zeros = |count| (0..count).map(|_| Cell::new(0)).collect();
        Self {
            block: Cell::new(0),
            warps: zeros(threads.div_ceil(WARP_SIZE)),
            threads: zeros(threads),
        }
    }

    /// Forgets all times, because the clock of the block starts again.
    pub fn reset_times(&self) {
        self.block.set(0);
        let times = self.warps.iter().chain(&self.threads);
        times.for_each(|time| time.set(0));
    }

    /// Whether a fence has published the write of `record`.
    pub fn published(&self, record: &Record) -> bool {
        let thread = record.thread() as usize;
        let warp = thread / WARP_SIZE as usize;
        let times = [&self.block, &self.warps[warp], &self.threads[thread]];
        times.into_iter().any(|time| record.time() < time.get())
    }
}
