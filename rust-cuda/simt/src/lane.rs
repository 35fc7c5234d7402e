//! The device functions of a kernel's thread. An error of the kernel ends the launch with a [`Fault`](crate::Fault) at
//! the line of the caller.
//!
//! # Panics
//!
//! All functions panic outside of a launch.
//!
//! # Inlining
//!
//! The switch itself is inlined into every function that may wait. A processor predicts that a return goes back to the
//! last call. A fiber that is resumed inside a function which another fiber has called breaks that prediction, which
//! costs more than the switch. Functions that never wait, such as loads and stores, are not inlined: the compiler then
//! inlines more of the kernel's own functions.

mod access;
mod asynchronous;
mod atomic;
mod collective;
mod memory;
mod shuffle;
mod warpgroup;

use crate::block::current::current;
use crate::limits::WARP_SIZE;

pub use asynchronous::*;
pub use atomic::*;
pub use collective::*;
pub use memory::*;
pub use shuffle::*;
pub use warpgroup::*;

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

/// The number of the thread in its warp, 0 to 31.
#[inline(always)]
#[track_caller]
pub fn lane_id() -> u32 {
    current().lane()
}

/// The number of the warp in its block. A warp is 32 consecutive threads; x is the fastest dimension.
#[inline(always)]
#[track_caller]
pub fn warp_id() -> u32 {
    current().index() / WARP_SIZE
}
