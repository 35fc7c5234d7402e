//! What all workers of one launch share.

use std::hint::spin_loop;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread::yield_now;

use crate::emulator::Progress;
use crate::fault::Fault;
use crate::memory::Table;

pub(crate) struct Context<'a> {
    pub kernel: &'a str,
    pub thread: &'a (dyn Fn() + Sync),
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Blocks of the grid.
    pub blocks: u64,
    pub dynamic_shared: u32,
    pub full: bool,
    /// Whether global memory is checked for races.
    pub races: bool,
    /// The number of the launch, not zero; records of other launches do not count.
    pub tag: u32,
    pub seed: Option<u64>,
    pub table: &'a Table,
    pub stripes: &'a Stripes,
    pub progress: Option<Progress>,
    /// Blocks that a worker takes at a time.
    pub chunk: u64,
    /// The first block that no worker has taken.
    pub next: AtomicU64,
    pub done: AtomicU64,
    pub stop: AtomicBool,
    /// The fault of the lowest block number among those that were found.
    pub fault: Mutex<Option<(u64, Fault)>>,
}

impl Context<'_> {
    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    pub fn report(&self, block: u64, fault: Fault) {
        self.stop.store(true, Relaxed);
        let mut first = self
            .fault
            .lock()
            .unwrap_or_else(|poison| poison.into_inner());
        if first.as_ref().is_none_or(|(earlier, _)| block < *earlier) {
            *first = Some((block, fault));
        }
    }

    /// Counts a finished block.
    pub fn count_done(&self) {
        let done = self.done.fetch_add(1, Relaxed) + 1;
        if let Some(progress) = &self.progress {
            // A thousand calls a launch at most.
            if done.is_multiple_of(self.blocks.div_ceil(1000)) || done == self.blocks {
                progress(done, self.blocks);
            }
        }
    }

    /// The index in the grid of a block's number, x running fastest.
    pub fn block_index(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [number % x, number / x % y, number / x / y].map(|index| index as u32)
    }

    /// The index in the block of a thread's number, x running fastest.
    pub fn thread_index(&self, number: u32) -> [u32; 3] {
        let [x, y, _] = self.block;
        [number % x, number / x % y, number / x / y]
    }
}

/// Spin locks that the granules of all allocations share.
pub(crate) struct Stripes(Box<[Stripe]>);

/// One lock on a cache line of its own.
#[repr(align(64))]
struct Stripe(AtomicBool);

const STRIPES: usize = 1024;

impl Stripes {
    pub fn new() -> Self {
        Self(
            (0..STRIPES)
                .map(|_| Stripe(AtomicBool::new(false)))
                .collect(),
        )
    }

    /// Runs `work` with the lock held that `key` leads to.
    #[inline]
    pub fn locked<T>(&self, key: usize, work: impl FnOnce() -> T) -> T {
        /// Lets go of the lock also when `work` panics: it calls the kernel's code.
        struct Held<'a>(&'a AtomicBool);
        impl Drop for Held<'_> {
            fn drop(&mut self) {
                self.0.store(false, Release);
            }
        }
        let lock = &self.0[key % STRIPES].0;
        let mut tries = 0_u32;
        while lock.swap(true, Acquire) {
            tries += 1;
            // The holder may have lost its core.
            if tries.is_multiple_of(128) {
                yield_now();
            }
            spin_loop();
        }
        let _held = Held(lock);
        work()
    }
}
