//! The kernels of warprow: a folder a family, a file a rung, one new idea a rung.
//!
//! The crate is `no_std`. Compiled for `nvptx64-nvidia-cuda` it becomes PTX; compiled for the host, the same source runs
//! on the emulator, and each kernel's name is a typed handle for its launch.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

pub mod csr;
pub mod gcn;
pub mod gemm;
pub mod log_softmax;
pub mod matrix;
pub mod order;
pub mod scan;
pub mod sort;
pub mod spgemm;
pub mod spmm;
mod unroll;
