//! A model of the caches: bytes that a launch reads from L2 and from memory. It measures nothing.
//!
//! - The caches are empty when the launch starts, as Nsight Compute leaves them before each launch.
//! - Block b runs on multiprocessor b modulo their number. As many blocks run together as occupancy allows, all of them
//!   start and end together, and each makes one access after the other in turn.
//! - A cache has lines of 128 bytes in sets of 16. The line that was not used for the longest time leaves its set. A
//!   miss fetches the sectors of 32 bytes that are missing, not the line.
//! - L1 keeps what was loaded. Stores and atomic operations go to L2, and asynchronous copies of 16 bytes come from it.
//! - An atomic operation reads its sector. A store does not, also if it writes a part of it only.
//!
//! On an H200, all kernels of the SpMM ladder but one read from memory what this says, to 2 %. `thread_per_row` reads
//! 20 % more: its stores fill a sector slowly, and the GPU seems to read some sectors that are written in part.

mod cache;
mod stream;

use std::collections::BTreeMap;

use crate::counters::hardware::Hardware;
use crate::counters::occupancy::Occupancy;
use crate::counters::report::MemoryTraffic;
use crate::counters::request::sectors::SECTOR;
use cache::Cache;
use stream::Operation;
pub(crate) use stream::Stream;

/// Registers of a thread, while they are not known: so few that they limit nothing.
const REGISTERS: u32 = 32;
/// Maximum number of words of the streams of blocks that run together. With more, fewer blocks run together.
const MAX_WORDS: usize = 1 << 25;

/// The caches of a GPU while a launch runs.
///
/// Blocks may be added in any order. They run in the order of their numbers, so the model keeps the streams of blocks
/// that have ended before a block with a lower number has.
pub(crate) struct MemoryModel {
    hardware: Hardware,
    /// Threads of a block.
    threads: u32,
    /// Blocks that wait for one with a lower number.
    waiting: BTreeMap<u64, Stream>,
    /// The number of the block that is added next.
    next: u64,
    /// The blocks that run together next, and the number of the first.
    wave: Vec<Stream>,
    first: u64,
    /// Words of the streams of these blocks.
    wave_words: usize,
    /// The number of blocks that run together. It is known when the first block has ended.
    wave_blocks: Option<usize>,
    l1: Vec<Cache>,
    l2: Cache,
    traffic: MemoryTraffic,
}

impl MemoryModel {
    /// Empty caches, for a launch with blocks of `threads`.
    pub fn new(hardware: Hardware, threads: u32) -> Self {
        Self {
            hardware,
            threads,
            waiting: BTreeMap::new(),
            next: 0,
            wave: Vec::new(),
            first: 0,
            wave_words: 0,
            wave_blocks: None,
            l1: Vec::new(),
            l2: Cache::new(hardware.l2_bytes),
            traffic: MemoryTraffic::default(),
        }
    }

    /// Adds the accesses of block `number`, which has ended, and which has `shared_bytes` of shared memory.
    pub fn add(&mut self, number: u64, shared_bytes: u32, stream: Stream) {
        let wave_blocks = match self.wave_blocks {
            Some(blocks) => blocks,
            None => self.start(shared_bytes),
        };
        self.waiting.insert(number, stream);
        while let Some(stream) = self.waiting.remove(&self.next) {
            self.next += 1;
            self.wave_words += stream.len();
            self.wave.push(stream);
            if self.wave.len() == wave_blocks || self.wave_words > MAX_WORDS {
                self.run();
            }
        }
    }

    /// Runs the blocks that are left. Returns the traffic of all blocks.
    pub fn finish(&mut self) -> MemoryTraffic {
        self.run();
        self.traffic
    }

    /// Makes the L1 caches. Returns the number of blocks that run together.
    fn start(&mut self, shared_bytes: u32) -> usize {
        let hardware = self.hardware;
        let occupancy = Occupancy::new(&hardware, self.threads, shared_bytes, REGISTERS);
        let resident = occupancy.blocks().max(1);
        let shared = (shared_bytes + hardware.reserved_shared_bytes).saturating_mul(resident);
        let l1_bytes = u64::from(hardware.l1_bytes.saturating_sub(shared));
        let multiprocessors = hardware.multiprocessors.max(1) as usize;
        self.l1 = (0..multiprocessors).map(|_| Cache::new(l1_bytes)).collect();
        *self.wave_blocks.insert(multiprocessors * resident as usize)
    }

    /// Runs the blocks of the wave.
    fn run(&mut self) {
        let wave = std::mem::take(&mut self.wave);
        self.wave_words = 0;
        let multiprocessors = self.l1.len() as u64;
        let mut running: Vec<_> = (self.first..)
            .zip(&wave)
            .map(|(block, stream)| ((block % multiprocessors) as usize, stream.operations()))
            .collect();
        self.first += wave.len() as u64;
        while !running.is_empty() {
            running.retain_mut(|(multiprocessor, operations)| {
                let operation = operations.next();
                if let Some(operation) = operation {
                    self.perform(*multiprocessor, operation);
                }
                operation.is_some()
            });
        }
    }

    fn perform(&mut self, multiprocessor: usize, operation: Operation) {
        let l1 = &mut self.l1[multiprocessor];
        match operation {
            Operation::Load { line, sectors } => {
                let missing = l1.read(line, sectors);
                self.load(line, missing);
            }
            Operation::LoadFromL2 { line, sectors } => self.load(line, sectors),
            Operation::Atomic { line, sectors } => {
                l1.forget(line, sectors);
                self.read_memory(line, sectors);
            }
            Operation::Store { line, sectors } => self.l2.write(line, sectors),
            Operation::StorePart { sector, bytes } => self.l2.write_part(sector, bytes),
        }
    }

    /// Loads sectors of a line from L2.
    fn load(&mut self, line: u64, sectors: u8) {
        if sectors != 0 {
            self.traffic.l2_read_bytes += SECTOR * u64::from(sectors.count_ones());
            self.read_memory(line, sectors);
        }
    }

    /// Has L2 read those sectors of a line from memory that it does not have.
    fn read_memory(&mut self, line: u64, sectors: u8) {
        let missing = self.l2.read(line, sectors);
        self.traffic.memory_read_bytes += SECTOR * u64::from(missing.count_ones());
    }
}

#[cfg(test)]
mod tests;
