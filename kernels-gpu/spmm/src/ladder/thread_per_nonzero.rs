//! One thread multiplies one nonzero and adds the products to Y by atomic additions.
//!
//! A block has 128 threads and 128 nonzeros. A thread loops over the n features of its nonzero. The run fills Y with
//! zeros first.
//!
//! A nonzero costs its row, its column (4 bytes each) and its value once. For every feature it costs an element of X
//! and an atomic addition to an element of Y.
//!
//! New against `thread_per_row`: the unit of work is the nonzero, and all units have the same size. A row of a million
//! nonzeros is the work of a million threads, so no lane waits for a longer row. That pays most where a few rows are
//! long.
//!
//! Where it loses:
//!
//! - The sum of a row leaves the register. Atomic additions to the same element run one after the other.
//! - The lanes of a warp still read 32 different rows of X.
//! - The order of the additions, and with it the rounding, changes from run to run.
//!
//! Source: the first step of a course report on SpMM, which names the atomic additions as the main obstacle.

use crate::{ItemKind, Items, LaunchShape};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str = "one thread a nonzero, feature after feature, added to Y by atomics";

/// The rung that it continues.
pub const PARENT: Option<crate::SpmmKernel> = Some(crate::SpmmKernel::ThreadPerRow);

/// Its units of work: nonzeros.
pub const ITEMS: ItemKind = ItemKind::Nonzeros;

/// Threads in a block.
const BLOCK: u32 = 128;

/// One thread for each nonzero.
pub fn launch<T: Real>(shape: LaunchShape) -> LaunchConfig {
    LaunchConfig::new(shape.items.div_ceil(BLOCK), BLOCK)
}

/// The handle of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Real>(_: LaunchShape) -> Kernel<crate::PlainArguments<T>> {
    thread_per_nonzero::<T>()
}

/// `Y[row, j] += A[row, col] * X[col, j]`, one thread for each nonzero.
///
/// A nonzero costs its row and its column (4 bytes each) and its value once. For every feature it costs an element of X
/// and an atomic addition to an element of Y.
///
/// # Safety
///
/// The pointers of A, X and Y hold as many elements as their shapes say; no column of A is `a.cols` or more. X is
/// `a.cols` x n, Y is `a.rows` x n, and Y overlaps no input. `items` holds the row of each nonzero of A.
#[kernel(name = "spmm_thread_per_nonzero", T = [f32])]
pub unsafe fn thread_per_nonzero<T: Real>(a: Csr<T>, x: Dense<T>, y: DenseMut<T>, items: Items<T>) {
    // SAFETY: the caller keeps the kernel's contract, and `items` is in the order of A.
    unsafe { add_nonzero(&a, &x, &y, &items) }
}

/// Multiplies the thread's nonzero with its row of X and adds to its row of Y. The nonzeros may have any order.
///
/// # Safety
///
/// That of the kernel, with `items` in the order of A's columns and values.
#[inline(always)]
pub(crate) unsafe fn add_nonzero<T: Real>(
    a: &Csr<T>,
    x: &Dense<T>,
    y: &DenseMut<T>,
    items: &Items<T>,
) {
    let k = thread::index_1d() as usize;
    if k >= items.count as usize {
        return;
    }
    let features = x.cols as usize;
    // SAFETY: `k < items.count`, checked above, so nonzero `k` exists. Its row is below `a.rows` and its column below
    // `a.cols`. Threads that share an element of Y add to it atomically.
    unsafe {
        let value = a.values.load(k);
        let from = x.data.offset(a.col_idx.load(k) as usize * features);
        let to = y.data.offset(items.row.load(k) as usize * features);
        for feature in 0..features {
            to.reduce_add(Scope::Device, feature, value * from.load(feature));
        }
    }
}
