//! Kernels that compute no result: baselines that the benches measure the library's kernels against.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

pub mod gather_limit;

/// These kernels as PTX: an archive of modules.
#[cfg(not(target_arch = "nvptx64"))]
pub const PTX: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.zip"));
