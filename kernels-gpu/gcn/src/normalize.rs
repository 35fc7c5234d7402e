//! The normalised adjacency matrix of a graph: `D^-1/2 (A + I) D^-1/2`, D the row sums of `A + I`.
//!
//! After Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks" (ICLR 2017), section 2. A row of A
//! holds the nodes that its node hears, with the weights of the edges. As in PyTorch Geometric, a node that has a loop to
//! itself keeps that one and its weight, and gets no second one; parallel edges count as often as they are there. A node whose
//! row sums to nothing or less gets and gives nothing.

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block: a warp a row.
const BLOCK: u32 = 128;

/// Rows of a block.
const ROWS: u32 = BLOCK / WARP_SIZE;

/// The launch of either kernel for so many rows.
pub fn launch(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(ROWS), BLOCK)
}

/// For each row of A the number of nonzeros that it has in `A + I`, and `D^-1/2`; a warp for a row.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, `col_idx` and `values` as many as its last one; `lengths` and `scale` `rows`.
#[kernel(name = "gcn_degrees", T = [f32, f64])]
pub unsafe fn degrees<T: Real>(
    rows: u32,
    row_ptr: Global<u32>,
    col_idx: Global<u32>,
    values: Global<T>,
    lengths: GlobalMut<u32>,
    scale: GlobalMut<T>,
) {
    let row = row();
    if row >= u64::from(rows) {
        return;
    }
    let (row, lane) = (row as usize, warp::lane_id());
    // SAFETY: a row of A and its nonzeros.
    unsafe {
        let (start, end) = (row_ptr.load(row), row_ptr.load(row + 1));
        let (mut degree, mut looped) = (T::ZERO, false);
        let mut k = u64::from(start) + u64::from(lane);
        while k < u64::from(end) {
            degree += values.load(k as usize);
            looped |= col_idx.load(k as usize) as usize == row;
            k += u64::from(WARP_SIZE);
        }
        let mut distance = WARP_SIZE / 2;
        while distance > 0 {
            degree += warp::shfl_xor(FULL_MASK, degree, distance, WARP_SIZE);
            distance /= 2;
        }
        let looped = warp::any(FULL_MASK, looped);
        if lane == 0 {
            if !looped {
                degree += T::ONE;
            }
            lengths.store(row, end - start + u32::from(!looped));
            let scale_of_row = if degree > T::ZERO {
                T::ONE / degree.sqrt()
            } else {
                T::ZERO
            };
            scale.store(row, scale_of_row);
        }
    }
}

/// The matrix with a graph's nodes as rows and columns, as [`fill`] gets it.
#[repr(C)]
pub struct Graph<T> {
    /// Where each row starts: `rows + 1` numbers.
    pub row_ptr: Global<u32>,
    /// Columns.
    pub col_idx: Global<u32>,
    /// Weights.
    pub values: Global<T>,
}

impl<T> Clone for Graph<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Graph<T> {}

// SAFETY: `repr(C)`, of device pointers.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl<T: Element> KernelParam for Graph<T> {}

/// The rows of `D^-1/2 (A + I) D^-1/2`: those of A, scaled, with the loop in its place where there was none; a warp
/// for a row.
///
/// # Safety
///
/// `a` is what [`degrees`] was given, columns ascending in each row, `scale` what it gave, `row_ptr` the sums of the lengths before each row; `col_idx` and
/// `values` have room for all.
#[kernel(name = "gcn_fill", T = [f32, f64])]
pub unsafe fn fill<T: Real>(
    rows: u32,
    a: Graph<T>,
    scale: Global<T>,
    row_ptr: Global<u32>,
    col_idx: GlobalMut<u32>,
    values: GlobalMut<T>,
) {
    let row = row();
    if row >= u64::from(rows) {
        return;
    }
    let (row, lane) = (row as usize, warp::lane_id());
    // SAFETY: a row of A, and its place in the new matrix.
    unsafe {
        let (start, to) = (a.row_ptr.load(row), row_ptr.load(row));
        let length = a.row_ptr.load(row + 1) - start;
        let own = scale.load(row);
        let looped = row_ptr.load(row + 1) - to == length;
        let mut k = u64::from(lane);
        while k < u64::from(length) {
            let from = start as usize + k as usize;
            let column = a.col_idx.load(from);
            // What comes after the new loop moves on by one.
            let moved = usize::from(!looped && column > row as u32);
            let to = to as usize + k as usize + moved;
            col_idx.store(to, column);
            values.store(to, own * a.values.load(from) * scale.load(column as usize));
            k += u64::from(WARP_SIZE);
        }
        if lane == 0 && !looped {
            let (mut low, mut high) = (0, length);
            while low < high {
                let middle = low + (high - low) / 2;
                if a.col_idx.load((start + middle) as usize) < row as u32 {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            let place = to as usize + low as usize;
            col_idx.store(place, row as u32);
            values.store(place, own * own);
        }
    }
}

/// The warp's row.
#[inline(always)]
fn row() -> u64 {
    let warp = thread::thread_idx_x() / WARP_SIZE;
    u64::from(thread::block_idx_x()) * u64::from(ROWS) + u64::from(warp)
}
