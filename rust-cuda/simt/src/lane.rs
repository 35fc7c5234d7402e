//! What a kernel's thread can do. Every function here must be called from within a launch.
//!
//! # Panics
//!
//! All functions panic when they are called outside of a launch. What a kernel does wrong is no panic, but ends the
//! launch with a [`Fault`](crate::Fault) at the line of the caller.
//!
//! What may wait is inlined into the kernel, and what wraps it should be too: the processor predicts a return only if
//! it belongs to the last call, and a fiber that is resumed within a function that another fiber has called returns
//! where it was not expected. That costs more than the switch. For the same reason what does not wait is not inlined,
//! loads and stores above all: the compiler then inlines more of the kernel's own functions and closures.

mod asynchronous;
mod collective;
mod memory;

use crate::current::current;
use crate::limits::WARP_SIZE;

pub use asynchronous::*;
pub use collective::*;
pub use memory::*;

/// The thread's index in its block.
#[inline(always)]
#[track_caller]
pub fn thread_idx() -> [u32; 3] {
    current().thread()
}

/// The block's index in the grid.
#[inline(always)]
#[track_caller]
pub fn block_idx() -> [u32; 3] {
    current().block().index()
}

/// The threads of a block.
#[inline(always)]
#[track_caller]
pub fn block_dim() -> [u32; 3] {
    current().block().context().block
}

/// The blocks of the grid.
#[inline(always)]
#[track_caller]
pub fn grid_dim() -> [u32; 3] {
    current().block().context().grid
}

/// The thread's position in its warp.
#[inline(always)]
#[track_caller]
pub fn lane_id() -> u32 {
    current().lane()
}

/// The warp's number in its block: warps are 32 consecutive threads, x running fastest.
#[inline(always)]
#[track_caller]
pub fn warp_id() -> u32 {
    current().index() / WARP_SIZE
}
