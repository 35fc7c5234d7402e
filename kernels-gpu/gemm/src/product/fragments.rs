//! XW on tensor cores: each lane loads its fragments of X from global memory directly into registers.
//!
//! A block copies W to shared memory, column by column, and then computes tiles of 128 rows in turn; a warp computes 16
//! rows and 16 columns at once. f16 and bf16 are summed in f32.
//!
//! `mma.sync` expects single, scattered elements of a row in each lane. But a sum over k stays the same if X and W
//! number k in another order, the same for both. So a lane loads 16 neighbouring bytes (a *strip*) of its rows, and
//! passes them on as if they were the elements that the instruction expects:
//!
//! ```text
//! 64 bytes of row g of X   | lane 4g | lane 4g+1 | lane 4g+2 | lane 4g+3 |      g = lane / 4
//!                            strip 0     strip 1     strip 2     strip 3
//! ```
//!
//! X needs neither shared memory nor shuffles, and one instruction reads each sector. An element of X is read once for
//! each tile of columns.
//!
//! When to use it: for rows of an odd number of more than 64 elements that `warpgroup_fragments` does not take, since the
//! GPU has another compute capability than 9.0 or a row more than 1024 elements. Also for up to 16 columns of W and long
//! rows whose length is no multiple of 8 bytes. With many columns it uses little of the bandwidth.

mod strips;
mod weights;

use self::strips::{alignment, strip};
use self::weights::WeightSlice;
use crate::element::halves;
use crate::{BiasRelu, GemmKernel, Rung, Strides, TensorCoreElement};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, MAX_GRID_Y, Multiplies, PlannedLaunch};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// Threads in a block.
const BLOCK: u32 = 256;

/// Rows of a warp's tile.
const ROWS: u32 = 16;

/// Rows of a block's tile.
const BLOCK_ROWS: u32 = BLOCK / WARP_SIZE * ROWS;

/// Fragments of 8 columns in a tile.
const COLUMN_FRAGMENTS: usize = 2;

/// Columns of a tile.
const COLS: u32 = 8 * COLUMN_FRAGMENTS as u32;

/// Bytes of a row of X that a warp multiplies in one step, 16 for each lane.
const STEP_BYTES: u32 = 64;

/// Steps whose loads of X are in flight at the same time.
const AHEAD: u32 = 4;

/// Maximum number of bytes of shared memory for W. A larger W is multiplied slice by slice.
const SLICE_BYTES: u32 = 64 << 10;

/// Maximum number of blocks for each multiprocessor.
#[cfg(not(target_arch = "nvptx64"))]
const BLOCKS_PER_MULTIPROCESSOR: u32 = 2;

/// The number of steps in a slice of W, and the bytes from one column to the next in shared memory.
///
/// `row_bytes` is the length of a row of X.
#[inline(always)]
fn slice(row_bytes: u64) -> (u32, u32) {
    let most = SLICE_BYTES / (COLS * STEP_BYTES) - 1;
    // The cast is exact: the number is at most `most`.
    let steps = row_bytes.div_ceil(STEP_BYTES.into()).clamp(1, most.into()) as u32;
    // An odd number of steps: two columns then lie in different halves of the banks.
    (steps, (steps | 1) * STEP_BYTES)
}

/// The kernel in the table.
pub struct Fragments;

impl Rung for Fragments {
    const SUMMARY: &'static str = "tensor cores, X from global memory to registers";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::Staged);
    const STRIDES: Strides = Strides::Any;
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: TensorCoreElement> Multiplies<T> for Fragments {
    /// The grid has tiles of columns along x and tiles of 128 rows along y. Blocks that are neighbours along x run at
    /// about the same time and read the same rows of X. A block computes several tiles of rows in turn.
    fn plan(problem: GemmProblem) -> PlannedLaunch<T> {
        let (_, stride) = slice(u64::from(problem.depth) * size_of::<T>() as u64);
        let across = problem.cols.div_ceil(COLS);
        let most = (problem.multiprocessors.max(1)).saturating_mul(BLOCKS_PER_MULTIPROCESSOR);
        let blocks = problem.rows.div_ceil(BLOCK_ROWS);
        // All blocks have equally many tiles, or one less.
        let each = blocks.div_ceil(most.min(blocks).min(MAX_GRID_Y));
        let config = LaunchConfig::new((across, blocks.div_ceil(each)), BLOCK);
        PlannedLaunch {
            config: config.shared_bytes(COLS * stride),
            kernel: fragments::<T>(),
        }
    }
}

/// `Y[row, j] = sum over k of X[row, k] * W[k, j]`; a warp computes 16 rows and 16 columns.
///
/// In a step, a lane loads 16 bytes of each of two rows of X, and 16 bytes of W from shared memory for each fragment of
/// 8 columns.
///
/// # Safety
///
/// `x` is m x k, `w` k x n, `y` m x n; they do not overlap and are aligned to 16 bytes. The launch is the plan of
/// [`Fragments`].
#[kernel(name = "gemm_fragments", T = [f16, bf16])]
pub unsafe fn fragments<T: TensorCoreElement>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: BiasRelu<T>,
) {
    let row_bytes = u64::from(x.cols) * size_of::<T>() as u64;
    let (steps, stride) = slice(row_bytes);
    // The cast is exact: there are no more steps than elements in a row, and those are a u32.
    let all_steps = row_bytes.div_ceil(STEP_BYTES.into()) as u32;
    let block_tiles = x.rows.div_ceil(BLOCK_ROWS);
    let mut column = thread::block_idx_x() * COLS;
    while column < w.cols {
        let weights = WeightSlice {
            w: &w,
            memory: shared::dynamic_shared_mem::<u32>(),
            stride,
            steps,
            column,
        };
        // SAFETY: all threads of a block reach the barriers, because the loops depend on the block alone. Barriers
        // separate each load of a slice from earlier and later uses of the slice. `column < w.cols`, and `tile` is
        // below `block_tiles`, so the tile has a row of X.
        unsafe {
            let one_slice = all_steps <= steps;
            if one_slice {
                weights.load(0);
                thread::sync_threads();
            }
            let mut tile = thread::block_idx_y();
            while tile < block_tiles {
                let warp = thread::thread_idx_x() / WARP_SIZE;
                let rows = WarpRows::new(&x, tile * (BLOCK / WARP_SIZE) + warp);
                let mut sums = [[T::Sum::ZERO; 4]; COLUMN_FRAGMENTS];
                let mut first = 0;
                while first < all_steps {
                    if !one_slice {
                        weights.load(first);
                        thread::sync_threads();
                    }
                    let count = (all_steps - first).min(steps);
                    rows.add_slice(first, count, &weights, &mut sums);
                    if !one_slice {
                        thread::sync_threads();
                    }
                    first += steps;
                }
                rows.store(&y, &epilogue, column, sums);
                tile += thread::grid_dim_y();
            }
            // The next load overwrites the slice.
            thread::sync_threads();
        }
        column += thread::grid_dim_x() * COLS;
    }
}

/// The 16 rows of X that a warp multiplies.
struct WarpRows<T> {
    /// The lane's rows of X, g and g + 8. A row past the last one is replaced by the last one.
    low: Global<u32>,
    high: Global<u32>,
    /// Bytes of a row, and the alignment of every row, up to 16 bytes.
    row_bytes: u64,
    alignment: u32,
    /// The first of the 16 rows.
    first: u64,
    element: core::marker::PhantomData<T>,
}

impl<T: TensorCoreElement> WarpRows<T> {
    #[inline(always)]
    fn new(x: &Dense<T>, tile: u32) -> Self {
        let first = u64::from(tile) * u64::from(ROWS);
        let row_bytes = u64::from(x.cols) * size_of::<T>() as u64;
        let stride = u64::from(x.stride) * size_of::<T>() as u64;
        let row = |row: u64| {
            let row = row.min(u64::from(x.rows) - 1);
            x.data.cast::<u32>().offset_bytes(row * stride)
        };
        let group = u64::from(warp::lane_id() / 4);
        Self {
            low: row(first + group),
            high: row(first + group + 8),
            row_bytes,
            alignment: alignment(row_bytes | stride),
            first,
            element: core::marker::PhantomData,
        }
    }

    /// Adds to `sums` the products of `count` steps, from step `first` on, with the slice of W that starts there.
    ///
    /// # Safety
    ///
    /// The slice is written, and has `count` steps. All lanes of the warp call it.
    #[inline(always)]
    unsafe fn add_slice(
        &self,
        first: u32,
        count: u32,
        weights: &WeightSlice<'_, T>,
        sums: &mut [[T::Sum; 4]; COLUMN_FRAGMENTS],
    ) {
        let mut step = 0;
        while step < count {
            // SAFETY: `load_steps` takes any step, because strips past the row's end are zeros. `step < count` is
            // checked before W is read, and the slice has `count` steps by the contract.
            unsafe {
                let strips = self.load_steps(first + step);
                unroll!(i in 0..4 {
                    let step = step + i as u32;
                    if step < count {
                        let (low, high) = (T::prepare(strips[i][0]), T::prepare(strips[i][1]));
                        unroll!(n in 0..2 {
                            let weights = weights.strip(n as u32, step);
                            unroll!(half in 0..2 {
                                let (low, high) = (halves(low)[half], halves(high)[half]);
                                let weights = halves(weights)[half];
                                sums[n] = T::multiply(low, high, weights, sums[n]);
                            });
                        });
                    }
                });
            }
            step += AHEAD;
        }
    }

    /// The lane's strips of [`AHEAD`] steps, from step `step` on; zeros past the rows' end.
    ///
    /// Only the loads are compiled once for each alignment. That makes the kernels half as long as with the
    /// multiplications compiled for each alignment too.
    ///
    /// # Safety
    ///
    /// `low` and `high` are rows of X, of `row_bytes` bytes.
    #[inline(always)]
    unsafe fn load_steps(&self, step: u32) -> [[[u32; 4]; 2]; 4] {
        // SAFETY: X is aligned to 16 bytes, so every row is aligned to the power of two, up to 16, that divides the
        // stride; `alignment` divides the rows' length too. An element has 2 bytes at least.
        unsafe {
            match self.alignment {
                16 => self.load_steps_by::<16>(step),
                8 => self.load_steps_by::<8>(step),
                4 => self.load_steps_by::<4>(step),
                _ => self.load_steps_by::<2>(step),
            }
        }
    }

    /// Does the work of [`load_steps`](Self::load_steps) with loads of `BYTES` bytes.
    ///
    /// # Safety
    ///
    /// As for `load_steps`, and the rows are aligned to `BYTES`.
    #[inline(always)]
    unsafe fn load_steps_by<const BYTES: usize>(&self, step: u32) -> [[[u32; 4]; 2]; 4] {
        let mut strips = [[[0; 4]; 2]; 4];
        unroll!(i in 0..4 {
            // SAFETY: by the contract, the rows are rows of X and aligned to `BYTES`.
            strips[i] = unsafe { self.strips::<BYTES>(step + i as u32) };
        });
        strips
    }

    /// The lane's strips of both rows in that step; zeros past the rows' end.
    ///
    /// # Safety
    ///
    /// `low` and `high` are rows of X, of `row_bytes` bytes and aligned to `BYTES`.
    #[inline(always)]
    unsafe fn strips<const BYTES: usize>(&self, step: u32) -> [[u32; 4]; 2] {
        let offset = u64::from(step) * u64::from(STEP_BYTES) + u64::from(warp::lane_id() % 4) * 16;
        // SAFETY: `strip` reads nothing from byte `row_bytes` of the row on, and the rows are aligned by the contract.
        unsafe {
            [
                strip::<BYTES>(self.low.offset_bytes(offset), offset, self.row_bytes),
                strip::<BYTES>(self.high.offset_bytes(offset), offset, self.row_bytes),
            ]
        }
    }

    /// Applies the epilogue to the sums and writes them to Y; surplus rows and columns are skipped.
    ///
    /// # Safety
    ///
    /// Y has as many rows as X, the bias has one element for each column of Y, and no other warp writes these rows and
    /// columns.
    #[inline(always)]
    unsafe fn store(
        &self,
        y: &DenseMut<T>,
        epilogue: &BiasRelu<T>,
        column: u32,
        sums: [[T::Sum; 4]; COLUMN_FRAGMENTS],
    ) {
        let lane = warp::lane_id();
        let cols = y.cols as usize;
        unroll!(half in 0..2 {
            let row = self.first + u64::from(lane / 4) + 8 * half as u64;
            if row < u64::from(y.rows) {
                let row_start = row as usize * y.stride as usize;
                unroll!(n in 0..2 {
                    let column = column as usize + 8 * n + 2 * (lane % 4) as usize;
                    if column < cols {
                        let pair = [sums[n][2 * half], sums[n][2 * half + 1]];
                        // SAFETY: `row < y.rows` and `column < cols`, checked above; no other lane has this row and
                        // these two columns.
                        unsafe { store_pair(y, epilogue, row_start, column, pair) };
                    }
                });
            }
        });
    }
}

/// Applies the epilogue to the sums of `column` and `column + 1`, and writes them to the row of Y that starts at
/// element `row_start`. It uses one access if rows have an even number of elements and start at even elements, and
/// skips a column past the last.
///
/// # Safety
///
/// `row_start` is the start of a row of Y, `column` is a column of Y, and no other lane writes these two columns.
#[inline(always)]
unsafe fn store_pair<T: TensorCoreElement>(
    y: &DenseMut<T>,
    epilogue: &BiasRelu<T>,
    row_start: usize,
    column: usize,
    sums: [T::Sum; 2],
) {
    let cols = y.cols as usize;
    // SAFETY: `column < cols` by the contract. `column` is even, so `column + 1 < cols` if `cols` is even; the pair is
    // aligned if rows start at even elements; else `column + 1 < cols` is checked.
    unsafe {
        let first = epilogue.apply(sums[0], column);
        if (cols | y.stride as usize).is_multiple_of(2) {
            let second = epilogue.apply(sums[1], column + 1);
            y.data.store2(row_start + column, [first, second]);
            return;
        }
        y.data.store(row_start + column, first);
        if column + 1 < cols {
            y.data
                .store(row_start + column + 1, epilogue.apply(sums[1], column + 1));
        }
    }
}
