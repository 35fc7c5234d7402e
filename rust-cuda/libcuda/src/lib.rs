//! The CUDA driver, found at run time: a program that uses `cust` links and starts where no CUDA is installed.
//!
//! `cust` declares the functions of the driver library `libcuda.so.1` and asks the linker for `-lcuda`. A program linked
//! so does not start on a machine without the driver. This crate defines every one of those functions itself; an archive
//! with no members, `link/lib64/libcuda.a`, is all that `-lcuda` then has to find. How it works:
//!
//! 1. Each function of the table in `functions.rs` is a stub: two instructions that jump to the address in the function's
//!    slot. A jump leaves registers and stack as the caller set them, so one stub serves every signature.
//! 2. At first each slot holds the address of `first_call`, which saves the argument registers, calls [`load`], restores
//!    them, and jumps through the slot again. A dynamic linker binds functions lazily in the same way.
//! 3. [`load`] opens the driver library once for the process and writes the driver's address into every slot. From then
//!    on a call costs one more jump than it would without this crate.
//! 4. A function that the driver is too old to have returns `CUDA_ERROR_NOT_FOUND` (500).
//! 5. With no driver every function returns `CUDA_ERROR_STUB_LIBRARY` (34), as the stub library of the CUDA toolkit does.
//!    [`load`] tells why. Only `cuGetErrorName` and `cuGetErrorString` succeed, with one fixed text: `cust` displays its
//!    errors through them, and an error that cannot be displayed panics in `to_string`.
//!
//! A program must name this crate for the stubs to be linked into it; a call of [`load`] does. Its workspace must set
//! `CUDA_LIBRARY_PATH` to this crate's directory `link`, as `.cargo/config.toml` does here, or the build script of `cust`
//! stops for want of a CUDA installation.
//!
//! The environment variable [`WARPROW_LIBCUDA`](LIBRARY_VARIABLE) names the library to open in place of the driver's.

#[cfg(not(all(unix, any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!(
    "CUDA is supported on x86_64 and aarch64 with a Unix system; on others build warprow without its feature `cuda` \
     (`--no-default-features`): kernels then run on the emulator"
);

#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod driver;
#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod stubs;

#[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use driver::{Attempt, Driver, LIBRARY_VARIABLE, LoadError, load};
