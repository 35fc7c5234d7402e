//! Finds the CUDA driver at run time, so programs that use `cust` build and start on machines without CUDA.
//!
//! `cust` declares the functions of `libcuda.so.1` and links with `-lcuda`, so its programs do not start without the
//! driver. This crate defines all those functions as stubs; `-lcuda` finds an empty archive, which `build.rs` writes.
//!
//! 1. A stub calls the address in the function's slot with the arguments that it got, whatever the signature is.
//! 2. At first, each slot has the address of `first_call`. It saves the arguments, calls [`load`], and jumps again.
//! 3. [`load`] opens the driver and writes the addresses of its functions into the slots.
//! 4. A function that the driver lacks returns `CUDA_ERROR_NOT_FOUND` (500). Without a driver, all functions return
//!    `CUDA_ERROR_STUB_LIBRARY` (34), and [`load`] tells why. Only `cuGetErrorName` and `cuGetErrorString` succeed,
//!    with a fixed text, because `cust` panics if they fail when it displays an error.
//! 5. A code that `cust` does not know becomes `CUDA_ERROR_UNKNOWN` (999), and [`last_error`] has the driver's.
//!
//! A program must use this crate for the linker to include the stubs; a call of [`load`] suffices. The build script of
//! `cust` fails without a CUDA toolkit, unless `CUDA_LIBRARY_PATH` names a folder with a folder `lib64`, such as
//! `/usr`. The crate is empty on systems other than Linux.

#![cfg(target_os = "linux")]

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!(
    "CUDA is supported on x86_64 and aarch64; on others build warprow without its feature `cuda` \
     (`--no-default-features`): kernels then run on the emulator"
);

mod codes;
mod driver;
mod stubs;

pub use codes::last_error;
pub use driver::{Attempt, Driver, LIBRARY_VARIABLE, LoadError, load};
