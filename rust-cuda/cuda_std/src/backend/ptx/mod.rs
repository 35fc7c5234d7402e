//! The PTX back end: an operation is one instruction, an intrinsic of LLVM or inline assembly.
//!
//! Rust's own loads and atomics compile to generic or system-wide instructions (`ld.b32`, `atom.sys`); neither LLVM nor
//! `ptxas` infers the memory space. Two rules:
//!
//! - An operation of a warp or a block is a convergent intrinsic, or else assembly in [`collective_asm!`]. LLVM would
//!   copy other assembly into branches, and lanes would wait for each other at two places.
//! - Read-only loads are `pure, readonly`, so LLVM may merge and move them. All other accesses clobber memory.

mod async_copy;
mod atomic;
mod collective;
mod float;
mod memory;
mod mma;
mod shared;
mod thread;
mod warp;
mod warpgroup;

pub(crate) use async_copy::*;
pub(crate) use atomic::or_shared;
pub(crate) use float::*;
pub(crate) use memory::mul_wide;
pub(crate) use mma::*;
pub(crate) use shared::*;
pub(crate) use thread::*;
pub(crate) use warp::*;
pub(crate) use warpgroup::*;

/// Stops the kernel; the launch then fails with an error.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: `trap` only stops the kernel, and has no preconditions.
    unsafe { core::arch::nvptx::trap() }
}
