//! The PTX back end: one instruction for each operation, written as inline assembly.
//!
//! Why assembly and not Rust's own loads and atomics: those compile to generic or system-wide instructions (`ld.b32`,
//! `atom.sys`), and neither LLVM nor `ptxas` finds the memory space again. Two rules of the options:
//!
//! - An operation of a whole warp or block is never `pure`: LLVM would move it into divergent code. It may be `nomem`
//!   when it orders no memory.
//! - Read-only loads are `pure, readonly`: they may be merged and moved. All other accesses clobber memory.

mod async_copy;
mod atomic;
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

/// Stops the kernel: the launch then fails with an error.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: `trap` has no preconditions.
    unsafe { core::arch::nvptx::trap() }
}
