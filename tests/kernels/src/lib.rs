//! Small kernels for the tests of the device library: one or more for each of its functions, run on
//! every device.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

pub mod async_copies;
pub mod atomics;
pub mod collectives;
pub mod floats;
pub mod memories;
pub mod mma;
pub mod threads;
pub mod warps;

/// These kernels as PTX: an archive of modules.
#[cfg(not(target_arch = "nvptx64"))]
pub const PTX: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.zip"));
