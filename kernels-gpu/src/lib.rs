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

/// The PTX entry points of all kernels, sorted.
#[cfg(not(target_arch = "nvptx64"))]
pub fn entry_points() -> Vec<&'static str> {
    let mut names = [
        csr::entry_points(),
        gcn::entry_points(),
        gemm::entry_points(),
        log_softmax::entry_points(),
        order::entry_points(),
        scan::entry_points(),
        sort::entry_points(),
        spgemm::entry_points(),
        spmm::entry_points(),
    ]
    .concat();
    names.sort_unstable();
    names
}
