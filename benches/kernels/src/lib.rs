//! Kernels of the benches: baselines for the library's kernels, and kernels whose counters are known.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

pub mod counters;
pub mod gather_limit;

/// These kernels as PTX: an archive of modules.
#[cfg(not(target_arch = "nvptx64"))]
pub const PTX: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.zip"));
