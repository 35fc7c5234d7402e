//! The sizes of GPUs that the models of occupancy and caches need.

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

impl Hardware {
    /// NVIDIA A100 (compute capability 8.0): "NVIDIA A100 Tensor Core GPU Architecture" (2020) and the tuning guide for
    /// Ampere.
    pub const A100: Self = Self {
        multiprocessors: 108,
        l1_bytes: 192 << 10,
        l2_bytes: 40 << 20,
        registers: 64 << 10,
        max_warps: 64,
        max_blocks: 32,
        shared_bytes: 164 << 10,
        reserved_shared_bytes: 1 << 10,
    };

    /// NVIDIA H100 SXM (compute capability 9.0): "NVIDIA H100 Tensor Core GPU Architecture" (2022) and the tuning guide
    /// for Hopper.
    pub const H100: Self = Self {
        multiprocessors: 132,
        l1_bytes: 256 << 10,
        l2_bytes: 50 << 20,
        registers: 64 << 10,
        max_warps: 64,
        max_blocks: 32,
        shared_bytes: 228 << 10,
        reserved_shared_bytes: 1 << 10,
    };

    /// NVIDIA H200 SXM (compute capability 9.0): an H100 whose driver reports an L2 cache of 60 MiB.
    pub const H200: Self = Self {
        l2_bytes: 60 << 20,
        ..Self::H100
    };
}
