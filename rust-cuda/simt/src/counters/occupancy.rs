//! Theoretical occupancy: how many warps of a launch a multiprocessor can hold.
//!
//! Nsight Compute has it as `launch__occupancy_limit_{registers,shared_mem,warps,blocks}` and
//! `sm__maximum_warps_per_active_cycle_pct`. The rules are those of NVIDIA's occupancy calculator for compute
//! capabilities 8.0 and 9.0:
//!
//! - A warp gets registers in units of 256. Each of the four partitions of a multiprocessor has a quarter of the
//!   registers, and the warps are spread over the partitions.
//! - A block gets shared memory in units of 128 bytes, together with what the system reserves for it.
//! - The driver gives shared memory as much of the L1 cache as the blocks need, at most
//!   [`Hardware::shared_bytes`].

use serde::{Deserialize, Serialize};

use crate::counters::hardware::Hardware;
use crate::limits::WARP_SIZE;

/// Registers that a warp gets at a time.
const REGISTER_UNIT: u32 = 256;
/// Partitions of a multiprocessor.
const PARTITIONS: u32 = 4;
/// Bytes of shared memory that a block gets at a time.
const SHARED_UNIT: u32 = 128;
/// Maximum number of registers of a thread.
const MAX_REGISTERS: u32 = 255;

/// The warps of a launch that one multiprocessor holds at most, and what limits them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Occupancy {
    /// Registers of a thread.
    pub registers: u32,
    /// Blocks of a multiprocessor, as registers allow.
    pub blocks_by_registers: u32,
    /// Blocks of a multiprocessor, as shared memory allows.
    pub blocks_by_shared_memory: u32,
    /// Blocks of a multiprocessor, as the maximum number of warps allows.
    pub blocks_by_warps: u32,
    /// The maximum number of blocks of a multiprocessor.
    pub blocks_by_hardware: u32,
    /// Resident warps of a multiprocessor: the least of the four, in warps.
    pub warps: u32,
    /// Warps that a multiprocessor can hold.
    pub max_warps: u32,
}

/// What limits the warps that a multiprocessor holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OccupancyLimit {
    /// Registers of the threads.
    Registers,
    /// Shared memory of the blocks.
    SharedMemory,
    /// The maximum number of warps.
    Warps,
    /// The maximum number of blocks.
    Blocks,
}

impl Occupancy {
    /// The occupancy of a launch with blocks of `threads`, each with `shared_bytes` of static and dynamic shared memory
    /// together. A thread has `registers`.
    #[must_use]
    pub fn new(hardware: &Hardware, threads: u32, shared_bytes: u32, registers: u32) -> Self {
        let warps = threads.div_ceil(WARP_SIZE).max(1);
        let shared = shared_bytes
            .saturating_add(hardware.reserved_shared_bytes)
            .checked_next_multiple_of(SHARED_UNIT);
        let by_shared = shared.map_or(0, |bytes| {
            hardware.shared_bytes.checked_div(bytes).unwrap_or(u32::MAX)
        });
        let mut occupancy = Self {
            registers,
            blocks_by_registers: warps_by_registers(hardware, registers) / warps,
            blocks_by_shared_memory: by_shared,
            blocks_by_warps: hardware.max_warps / warps,
            blocks_by_hardware: hardware.max_blocks,
            warps: 0,
            max_warps: hardware.max_warps,
        };
        occupancy.warps = occupancy.blocks() * warps;
        occupancy
    }

    /// Resident blocks of a multiprocessor.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.limits()
            .map(|(blocks, _)| blocks)
            .into_iter()
            .min()
            .unwrap_or(0)
    }

    /// Resident warps as a part of those that a multiprocessor can hold, 0 to 1.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        f64::from(self.warps) / f64::from(self.max_warps.max(1))
    }

    /// What limits the resident warps; the maximum number of warps before all others that limit them as much.
    #[must_use]
    pub fn limit(&self) -> OccupancyLimit {
        let least = self.blocks();
        let mut limits = self.limits().into_iter();
        let limit = limits.find(|&(blocks, _)| blocks == least);
        limit.map_or(OccupancyLimit::Warps, |(_, limit)| limit)
    }

    fn limits(&self) -> [(u32, OccupancyLimit); 4] {
        [
            (self.blocks_by_warps, OccupancyLimit::Warps),
            (self.blocks_by_registers, OccupancyLimit::Registers),
            (self.blocks_by_shared_memory, OccupancyLimit::SharedMemory),
            (self.blocks_by_hardware, OccupancyLimit::Blocks),
        ]
    }
}

/// The warps whose registers a multiprocessor has; none if a thread wants more registers than it can have.
fn warps_by_registers(hardware: &Hardware, registers: u32) -> u32 {
    if registers > MAX_REGISTERS {
        return 0;
    }
    let of_warp = (registers.max(1) * WARP_SIZE).next_multiple_of(REGISTER_UNIT);
    hardware.registers / PARTITIONS / of_warp * PARTITIONS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks by registers, shared memory, warps and hardware, and the resident warps, on an H100.
    fn limits(threads: u32, shared: u32, registers: u32) -> [u32; 5] {
        let found = Occupancy::new(&Hardware::H100, threads, shared, registers);
        [
            found.blocks_by_registers,
            found.blocks_by_shared_memory,
            found.blocks_by_warps,
            found.blocks_by_hardware,
            found.warps,
        ]
    }

    #[test]
    fn registers_are_given_to_warps_in_units_of_256() {
        // 37 * 32 = 1184, so 1280 registers a warp; 16384 / 1280 = 12 warps in each partition, 48 warps, 12 blocks.
        assert_eq!(limits(128, 0, 37)[0], 12);
        // 32 registers: 1024 a warp, 16 warps a partition, 64 warps.
        assert_eq!(limits(128, 0, 32), [16, 228, 16, 32, 64]);
        // One register more takes 1280 a warp again.
        assert_eq!(limits(128, 0, 33)[0], 12);
        // 255 registers: 8192 a warp, 2 warps a partition, 8 warps.
        assert_eq!(limits(256, 0, 255), [1, 228, 8, 32, 8]);
        assert_eq!(limits(1024, 0, 64), [1, 228, 2, 32, 32]);
    }

    #[test]
    fn warps_are_spread_over_the_partitions() {
        // 168 * 32 = 5376: 12 warps by all registers together, 3 in each partition; 12 warps hold one block of 10.
        assert_eq!(limits(320, 0, 168)[0], 1);
        // 72 * 32 = 2304: 28 warps by all registers together, and 7 in each partition.
        assert_eq!(limits(32, 0, 72)[0], 28);
        // 96 * 32 = 3072: 21 warps by all registers together, but 5 in each partition.
        assert_eq!(limits(32, 0, 96)[0], 20);
    }

    #[test]
    fn a_thread_with_too_many_registers_fits_nowhere() {
        assert_eq!(limits(32, 0, 256), [0, 228, 64, 32, 0]);
    }

    #[test]
    fn shared_memory_is_given_in_units_of_128_bytes_with_what_the_system_reserves() {
        // 228 KiB for blocks of 48 + 1 KiB.
        assert_eq!(limits(128, 48 << 10, 32), [16, 4, 16, 32, 16]);
        // The largest block.
        assert_eq!(limits(128, 227 << 10, 32)[1], 1);
        assert_eq!(limits(128, (227 << 10) + 1, 32)[1], 0);
        // 1 byte costs 1024 + 128: 233472 / 1152 = 202.
        assert_eq!(limits(128, 1, 32)[1], 202);
        // An A100 has 164 KiB.
        let a100 = Occupancy::new(&Hardware::A100, 128, 48 << 10, 32);
        assert_eq!(a100.blocks_by_shared_memory, 3);
        assert_eq!(limits(32, u32::MAX, 32)[1], 0);
    }

    #[test]
    fn small_blocks_are_limited_by_their_number() {
        let small = Occupancy::new(&Hardware::H200, 32, 0, 32);
        assert_eq!((small.warps, small.limit()), (32, OccupancyLimit::Blocks));
        assert!((small.fraction() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_part_of_a_warp_counts_as_a_warp() {
        assert_eq!(limits(33, 0, 32)[2], 32);
        assert_eq!(limits(1, 0, 32)[2], 64);
    }

    #[test]
    fn the_limit_is_what_allows_the_fewest_blocks() {
        let limit = |threads, shared, registers| {
            Occupancy::new(&Hardware::H100, threads, shared, registers).limit()
        };
        assert_eq!(limit(128, 0, 32), OccupancyLimit::Warps);
        assert_eq!(limit(128, 0, 40), OccupancyLimit::Registers);
        assert_eq!(limit(128, 100 << 10, 40), OccupancyLimit::SharedMemory);
    }
}
