//! Slices: each row is split into runs of at most `task_size` nonzeros, so that no warp has more work than that.
//!
//! ```text
//! task_size 4:    row_ptr = [0, 3, 3, 13]
//!
//! row             0       1     2
//! nonzeros        0 1 2   -     3 4 5 6 | 7 8 9 10 | 11 12
//! slice           0       1     2         3          4
//! ```
//!
//! An empty row has one slice, which writes its zeros. A row of one slice is written by its warp. A row of several
//! slices is a *split row*: [`sliced`](crate::ladder::sliced) adds its slices by atomic additions, and
//! [`sliced_two_pass`](crate::ladder::sliced_two_pass) adds their partial sums in a second kernel.

use crate::{Items, MAX_GRID_Y};
use cuda_std::atomic::Scope;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};

/// Threads in a block of the kernels that make slices.
const BLOCK: u32 = 256;

/// Slices of a block that multiplies, one for each warp.
const SLICES: u32 = 4;

/// Features that a warp computes, one for each lane.
const TILE: u32 = WARP_SIZE;

/// The launch of [`counts`] and [`find_split_rows`] for `count` rows, and of [`starts`] for `count` slices: a thread
/// for each, and one more for the end of the array.
pub fn launch(count: u32) -> LaunchConfig {
    LaunchConfig::new(count / BLOCK + 1, BLOCK)
}

/// A warp for each slice and tile of features; slices along x, tiles along y.
pub(crate) fn launch_product(slices: u32, features: u32) -> LaunchConfig {
    let tiles = features.div_ceil(TILE).min(MAX_GRID_Y);
    LaunchConfig::new((slices.div_ceil(SLICES), tiles), SLICES * WARP_SIZE)
}

/// `count[r]` is the number of slices of row r; a thread computes one. `count[rows]` is 0, where a scan puts the sum.
///
/// # Safety
///
/// `row_ptr` has `rows + 1` numbers, and `count` room for as many.
#[kernel(name = "spmm_slice_counts")]
pub unsafe fn counts(rows: u32, row_ptr: Global<u32>, slice_size: u32, count: GlobalMut<u32>) {
    let r = thread::index_1d();
    if r > u64::from(rows) {
        return;
    }
    let r = r as usize;
    // SAFETY: `r <= rows`, checked above, and both arrays have `rows + 1` elements; `r + 1` is read where `r < rows`.
    unsafe {
        let mut slices = 0;
        if r < rows as usize {
            let nonzeros = row_ptr.load(r + 1) - row_ptr.load(r);
            slices = nonzeros.div_ceil(slice_size.max(1)).max(1);
        }
        count.store(r, slices);
    }
}

/// `start[s]` is the first nonzero of slice s; a thread computes one.
///
/// # Safety
///
/// `row` has the row of each of `slices` slices, `first_slice` the first one of each row; `start` has room for
/// `slices`.
#[kernel(name = "spmm_slice_starts")]
pub unsafe fn starts(
    slices: u32,
    slice_size: u32,
    row_ptr: Global<u32>,
    first_slice: Global<u32>,
    row: Global<u32>,
    start: GlobalMut<u32>,
) {
    let s = thread::index_1d();
    if s < u64::from(slices) {
        // SAFETY: `s < slices`, checked above; `row` names an existing row for each slice.
        unsafe {
            let r = row.load(s as usize) as usize;
            let slice_of_row = s as u32 - first_slice.load(r);
            start.store(s as usize, row_ptr.load(r) + slice_of_row * slice_size);
        }
    }
}

/// Lists the split rows in `split_rows` and counts them in `counts[0]`; a thread checks one row. Their order changes
/// from run to run, and nothing depends on it.
///
/// # Safety
///
/// `first_slice` has `rows + 1` numbers, `split_rows` room for all rows, `counts` holds a zero.
#[kernel(name = "spmm_find_cut_rows")]
pub unsafe fn find_split_rows(
    rows: u32,
    first_slice: Global<u32>,
    counts: GlobalMut<u32>,
    split_rows: GlobalMut<u32>,
) {
    let r = thread::index_1d();
    if r < u64::from(rows) {
        // SAFETY: `r < rows`, checked above. The atomic addition gives each place in `split_rows` to one thread only.
        unsafe {
            if first_slice.load(r as usize + 1) - first_slice.load(r as usize) > 1 {
                let place = counts.atomic_add(Scope::Device, 0, 1);
                split_rows.store(place as usize, r as u32);
            }
        }
    }
}

/// The result of a lane for a slice: its sum for one feature.
pub(crate) struct Slice<T> {
    /// The number of the slice.
    pub number: usize,
    /// The row of Y.
    pub row: usize,
    /// Whether the slice is the whole row.
    pub whole: bool,
    /// The lane's feature, below the number of features.
    pub feature: usize,
    /// The lane's sum.
    pub sum: T,
}

/// Multiplies the warp's slice with X, tile by tile of 32 features, and calls `write` with the sum of each feature.
///
/// # Safety
///
/// The pointers of A and X hold as many elements as their shapes say; no column of A is `a.cols` or more. X is
/// `a.cols` x n, n is at least 1, and `items` are slices of A.
#[inline(always)]
pub(crate) unsafe fn multiply<T: Real>(
    a: &Csr<T>,
    x: &Dense<T>,
    items: &Items<T>,
    mut write: impl FnMut(Slice<T>),
) {
    let slice = thread::block_idx_x() * SLICES + thread::thread_idx_x() / WARP_SIZE;
    if slice >= items.count {
        return;
    }
    let number = slice as usize;
    let features = x.cols as usize;
    // SAFETY: `slice < items.count`, checked above, so it has a row and a start, and all lanes of the warp are here. A
    // column of A is below `a.cols`, the number of rows of X. A feature past the last is replaced by the last.
    unsafe {
        let (row, start) = (items.row.load(number) as usize, items.start.load(number));
        let (row_start, row_end) = (a.row_ptr.load(row), a.row_ptr.load(row + 1));
        let end = start + (row_end - start).min(items.task_size);
        let row = items.row_of_y(row);
        let mut tile = thread::block_idx_y();
        while tile < x.cols.div_ceil(TILE) {
            let feature = (tile * TILE + warp::lane_id()) as usize;
            let column = x.data.offset(feature.min(features - 1));
            let sum =
                crate::ladder::warp_per_row::row_times_column(a, start, end, column, features);
            if feature < features {
                write(Slice {
                    number,
                    row,
                    whole: start == row_start && end == row_end,
                    feature,
                    sum,
                });
            }
            tile += thread::grid_dim_y();
        }
    }
}

/// The rows that have several slices.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SplitRowSlices {
    /// The number of each split row.
    pub rows: Global<u32>,
    /// The first slice of each row of the matrix; after the last row, the number of slices.
    pub first_slice: Global<u32>,
}

// SAFETY: `repr(C)` with two 8-byte device pointers has no padding, and the device reads the same bytes.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl KernelParam for SplitRowSlices {}

/// The launch of [`clear`] and [`combine`]: a block for each split row and tile of 32 features.
pub fn launch_split_rows(split_rows: u32, features: u32) -> LaunchConfig {
    let tiles = features.div_ceil(TILE).min(MAX_GRID_Y);
    LaunchConfig::new((split_rows, tiles), BLOCK)
}

/// `Y[row, j] = 0` for each split row; a block for each row and 256 features.
///
/// # Safety
///
/// `split_rows` has a row of `y` for each block of the grid along x.
#[kernel(name = "spmm_clear_cut_rows", T = [f32])]
pub unsafe fn clear<T: Real>(items: Items<T>, split_rows: SplitRowSlices, y: DenseMut<T>) {
    let features = y.cols as usize;
    // SAFETY: there is a split row for each block along x, and `row_of_y` maps it to a row of Y; `feature < features`.
    unsafe {
        let row = items.row_of_y(split_rows.rows.load(thread::block_idx_x() as usize) as usize);
        let mut feature = (thread::block_idx_y() * BLOCK + thread::thread_idx_x()) as usize;
        while feature < features {
            y.data.store(row * features + feature, T::ZERO);
            feature += thread::grid_dim_y() as usize * BLOCK as usize;
        }
    }
}

/// `Y[row, j]` is the sum of the partial sums of a split row, added in a fixed order. A block has a row and 32
/// features; each of its eight warps adds every eighth slice.
///
/// # Safety
///
/// `split_rows` has a row of `y` for each block of the grid along x; `items` are slices with the partial sums of this
/// product.
#[kernel(name = "spmm_combine_slices", T = [f32])]
pub unsafe fn combine<T: Real>(items: Items<T>, split_rows: SplitRowSlices, y: DenseMut<T>) {
    const WARPS: u32 = BLOCK / WARP_SIZE;
    let sums = shared_array!(T; 256);
    let (lane, warp) = (warp::lane_id(), thread::thread_idx_x() / WARP_SIZE);
    let features = y.cols as usize;
    // SAFETY: there is a split row for each block along x, its slices lie between two entries of `first_slice`, and
    // each has a row of partial sums. A feature past the last is replaced by the last. All threads of the block reach
    // the barriers, because the loop around them depends on the block alone.
    unsafe {
        let row = split_rows.rows.load(thread::block_idx_x() as usize) as usize;
        let first = split_rows.first_slice.load(row);
        let slices = split_rows.first_slice.load(row + 1) - first;
        let mut tile = thread::block_idx_y();
        while tile < y.cols.div_ceil(TILE) {
            let feature = (tile * TILE + lane) as usize;
            let partial = items.partial.offset(feature.min(features - 1));
            let part = |slice: u32| partial.load((first + slice) as usize * features);
            let mut sum = T::ZERO;
            let mut slice = warp;
            while u64::from(slice) + 3 * u64::from(WARPS) < u64::from(slices) {
                let parts: [T; 4] = core::array::from_fn(|k| part(slice + k as u32 * WARPS));
                sum += (parts[0] + parts[1]) + (parts[2] + parts[3]);
                slice += 4 * WARPS;
            }
            while slice < slices {
                sum += part(slice);
                slice += WARPS;
            }
            sums.store((warp * WARP_SIZE + lane) as usize, sum);
            thread::sync_threads();
            if warp == 0 {
                for other in 1..WARPS {
                    sum += sums.load((other * WARP_SIZE + lane) as usize);
                }
                if feature < features {
                    y.data.store(items.row_of_y(row) * features + feature, sum);
                }
            }
            thread::sync_threads();
            tile += thread::grid_dim_y();
        }
    }
}
