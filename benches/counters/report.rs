//! The results: a JSON object for each launch on the emulator, and for each case on a GPU.

use serde::Serialize;
use simt::{MemoryTraffic, Occupancy};
use warprow::device::{Counters, LaunchReport};

/// What the emulator has counted in a launch.
#[derive(Serialize)]
pub struct Counted<'a> {
    /// The case.
    pub case: &'a str,
    /// The number of the launch in its case.
    pub launch: usize,
    kernel: &'a str,
    grid: [u32; 3],
    block: [u32; 3],
    static_shared_bytes: u32,
    dynamic_shared_bytes: u32,
    counters: Counters,
    lanes_per_instruction: f64,
    memory: Option<MemoryTraffic>,
    /// Registers of a thread by the table of the library's kernels.
    registers: Option<u32>,
    occupancy: Option<OccupancyLimits>,
}

/// The occupancy of a launch, in the terms of Nsight Compute.
#[derive(Serialize)]
struct OccupancyLimits {
    registers: u32,
    blocks_by_registers: u32,
    blocks_by_shared_memory: u32,
    blocks_by_warps: u32,
    blocks_by_hardware: u32,
    warps_percent: f64,
}

impl<'a> Counted<'a> {
    /// Launch `launch` of a case, whose kernel has by the table so many registers, if it is in the table.
    pub fn new(
        case: &'a str,
        launch: usize,
        report: &'a LaunchReport,
        registers: Option<u32>,
    ) -> Self {
        Self {
            case,
            launch,
            kernel: &report.kernel,
            grid: report.grid,
            block: report.block,
            static_shared_bytes: report.static_shared_bytes,
            dynamic_shared_bytes: report.dynamic_shared_bytes,
            counters: report.total,
            lanes_per_instruction: report.total.lanes_per_instruction(),
            memory: report.memory,
            registers,
            occupancy: report.occupancy.as_ref().map(OccupancyLimits::of),
        }
    }
}

impl OccupancyLimits {
    fn of(occupancy: &Occupancy) -> Self {
        Self {
            registers: occupancy.registers,
            blocks_by_registers: occupancy.blocks_by_registers,
            blocks_by_shared_memory: occupancy.blocks_by_shared_memory,
            blocks_by_warps: occupancy.blocks_by_warps,
            blocks_by_hardware: occupancy.blocks_by_hardware,
            warps_percent: 100.0 * occupancy.fraction(),
        }
    }
}

/// What a GPU has run, while `ncu` counted.
#[derive(Serialize)]
pub struct Ran<'a> {
    /// The case.
    pub case: &'a str,
    /// The launches of its product.
    pub launches: u64,
}

/// A case that the device or the kernel cannot compute.
#[derive(Serialize)]
pub struct Skipped<'a> {
    /// The case.
    pub case: &'a str,
    /// Why.
    pub skipped: String,
}
