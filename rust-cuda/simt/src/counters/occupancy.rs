//! Theoretical occupancy: how many warps of a launch a multiprocessor can hold.

use serde::{Deserialize, Serialize};

/// The warps of a launch that one multiprocessor holds at most, and what limits them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
