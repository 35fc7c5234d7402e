//! The normalised adjacency matrix of a graph: `D^-1/2 (A + I) D^-1/2`, where D has the row sums of
//! `A + I` on its diagonal.
//!
//! From Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks" (ICLR
//! 2017), section 2. Row i of A holds the in-neighbours of node i with the weights of the edges. As
//! in PyTorch Geometric:
//!
//! - A node with a self-loop keeps it and its weight, and gets no second one.
//! - Parallel edges count as often as they appear.
//! - A node whose row sum is zero or negative gets scale 0, so its edges vanish.
//!
//! ```text
//! A   . 2 .      A + I   1 2 .     D  3        a warp per row: `degrees` counts and sums,
//!     . 1 1              . 1 1        2        a scan gives the row pointers,
//!     . . .              . . 1        1        `fill` writes the scaled rows
//! ```

use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block; a warp takes a row.
const BLOCK: u32 = 128;

/// Rows per block.
const ROWS_PER_BLOCK: u32 = BLOCK / WARP_SIZE;

/// The launch of either kernel for `rows` rows.
pub fn launch(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(ROWS_PER_BLOCK), BLOCK)
}

/// For each row of A: the number of its nonzeros in `A + I`, and its element of `D^-1/2`. A warp
/// takes a row; a nonzero costs its column and value.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` ascending numbers; `col_idx` and `values` have as many elements as the
/// last one says. `lengths` and `scale` have room for `rows` elements.
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
    // SAFETY: `row` is below `rows`, checked above, and `k` is below the row's end. All lanes of a
    // warp have the same row, so all reach the shuffles.
    unsafe {
        let (start, end) = (row_ptr.load(row), row_ptr.load(row + 1));
        let (mut degree, mut has_loop) = (T::ZERO, false);
        let mut k = u64::from(start) + u64::from(lane);
        while k < u64::from(end) {
            degree += values.load(k as usize);
            has_loop |= col_idx.load(k as usize) as usize == row;
            k += u64::from(WARP_SIZE);
        }
        let mut distance = WARP_SIZE / 2;
        while distance > 0 {
            degree += warp::shfl_xor(FULL_MASK, degree, distance, WARP_SIZE);
            distance /= 2;
        }
        let has_loop = warp::any(FULL_MASK, has_loop);
        if lane == 0 {
            if !has_loop {
                degree += T::ONE;
            }
            lengths.store(row, end - start + u32::from(!has_loop));
            let scale_of_row = if degree > T::ZERO {
                T::ONE / degree.sqrt()
            } else {
                T::ZERO
            };
            scale.store(row, scale_of_row);
        }
    }
}

/// The adjacency matrix of a graph, as [`fill`] gets it.
#[repr(C)]
#[derive(KernelParam)]
pub struct AdjacencyMatrix<T> {
    /// Row r has the nonzeros `row_ptr[r]..row_ptr[r + 1]`.
    pub row_ptr: Global<u32>,
    /// The column of each nonzero, ascending within a row.
    pub col_idx: Global<u32>,
    /// The weight of each edge.
    pub values: Global<T>,
}

impl<T> Clone for AdjacencyMatrix<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for AdjacencyMatrix<T> {}

/// The rows of `D^-1/2 (A + I) D^-1/2`: those of A, scaled, with the self-loop inserted where there
/// was none. A warp takes a row. A nonzero costs its column and value, read and written, and the
/// scale of its column.
///
/// # Safety
///
/// `a` is the matrix that [`degrees`] got, with ascending columns in each row, all below `rows`.
/// `scale` is what it wrote, `row_ptr` the exclusive scan of its lengths. `col_idx` and `values`
/// have room for all nonzeros.
#[kernel(name = "gcn_fill", T = [f32, f64])]
pub unsafe fn fill<T: Real>(
    rows: u32,
    a: AdjacencyMatrix<T>,
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
    // SAFETY: `row` is below `rows`, checked above. `k` is below the row's length, and the new row
    // has one element more if there was no loop.
    unsafe {
        let (start, to) = (a.row_ptr.load(row), row_ptr.load(row));
        let length = a.row_ptr.load(row + 1) - start;
        let own = scale.load(row);
        let has_loop = row_ptr.load(row + 1) - to == length;
        let mut k = u64::from(lane);
        while k < u64::from(length) {
            let from = start as usize + k as usize;
            let column = a.col_idx.load(from);
            // Columns after the inserted loop move by one.
            let moved = usize::from(!has_loop && column > row as u32);
            let to = to as usize + k as usize + moved;
            col_idx.store(to, column);
            values.store(to, own * a.values.load(from) * scale.load(column as usize));
            k += u64::from(WARP_SIZE);
        }
        if lane == 0 && !has_loop {
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

/// The calling warp's row.
#[inline(always)]
fn row() -> u64 {
    let warp = thread::thread_idx_x() / WARP_SIZE;
    u64::from(thread::block_idx_x()) * u64::from(ROWS_PER_BLOCK) + u64::from(warp)
}
