//! The small kernels of the book: a file for each subject, in the order of the chapters.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

pub mod copies;
pub mod faults;
pub mod hello;
pub mod scan;
pub mod spmv;
pub mod sums;
pub mod tasks;
pub mod together;
pub mod transpose;

/// These kernels as PTX: an archive of modules.
#[cfg(target_os = "linux")]
pub const PTX: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kernels.zip"));
