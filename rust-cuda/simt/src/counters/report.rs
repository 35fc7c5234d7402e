//! What a launch did, in the units in which hardware counts it.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::memory_model::MemoryTraffic;
use super::occupancy::Occupancy;
use super::trace::WarpTrace;

/// The counters of one launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LaunchReport {
    /// The kernel's name.
    pub kernel: String,
    /// Blocks of the grid along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Static shared memory of a block in bytes.
    pub static_shared_bytes: u32,
    /// Dynamic shared memory of a block in bytes.
    pub dynamic_shared_bytes: u32,
    /// The whole launch.
    pub total: Counters,
    /// The same for each line of source, in the order of files and lines.
    pub lines: Vec<LineCounters>,
    /// The work of each block, in the order of block numbers.
    pub blocks: Vec<BlockWork>,
    /// The words with the most atomic operations, the most contended one first.
    pub contended: Vec<ContendedWord>,
    /// What a model of the caches says about traffic from memory.
    pub memory: Option<MemoryTraffic>,
    /// How many warps a multiprocessor can hold, if the kernel's registers are known.
    pub occupancy: Option<Occupancy>,
    /// The requests of the warps that were traced.
    pub traces: Vec<WarpTrace>,
}

/// The counters of a launch, or of one line of its kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counters {
    /// Loads from global memory (`ld.global`).
    pub global_loads: GlobalCounters,
    /// Stores to global memory (`st.global`).
    pub global_stores: GlobalCounters,
    /// Atomic operations on global memory whose result is used (`atom.global`).
    pub global_atomics: GlobalCounters,
    /// Atomic operations on global memory without a result (`red.global`).
    pub global_reductions: GlobalCounters,
    /// Asynchronous copies from global to shared memory (`cp.async`), as accesses to global memory.
    pub async_copies: GlobalCounters,
    /// Loads from shared memory (`ld.shared`, and `ldmatrix`).
    pub shared_loads: SharedCounters,
    /// Stores to shared memory (`st.shared`).
    pub shared_stores: SharedCounters,
    /// Atomic operations on shared memory.
    pub shared_atomics: SharedCounters,
    /// Shuffles of a warp (`shfl.sync`).
    pub shuffles: CollectiveCounters,
    /// Votes, matches and reductions of a warp (`vote.sync`, `match.sync`, `redux.sync`).
    pub votes: CollectiveCounters,
    /// Multiplications of matrices by a warp or a warpgroup (`mma.sync`, `wgmma`), an instruction of a warp each.
    pub matrix_products: CollectiveCounters,
    /// Barriers of a warp (`bar.warp.sync`).
    pub warp_barriers: CollectiveCounters,
    /// Barriers of a block, one for each warp that waits (`bar.sync`).
    pub block_barriers: CollectiveCounters,
    /// Atomic operations of a lane on a word on which an earlier lane of the same request operates too. Hardware
    /// performs them one after the other.
    pub atomic_repeats: u64,
}

/// Requests of warps to global memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobalCounters {
    /// Instructions of a warp.
    pub requests: u64,
    /// Sectors of 32 bytes that the requests touch.
    pub sectors: u64,
    /// Active lanes, added up over the requests.
    pub lanes: u64,
    /// Different bytes that the lanes of a request ask for, added up over the requests.
    pub bytes: u64,
}

/// Requests of warps to shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedCounters {
    /// Instructions of a warp.
    pub requests: u64,
    /// Passes over the 32 banks that the requests take.
    pub wavefronts: u64,
    /// Wavefronts beyond those that the size of the request needs.
    pub bank_conflicts: u64,
    /// Active lanes, added up over the requests.
    pub lanes: u64,
}

/// Operations that lanes of a warp execute together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectiveCounters {
    /// Instructions of a warp.
    pub executed: u64,
    /// Active lanes, added up over the instructions.
    pub lanes: u64,
}

/// The counters of one line of source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineCounters {
    /// The file's path, as the compiler knows it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The counters.
    pub counters: Counters,
}

/// The work of one block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockWork {
    /// The number of the block; x is the fastest dimension of the grid.
    pub block: u64,
    /// Requests to memory and collective operations of each warp, in the order of the warps.
    pub warps: Vec<u64>,
    /// Different elements of the launch's work buffer (the column indices of a sparse matrix, for example) that the
    /// block loads. Zero if no buffer was named.
    pub elements: u64,
}

impl BlockWork {
    /// The requests and collective operations of all warps.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.warps.iter().sum()
    }
}

/// A word that many atomic operations change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContendedWord {
    /// The word's address.
    pub address: u64,
    /// The element of a kernel's parameter, such as `y[17]`, if the address lies in one.
    pub element: Option<String>,
    /// The atomic operations of single lanes.
    pub operations: u64,
}

impl GlobalCounters {
    /// The sectors that a request touches, in the mean; 0 without requests.
    #[must_use]
    pub fn sectors_per_request(&self) -> f64 {
        ratio(self.sectors, self.requests)
    }

    /// The part of each sector of 32 bytes that lanes ask for, in the mean, 0 to 1.
    #[must_use]
    pub fn bytes_used(&self) -> f64 {
        ratio(self.bytes, 32 * self.sectors)
    }

    /// The active lanes of a request, in the mean.
    #[must_use]
    pub fn lanes_per_request(&self) -> f64 {
        ratio(self.lanes, self.requests)
    }
}

/// `a / b`, or 0 if `b` is 0.
pub(crate) fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

macro_rules! add_fields {
    ($type:ty: $($field:ident),+) => {
        impl AddAssign for $type {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)+
            }
        }
    };
}

add_fields!(GlobalCounters: requests, sectors, lanes, bytes);
add_fields!(SharedCounters: requests, wavefronts, bank_conflicts, lanes);
add_fields!(CollectiveCounters: executed, lanes);
add_fields!(Counters: global_loads, global_stores, global_atomics, global_reductions, async_copies, shared_loads,
    shared_stores, shared_atomics, shuffles, votes, matrix_products, warp_barriers, block_barriers, atomic_repeats);
