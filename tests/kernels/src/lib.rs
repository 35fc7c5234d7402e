//! Small kernels, one or more for every function of the device library, for the tests that run them on every device.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

pub mod async_copies;
pub mod atomics;
pub mod floats;
pub mod memories;
pub mod mma;
pub mod threads;
pub mod warps;

/// These kernels as PTX.
#[cfg(not(target_arch = "nvptx64"))]
pub const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));

/// The PTX entry points of all kernels, sorted.
#[cfg(not(target_arch = "nvptx64"))]
pub fn entry_points() -> Vec<&'static str> {
    let mut names = [
        async_copies::entry_points(),
        atomics::entry_points(),
        floats::entry_points(),
        memories::entry_points(),
        mma::entry_points(),
        threads::entry_points(),
        warps::entry_points(),
    ]
    .concat();
    names.sort_unstable();
    names
}
