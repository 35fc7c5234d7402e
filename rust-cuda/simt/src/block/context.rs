//! The state that all workers of a launch share.

use std::hint::spin_loop;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex};
use std::thread::yield_now;

use crate::block::hand_offs::DeviceHandOffs;
use crate::block::stall::Stalls;
use crate::counters::CountedLaunch;
use crate::fault::Fault;
use crate::memory::allocations::Entries;
use crate::types::Progress;

pub(crate) struct Context<'a> {
    pub kernel: &'a str,
    /// The body of the kernel, called once for each thread.
    pub thread: &'a (dyn Fn() + Sync),
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Blocks of the grid.
    pub blocks: u64,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Whether all checks are on, see [`Checks::Full`](crate::Checks::Full).
    pub full: bool,
    /// Whether global memory is checked for races.
    pub races: bool,
    /// The number of the launch, not zero. Records of accesses with another tag are ignored.
    pub tag: u32,
    pub seed: Option<u64>,
    pub entries: Entries<'a>,
    pub stripes: &'a Stripes,
    pub hand_offs: DeviceHandOffs,
    pub progress: Option<Progress>,
    /// Maximum number of steps of a block.
    pub max_steps: u64,
    /// OS threads that run the blocks.
    pub workers: usize,
    /// Maximum number of blocks that a worker has started and not finished.
    pub resident: usize,
    pub stalls: Stalls,
    /// What a launch needs that is counted.
    pub counted: Option<Arc<CountedLaunch>>,
    /// Number of blocks that a worker takes at a time.
    pub chunk: u64,
    /// The first block that no worker has taken yet.
    pub next: AtomicU64,
    /// Number of finished blocks.
    pub done: Arc<AtomicU64>,
    /// Whether a fault has stopped the launch.
    pub stop: AtomicBool,
    /// The fault of the lowest block number so far, with that number.
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
        self.stalls.note_change();
        if let Some(progress) = &self.progress {
            // At most about a thousand calls for each launch.
            if done.is_multiple_of(self.blocks.div_ceil(1000)) || done == self.blocks {
                progress(done, self.blocks);
            }
        }
    }

    /// The index in the grid of block `number`; x is the fastest dimension.
    pub fn block_index(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(u64::from);
        [number % x, number / x % y, number / x / y].map(|index| index as u32)
    }

    /// The index in the block of thread `number`; x is the fastest dimension.
    pub fn thread_index(&self, number: u32) -> [u32; 3] {
        let [x, y, _] = self.block;
        [number % x, number / x % y, number / x / y]
    }
}

/// Striped spin locks: each granule of an allocation maps to one of them.
pub(crate) struct Stripes(Box<[Stripe]>);

/// A lock on a cache line of its own.
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

    /// Runs `work` while it holds the lock for `key`.
    #[inline]
    pub fn locked<T>(&self, key: usize, work: impl FnOnce() -> T) -> T {
        /// Releases the lock on drop, so that a panic in `work` releases it too.
        struct Guard<'a>(&'a AtomicBool);
        impl Drop for Guard<'_> {
            fn drop(&mut self) {
                self.0.store(false, Release);
            }
        }
        let lock = &self.0[key % STRIPES].0;
        let mut tries = 0_u32;
        while lock.swap(true, Acquire) {
            tries += 1;
            // The OS may have preempted the holder.
            if tries.is_multiple_of(128) {
                yield_now();
            }
            spin_loop();
        }
        let _guard = Guard(lock);
        work()
    }
}
