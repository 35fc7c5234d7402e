//! `row_bins` with all of X in shared memory: for few features, long rows, and an X that fits there.
//!
//! With few features, neighbouring lanes load from different rows of X. From the L1 cache such a load takes a cycle for
//! each cache line, whereas shared memory gives each lane 4 to 16 bytes of any row, up to 128 bytes a cycle. So each
//! multiprocessor has one block of 32 warps, which copies X once. Then it does the work of many blocks of `row_bins`,
//! here *virtual blocks*, which have four warps each. Eight of them run at a time:
//!
//! ```text
//! 132 multiprocessors      warps 0 to 3      4 to 7          28 to 31
//!
//! block 0                  0, then 1056      132, 1188       924, 1980      virtual blocks
//! block 1                  1, then 1057      133, 1189       925, 1981
//! ```
//!
//! The longest rows are in the first virtual blocks, so every multiprocessor gets some.
//!
//! When to use it: where the nonzeros of a multiprocessor save more cycles than its copy of X takes.

use super::{BLOCK, reduce_row};
use crate::product::group_sum;
use crate::product::lane_columns::SharedColumns;
use crate::product::reduction::{Reduction, Total};
use crate::product::scaling::Scaling;
use crate::{Items, LaunchShape};
use cuda_std::async_copy;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use warprow_kernels_matrix::{Operand, SumOf};

/// Threads in a block: all that a multiprocessor can run with 64 registers each.
const THREADS: u32 = 1024;

/// Warps in a block.
pub const WARPS: u32 = THREADS / WARP_SIZE;

/// Virtual blocks that a block has at the same time.
const BLOCKS_TOGETHER: u32 = THREADS / BLOCK;

/// Nonzeros of a lane whose columns and values are loaded together: twice as many as in `row_bins`, as fewer warps are
/// resident, and there are registers for them.
pub const LOADS: usize = 8;

/// Bytes that a thread copies at a time.
const COPY: u32 = 16;

/// The dynamic shared memory of a block in bytes: all of X, in whole copies; `None` if that is 4 GiB or more.
pub fn shared_bytes<T: Operand>(cols: u32, features: u32) -> Option<u32> {
    let elements = u64::from(cols) * u64::from(features);
    let bytes = elements.checked_mul(size_of::<T>() as u64)?;
    let whole = bytes.checked_next_multiple_of(COPY.into())?;
    u32::try_from(whole).ok()
}

/// Whether a launch of that shape has X in shared memory: if it has blocks for that, X and Y are packed, and the
/// reduction is a sum or a mean.
pub fn is_used(shape: LaunchShape, reduction: Reduction) -> bool {
    !reduction.is_extremum() && shape.shared_x_blocks > 0 && shape.row_starts == 0
}

/// Blocks as the shape says, or as many as have something to do.
pub(super) fn launch<T: Operand>(shape: LaunchShape) -> LaunchConfig {
    let bytes = shared_bytes::<T>(shape.cols, shape.features);
    // A device refuses a launch of so many bytes.
    LaunchConfig::new(shape.shared_x_blocks.min(shape.items), THREADS)
        .shared_bytes(bytes.unwrap_or(u32::MAX))
}

/// The handle of the kernel for the shape's variant.
#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn handle<T: Operand>(shape: LaunchShape) -> Kernel<crate::GeneralArguments<T>> {
    match group_sum::width::<T>(shape.vector_multiple(), Reduction::Sum) {
        1 => shared_x::<T, 1>(),
        2 => shared_x::<T, 2>(),
        _ => shared_x::<T, 4>(),
    }
}

/// As [`row_bins`](super::row_bins()), with X in shared memory.
///
/// A nonzero costs its group its column (4 B), its value and its row of X; a block copies X once.
///
/// # Safety
///
/// That of [`row_bins`](super::row_bins()), where blocks are those of its launch. X and Y have no gaps between their
/// rows; X starts at a multiple of 16 bytes, and the block has dynamic shared memory of [`shared_bytes`].
#[kernel(
    name = "spmm_row_bins_shared_x",
    T = [f32], WIDTH = [1, 2, 4], registers = 64;
    T = [f64], WIDTH = [1, 2], registers = 64;
    T = [f16, bf16], WIDTH = [1, 4], registers = 64
)]
pub unsafe fn shared_x<T: Operand, const WIDTH: usize>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    scaling: Scaling<SumOf<T>>,
) {
    let shared = shared::dynamic_shared_mem::<T>();
    let thread = thread::thread_idx_x();
    // SAFETY: the block has room for X, which starts at a multiple of 16 bytes; the copy is complete before any thread
    // reads it. `reduce_row` wants what this kernel wants, and a warp's threads are in one block of `row_bins`.
    unsafe {
        copy(&x, shared);
        let columns = |feature: u32| SharedColumns::<T, WIDTH>::new(shared, x.cols, feature);
        let blocks = thread::grid_dim_x();
        // At most 2^30 blocks of `row_bins`, and far fewer blocks at a time.
        let mut block = thread / BLOCK * blocks + thread::block_idx_x();
        while block < items.count {
            let thread = (block, thread % BLOCK);
            reduce_row::<T, Total, WIDTH, LOADS, _>(
                a,
                (x.cols, columns),
                y,
                items,
                scaling,
                thread,
            );
            block += blocks * BLOCKS_TOGETHER;
        }
    }
}

/// Copies X to shared memory, and waits for all threads of the block.
///
/// # Safety
///
/// X has no gaps, and starts at a multiple of 16 bytes; there is shared memory of [`shared_bytes`], which starts at
/// such a multiple too. All threads call it.
#[inline(always)]
unsafe fn copy<T: Operand>(x: &Dense<T>, to: Shared<T>) {
    let bytes = x.rows * x.cols * size_of::<T>() as u32;
    let mut at = thread::thread_idx_x() * COPY;
    // SAFETY: the copies are of X, and of its shared memory: whole ones, and the rest of the last one by elements.
    unsafe {
        while at + COPY <= bytes {
            let (from, to) = (x.data.cast::<u8>(), to.cast::<u8>());
            async_copy::copy::<u8, { COPY as usize }>(
                to.offset_bytes(at),
                from.offset_bytes(at.into()),
            );
            at += THREADS * COPY;
        }
        if at < bytes {
            let mut element = at / size_of::<T>() as u32;
            while element < x.rows * x.cols {
                to.store(element as usize, x.data.load(element as usize));
                element += 1;
            }
        }
        async_copy::commit();
        async_copy::wait::<0>();
    }
    thread::sync_threads();
}
