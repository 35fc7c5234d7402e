//! LogSoftmax of rows with any number of classes, up to some hundreds: a block copies its rows to shared memory.
//!
//! If the number of classes is no multiple of four, rows are not aligned to vectors, and a load instruction of single
//! elements moves a fourth of the bytes. But the rows of a block are one range of memory, aligned to 16 bytes. So the
//! block copies the whole range, 16 bytes a thread, by asynchronous copies that need no registers.
//!
//! Then one lane computes one row of f32, f16 or bf16; 8 lanes compute a row of f64. Rows of an odd number of words
//! have no bank conflicts. The results overwrite X in shared memory, and the block writes the range to Y in the same
//! way.
//!
//! An element is read and written once in global memory, and read three times in shared memory.
//!
//! When to use it: for all rows that `sub_warp` does not take and that fit in shared memory.

use crate::{Bias, ExpLn, SoftmaxElement};
use cuda_std::async_copy;
use cuda_std::prelude::*;
use cuda_std::warp::FULL_MASK;
use warprow_kernels_matrix::{Dense, DenseMut};

/// Threads in a block.
pub(crate) const BLOCK: u32 = 128;

/// Maximum number of bytes of shared memory in a block. A multiprocessor then holds seven blocks, and some of them
/// compute while others wait for memory.
const SHARED_BYTES: u32 = 32 << 10;

/// Bytes of a vector.
const VECTOR_BYTES: usize = 16;

/// Lanes that compute a row: one, or eight for f64, so that rows of up to 256 classes fit.
pub(crate) const fn lanes<T>() -> u32 {
    if size_of::<T>() == 8 { 8 } else { 1 }
}

/// Whether a block's rows of `classes` classes fit in its shared memory.
pub(crate) fn fits<T>(classes: u32) -> bool {
    shared_bytes::<T>(classes, lanes::<T>()) <= u64::from(SHARED_BYTES)
}

/// Bytes of the rows of a block, a multiple of 16.
pub(crate) fn shared_bytes<T>(classes: u32, lanes: u32) -> u64 {
    u64::from(BLOCK / lanes) * u64::from(classes) * size_of::<T>() as u64
}

/// `Y[row, :] = LogSoftmax(X[row, :] + bias)`; `LANES` lanes compute a row.
///
/// # Safety
///
/// `x` and `y` are m x n and packed, do not overlap, and are aligned to 16 bytes. n is at least 1. The bias, if there
/// is one, has n elements. The launch is that of [`SoftmaxKernel::launch`](crate::SoftmaxKernel::launch).
#[kernel(name = "log_softmax_staged", T = [f32, f16, bf16], LANES = [1]; T = [f64], LANES = [8])]
pub unsafe fn staged<T: SoftmaxElement, const LANES: u32>(
    x: Dense<T>,
    y: DenseMut<T>,
    bias: Bias<T>,
) {
    let (rows, classes) = (x.rows, x.cols);
    let each = VECTOR_BYTES / size_of::<T>();
    let thread = thread::thread_idx_x() as usize;
    let tile = shared::dynamic_shared_mem::<T>();
    let first_row = u64::from(thread::block_idx_x()) * u64::from(BLOCK / LANES);
    let rows_here = (u64::from(rows) - first_row).min(u64::from(BLOCK / LANES)) as usize;
    let (start, count) = (
        first_row as usize * classes as usize,
        rows_here * classes as usize,
    );
    let (x, y) = (x.data.offset(start), y.data.offset(start));
    let whole = count - count % each;
    // SAFETY: the block's rows are `count` elements from `start` on. Vectors end at `whole`, single elements at
    // `count`, and shared memory has the same range. Barriers separate the copy, the rows, and the stores.
    unsafe {
        let mut i = thread * each;
        while i < whole {
            async_copy::copy::<u32, 4>(tile.offset(i).cast(), x.offset(i).cast());
            i += BLOCK as usize * each;
        }
        async_copy::commit();
        if whole + thread < count {
            tile.store(whole + thread, x.load(whole + thread));
        }
        async_copy::wait::<0>();
        thread::sync_threads();
        let row = thread / LANES as usize;
        let row = SharedRow::<T, LANES> {
            elements: tile.offset(row * classes as usize),
            // Lanes past the last row compute a row without classes, because the shuffles need all lanes.
            classes: if row < rows_here { classes } else { 0 },
            bias,
        };
        row.log_softmax();
        thread::sync_threads();
        let mut i = thread * each;
        while i < whole {
            let vector = tile.offset(i).cast::<u32>().load4(0);
            y.offset(i).cast::<u32>().store4(0, vector);
            i += BLOCK as usize * each;
        }
        if whole + thread < count {
            y.store(whole + thread, tile.load(whole + thread));
        }
    }
}

/// A row in shared memory. Each of its lanes computes every `LANES`th element.
struct SharedRow<T, const LANES: u32> {
    elements: Shared<T>,
    classes: u32,
    bias: Bias<T>,
}

impl<T: SoftmaxElement, const LANES: u32> SharedRow<T, LANES> {
    /// Overwrites the row with its LogSoftmax.
    ///
    /// # Safety
    ///
    /// The row is written, and no lane of another row uses it. The bias, if there is one, has an element for each
    /// class. All lanes of the warp call it.
    #[inline(always)]
    unsafe fn log_softmax(&self) {
        let mut max = T::Sum::NEG_INFINITY;
        // SAFETY: `each` passes classes of the row, and no other lane has the same ones. All lanes reach the shuffles.
        unsafe {
            self.each(|element, _| {
                if element > max {
                    max = element;
                }
            });
            let mut distance = LANES / 2;
            while distance > 0 {
                let other = warp::shfl_xor(FULL_MASK, max, distance, LANES);
                if other > max {
                    max = other;
                }
                distance /= 2;
            }
            let mut sum = T::Sum::ZERO;
            self.each(|element, _| sum += (element - max).exp());
            let mut distance = LANES / 2;
            while distance > 0 {
                sum += warp::shfl_xor(FULL_MASK, sum, distance, LANES);
                distance /= 2;
            }
            let logarithm = sum.ln();
            self.each(|element, class| {
                let result = T::narrow(element - max - logarithm);
                self.elements.store(class as usize, result);
            });
        }
    }

    /// Calls `take` with each of the lane's elements after the bias is added, and with its class.
    ///
    /// # Safety
    ///
    /// As for [`log_softmax`](Self::log_softmax).
    #[inline(always)]
    unsafe fn each(&self, mut take: impl FnMut(T::Sum, u32)) {
        let mut class = thread::thread_idx_x() % LANES;
        while class < self.classes {
            // SAFETY: `class < self.classes`, so the row and the bias have it.
            let [element] = unsafe {
                let element = self.elements.load(class as usize);
                self.bias.added::<1>([element], class)
            };
            take(element, class);
            class += LANES;
        }
    }
}
