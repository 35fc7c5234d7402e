//! A model of the caches: bytes that a launch reads from memory.

use serde::{Deserialize, Serialize};

/// The sizes of a GPU that the models need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardware {
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of the L1 cache of a multiprocessor, shared memory included.
    pub l1_bytes: u32,
    /// Bytes of the L2 cache.
    pub l2_bytes: u64,
    /// Registers of a multiprocessor.
    pub registers: u32,
    /// Maximum number of warps of a multiprocessor.
    pub max_warps: u32,
    /// Maximum number of blocks of a multiprocessor.
    pub max_blocks: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_bytes: u32,
    /// Bytes of shared memory that the system reserves for each block.
    pub reserved_shared_bytes: u32,
}

/// Traffic of a launch, as a model of the caches says. It is no measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryTraffic {
    /// Bytes that the L1 caches read from L2.
    pub l2_read_bytes: u64,
    /// Bytes that L2 reads from memory.
    pub memory_read_bytes: u64,
}
