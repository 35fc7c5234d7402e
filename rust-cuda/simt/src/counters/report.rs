//! What a launch did, in the units in which hardware counts it.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::counters::hardware::Hardware;
use crate::counters::occupancy::Occupancy;
use crate::counters::trace::WarpTrace;
use crate::fault::Parameter;
use crate::memory::regions::OFFSET_BITS;

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
    /// How many warps a multiprocessor can hold, if [`set_registers`](Self::set_registers) was called.
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
    /// Atomic operations of a lane on a word on which an earlier lane of the same request operates too, in global or in
    /// shared memory. Hardware performs them one after the other.
    pub atomic_repeats: u64,
}

/// Requests of warps to global memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GlobalCounters {
    /// Instructions of a warp.
    pub requests: u64,
    /// Sectors of 32 bytes that the requests touch.
    pub sectors: u64,
    /// Active lanes, added up over the requests.
    pub lanes: u64,
    /// Different bytes that the lanes of a request access, added up over the requests.
    pub bytes: u64,
}

/// Requests of warps to shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
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
#[non_exhaustive]
pub struct CollectiveCounters {
    /// Instructions of a warp.
    pub executed: u64,
    /// Active lanes, added up over the instructions.
    pub lanes: u64,
}

/// The counters of one line of source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
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
#[non_exhaustive]
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

/// Traffic of a launch, as a model of the caches says. It is no measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemoryTraffic {
    /// Bytes that the L1 caches read from L2.
    pub l2_read_bytes: u64,
    /// Bytes that L2 reads from memory.
    pub memory_read_bytes: u64,
}

/// A word that many atomic operations change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ContendedWord {
    /// The word's address.
    pub address: u64,
    /// The element of a kernel's parameter, such as `y[17]`, if the address lies in one.
    pub element: Option<String>,
    /// The atomic operations of single lanes.
    pub operations: u64,
}

impl LaunchReport {
    /// Adds the occupancy of the launch on a GPU on which a thread of the kernel has `registers`.
    pub fn set_registers(&mut self, hardware: &Hardware, registers: u32) {
        let threads = self.block.iter().product();
        let shared = self.static_shared_bytes + self.dynamic_shared_bytes;
        self.occupancy = Some(Occupancy::new(hardware, threads, shared, registers));
    }

    /// Names the contended words after the kernel's parameters that point to their buffers. An address belongs to the
    /// parameter that starts last before it, in the same buffer.
    pub fn name_parameters(&mut self, parameters: &[Parameter]) {
        for word in &mut self.contended {
            let of_buffer = parameters.iter().filter(|parameter| {
                parameter.address >> OFFSET_BITS == word.address >> OFFSET_BITS
                    && parameter.address <= word.address
            });
            word.element = of_buffer
                .max_by_key(|parameter| parameter.address)
                .map(|of| {
                    let element = (word.address - of.address) / u64::from(of.bytes.max(1));
                    format!("{}[{element}]", of.name)
                });
        }
    }
}

impl Counters {
    /// The kinds of requests to global memory, with their names.
    #[must_use]
    pub fn global(&self) -> [(&'static str, GlobalCounters); 5] {
        [
            ("loads", self.global_loads),
            ("stores", self.global_stores),
            ("atomics", self.global_atomics),
            ("reductions", self.global_reductions),
            ("asynchronous copies", self.async_copies),
        ]
    }

    /// The kinds of requests to shared memory, with their names.
    #[must_use]
    pub fn shared(&self) -> [(&'static str, SharedCounters); 3] {
        [
            ("loads", self.shared_loads),
            ("stores", self.shared_stores),
            ("atomics", self.shared_atomics),
        ]
    }

    /// The kinds of collective operations, with their names.
    #[must_use]
    pub fn collectives(&self) -> [(&'static str, CollectiveCounters); 5] {
        [
            ("shuffles", self.shuffles),
            ("votes", self.votes),
            ("matrix products", self.matrix_products),
            ("warp barriers", self.warp_barriers),
            ("block barriers", self.block_barriers),
        ]
    }

    /// Atomic operations of single lanes, in global and in shared memory.
    #[must_use]
    pub fn atomic_operations(&self) -> u64 {
        self.global_atomics.lanes + self.global_reductions.lanes + self.shared_atomics.lanes
    }

    /// The active lanes of a request or a collective operation, in the mean; 0 without any.
    #[must_use]
    pub fn lanes_per_instruction(&self) -> f64 {
        let global = self.global().map(|(_, of)| (of.requests, of.lanes));
        let shared = self.shared().map(|(_, of)| (of.requests, of.lanes));
        let collectives = self.collectives().map(|(_, of)| (of.executed, of.lanes));
        let (mut executed, mut lanes) = (0, 0);
        for (its_executed, its_lanes) in global.into_iter().chain(shared).chain(collectives) {
            executed += its_executed;
            lanes += its_lanes;
        }
        ratio(lanes, executed)
    }
}

impl SharedCounters {
    /// The active lanes of a request, in the mean.
    #[must_use]
    pub fn lanes_per_request(&self) -> f64 {
        ratio(self.lanes, self.requests)
    }
}

impl CollectiveCounters {
    /// The active lanes of an instruction, in the mean.
    #[must_use]
    pub fn lanes_per_instruction(&self) -> f64 {
        ratio(self.lanes, self.executed)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(name: &str, address: u64, bytes: u32) -> Parameter {
        Parameter {
            name: name.to_owned(),
            address,
            element: "f32",
            bytes,
        }
    }

    #[test]
    fn contended_words_have_the_names_of_their_elements() {
        let word = |address| ContendedWord {
            address,
            element: None,
            operations: 2,
        };
        let buffer = 5 << OFFSET_BITS;
        let mut report = LaunchReport {
            contended: vec![word(buffer + 68), word(buffer + 4), word(9 << OFFSET_BITS)],
            ..LaunchReport::default()
        };
        // The parameter `part` points into the buffer that `y` points to.
        report.name_parameters(&[
            parameter("y", buffer, 4),
            parameter("part", buffer + 64, 4),
            parameter("x", 4 << OFFSET_BITS, 4),
        ]);
        let names = report.contended.iter().map(|word| word.element.as_deref());
        assert!(names.eq([Some("part[1]"), Some("y[1]"), None]));
    }

    #[test]
    fn lanes_per_instruction_are_those_of_all_kinds() {
        let counters = Counters {
            global_loads: GlobalCounters {
                requests: 3,
                lanes: 96,
                ..GlobalCounters::default()
            },
            shared_stores: SharedCounters {
                requests: 2,
                lanes: 2,
                ..SharedCounters::default()
            },
            votes: CollectiveCounters {
                executed: 1,
                lanes: 28,
            },
            ..Counters::default()
        };
        assert!((counters.lanes_per_instruction() - 21.0).abs() < 1e-12);
        assert!(Counters::default().lanes_per_instruction().abs() < 1e-12);
    }

    #[test]
    fn bytes_used_are_those_of_the_sectors() {
        let counters = GlobalCounters {
            requests: 1,
            sectors: 32,
            lanes: 32,
            bytes: 128,
        };
        assert!((counters.bytes_used() - 0.125).abs() < 1e-12);
        assert!((counters.sectors_per_request() - 32.0).abs() < 1e-12);
    }
}
