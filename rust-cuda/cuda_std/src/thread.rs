//! Threads and blocks: indices, dimensions, barriers and memory fences.
//!
//! All threads of a block must reach the same call of a barrier. The emulator reports a barrier that a thread does not
//! reach, or that threads reach at different lines. A GPU does not check it: threads wait for ever, go on too early, or
//! get wrong counts. No barrier accesses wrong memory, so the functions are not `unsafe`. But a thread that goes on too
//! early reads what others have not written yet.

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
    /// The index of the thread in its block along x.
    thread_idx_x
    /// The index of the thread in its block along y.
    thread_idx_y
    /// The index of the thread in its block along z.
    thread_idx_z
    /// The index of the block in the grid along x.
    block_idx_x
    /// The index of the block in the grid along y.
    block_idx_y
    /// The index of the block in the grid along z.
    block_idx_z
    /// The number of threads of the block along x.
    block_dim_x
    /// The number of threads of the block along y.
    block_dim_y
    /// The number of threads of the block along z.
    block_dim_z
    /// The number of blocks of the grid along x.
    grid_dim_x
    /// The number of blocks of the grid along y.
    grid_dim_y
    /// The number of blocks of the grid along z.
    grid_dim_z
}

/// The index of the thread along x in the whole grid: `block_idx_x * block_dim_x + thread_idx_x`. It does not overflow.
#[inline(always)]
pub fn index_1d() -> u64 {
    u64::from(block_idx_x()) * u64::from(block_dim_x()) + u64::from(thread_idx_x())
}

/// Waits until all threads of the block have called it, and makes their writes visible to each other (`bar.sync`).
///
/// All threads of the block must reach the same call; see the [module](self).
#[inline(always)]
#[track_caller]
pub fn sync_threads() {
    backend::sync_threads();
}

/// Does [`sync_threads`], with the same rule, and returns the number of threads whose `predicate` is true.
#[inline(always)]
#[track_caller]
pub fn sync_threads_count(predicate: bool) -> u32 {
    backend::sync_threads_count(predicate)
}

/// Does [`sync_threads`], with the same rule, and returns whether `predicate` is true in all threads.
#[inline(always)]
#[track_caller]
pub fn sync_threads_and(predicate: bool) -> bool {
    backend::sync_threads_and(predicate)
}

/// Does [`sync_threads`], with the same rule, and returns whether `predicate` is true in any thread.
#[inline(always)]
#[track_caller]
pub fn sync_threads_or(predicate: bool) -> bool {
    backend::sync_threads_or(predicate)
}

/// A memory fence: the threads of the block see this thread's accesses before it before those after it
/// (`fence.acq_rel.cta`).
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

/// Tells `ptxas` not to unroll the loop that contains it. Rare loops then take less code, and the driver compiles the
/// kernel faster at its first use. [`opaque`] keeps the Rust compiler from unrolling: it hides the step of the loop.
#[inline(always)]
pub fn keep_rolled() {
    backend::keep_rolled();
}

/// Returns `number`, and hides from the compiler that it is the same. Values that depend on it are then computed inside
/// a loop in each iteration. Otherwise the compiler hoists them out of the loop, even a hundred, and keeps them in
/// registers.
#[inline(always)]
#[must_use]
pub fn opaque(number: u32) -> u32 {
    backend::opaque(number)
}
