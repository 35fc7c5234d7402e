//! Threads and blocks: indices, dimensions, barriers, fences.

use crate::backend;

macro_rules! index {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub fn $name() -> u32 {
            backend::$name()
        }
    )*};
}

index! {
    /// The thread's index in its block along x.
    thread_idx_x
    /// The thread's index in its block along y.
    thread_idx_y
    /// The thread's index in its block along z.
    thread_idx_z
    /// The block's index in the grid along x.
    block_idx_x
    /// The block's index in the grid along y.
    block_idx_y
    /// The block's index in the grid along z.
    block_idx_z
    /// The block's extent along x, in threads.
    block_dim_x
    /// The block's extent along y, in threads.
    block_dim_y
    /// The block's extent along z, in threads.
    block_dim_z
    /// The grid's extent along x, in blocks.
    grid_dim_x
    /// The grid's extent along y, in blocks.
    grid_dim_y
    /// The grid's extent along z, in blocks.
    grid_dim_z
}

/// The thread's index along x in the whole grid: `block_idx_x * block_dim_x + thread_idx_x`.
///
/// It is exact up to 2^64 threads; most kernels compare it with a length.
#[inline(always)]
pub fn index_1d() -> u64 {
    u64::from(block_idx_x()) * u64::from(block_dim_x()) + u64::from(thread_idx_x())
}

/// Waits until all threads of the block are here, and makes their writes visible to each other (`bar.sync`).
///
/// All threads of the block must reach it, at the same place.
#[inline(always)]
#[track_caller]
pub fn sync_threads() {
    backend::sync_threads();
}

/// [`sync_threads`], and how many threads came with a true `predicate`.
#[inline(always)]
#[track_caller]
pub fn sync_threads_count(predicate: bool) -> u32 {
    backend::sync_threads_count(predicate)
}

/// [`sync_threads`], and whether all threads came with a true `predicate`.
#[inline(always)]
#[track_caller]
pub fn sync_threads_and(predicate: bool) -> bool {
    backend::sync_threads_and(predicate)
}

/// [`sync_threads`], and whether any thread came with a true `predicate`.
#[inline(always)]
#[track_caller]
pub fn sync_threads_or(predicate: bool) -> bool {
    backend::sync_threads_or(predicate)
}

/// Orders this thread's memory accesses before it with those after it, for the threads of the block (`fence.acq_rel.cta`).
#[inline(always)]
pub fn block_fence() {
    backend::block_fence();
}

/// [`block_fence`] for all threads of the device (`fence.acq_rel.gpu`).
#[inline(always)]
pub fn device_fence() {
    backend::device_fence();
}

/// [`block_fence`] for all devices and the host (`fence.acq_rel.sys`).
#[inline(always)]
pub fn system_fence() {
    backend::system_fence();
}

/// Asks the assembler not to unroll the loop in whose body it stands, for loops that run rarely: short kernels are compiled
/// faster when they are first used. The Rust compiler unrolls a loop only if it knows its step, which [`opaque`] hides.
#[inline(always)]
pub fn keep_rolled() {
    backend::keep_rolled();
}

/// The same number, of which the compiler knows no more: what is computed from it in a loop is computed there each time. Else the
/// compiler computes all before the loop that does not change in it, and keeps it in registers, though it be a hundred sums of
/// a lane's column and a constant.
#[inline(always)]
#[must_use]
pub fn opaque(number: u32) -> u32 {
    backend::opaque(number)
}
