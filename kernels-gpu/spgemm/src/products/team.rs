//! Teams: the threads that work on one row together, a warp or a whole block.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// The threads that share a row and its table in shared memory: a warp, or with `BLOCK` all warps of the block.
#[derive(Clone, Copy)]
pub struct Team<const BLOCK: bool>;

impl<const BLOCK: bool> Team<BLOCK> {
    /// The warp's number in the team.
    #[inline(always)]
    pub fn warp(self) -> u32 {
        if BLOCK {
            thread::thread_idx_x() / WARP_SIZE
        } else {
            0
        }
    }

    /// Warps of the team.
    #[inline(always)]
    pub fn warps(self) -> u32 {
        if BLOCK {
            thread::block_dim_x() / WARP_SIZE
        } else {
            1
        }
    }

    /// The thread's number in the team.
    #[inline(always)]
    pub fn thread(self) -> u32 {
        if BLOCK {
            thread::thread_idx_x()
        } else {
            warp::lane_id()
        }
    }

    /// Threads of the team.
    #[inline(always)]
    pub fn threads(self) -> u32 {
        if BLOCK {
            thread::block_dim_x()
        } else {
            WARP_SIZE
        }
    }

    /// The team's number in the grid.
    #[inline(always)]
    pub fn index(self) -> u32 {
        if BLOCK {
            thread::block_idx_x()
        } else {
            thread::block_idx_x() * (thread::block_dim_x() / WARP_SIZE) + self.index_in_block()
        }
    }

    /// The team's number in its block.
    #[inline(always)]
    pub fn index_in_block(self) -> u32 {
        if BLOCK {
            0
        } else {
            thread::thread_idx_x() / WARP_SIZE
        }
    }

    /// Waits for the team's threads, and makes their writes visible to each other.
    #[inline(always)]
    #[track_caller]
    pub fn sync(self) {
        if BLOCK {
            thread::sync_threads();
        } else {
            warp::sync_warp(FULL_MASK);
        }
    }
}
