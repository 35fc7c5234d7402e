//! Tensor cores: fragments of X straight from global memory to registers.
//!
//! `mma.sync` multiplies a 16-row fragment of X with an 8-column one of W, and wants of each lane a few elements of two
//! rows. Which elements is a matter of names: a sum over k does not change if X and W number their k in another order, the same
//! for both. So each lane takes 16 neighbouring bytes of its rows, the four lanes of a row 64 bytes, and they are used as
//! if they were the elements that the instruction asks for. X goes through no shared memory and no shuffles, and
//! each sector is read by one instruction. W lies in shared memory by columns, where a lane reads its 16 bytes as well.
//!
//! f16 and bf16 are added up in f32. A block takes many tiles of 128 rows, one after the other, as it has to copy W first.
//!
//! With many columns it is far from the memory's bandwidth. But it is the fastest kernel for rows of an odd number of elements,
//! which are aligned to no word.

mod strips;
mod weights;

use self::strips::{alignment, strip};
use self::weights::Weights;
use crate::element::halves;
use crate::{Epilogue, Fragment, GemmKernel, Rung};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{MAX_GRID_Y, Multiplies, Plan, Shape};
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

/// Bytes of a row of X that a warp takes in one step, 16 a lane.
const STEP_BYTES: u32 = 64;

/// Steps whose loads of X are in flight together.
const AHEAD: u32 = 4;

/// Bytes of shared memory for W, at most; what is larger is taken in slices.
const SLICE_BYTES: u32 = 64 << 10;

/// Blocks for each multiprocessor, at most.
#[cfg(not(target_arch = "nvptx64"))]
const BLOCKS_PER_MULTIPROCESSOR: u32 = 2;

/// Steps of a slice of W, and bytes from a column to the next in shared memory, for that many bytes of a row of X.
#[inline(always)]
fn slice(row_bytes: u64, tiles: u32) -> (u32, u32) {
    let most = SLICE_BYTES / (8 * tiles * STEP_BYTES) - 1;
    // Below `most`, or it is.
    let steps = row_bytes.div_ceil(STEP_BYTES.into()).clamp(1, most.into()) as u32;
    // An odd number of steps: two columns then lie in different halves of the banks.
    (steps, (steps | 1) * STEP_BYTES)
}

/// The kernel in the table.
pub struct Fragments;

impl Rung for Fragments {
    const SUMMARY: &'static str = "tensor cores, X from global memory to registers";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::Staged);
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: Fragment> Multiplies<T> for Fragments {
    /// Tiles of columns along x, so that those that read the same rows of X do so at about the same time; blocks for tiles of
    /// 128 rows, in turn, along y.
    fn plan(shape: Shape) -> Plan<T> {
        let (tiles, kernel) = match shape.cols {
            ..=16 => (2, fragments::<T, 2>()),
            _ => (8, fragments::<T, 8>()),
        };
        let (_, stride) = slice(u64::from(shape.depth) * size_of::<T>() as u64, tiles);
        let across = shape.cols.div_ceil(8 * tiles);
        let most = (shape.multiprocessors.max(1)).saturating_mul(BLOCKS_PER_MULTIPROCESSOR);
        let blocks = shape.rows.div_ceil(BLOCK_ROWS);
        // As many tiles for each block, or one less.
        let each = blocks.div_ceil(most.min(blocks).min(MAX_GRID_Y));
        let config = LaunchConfig::new((across, blocks.div_ceil(each)), BLOCK);
        Plan {
            config: config.shared_bytes(8 * tiles * stride),
            kernel,
        }
    }
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a warp for 16 rows and `TILES` times 8 columns.
///
/// A warp's step costs two loads of 16 bytes a lane from X and one from shared memory for each tile of columns.
///
/// # Safety
///
/// `x` is m x k, `w` k x n, `y` m x n, apart from each other and aligned to 16 bytes; the launch is the plan's of
/// [`Fragments`].
#[kernel(name = "gemm_fragments", T = [f16, bf16], TILES = [2, 8])]
pub unsafe fn fragments<T: Fragment, const TILES: usize>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: Epilogue<T>,
) {
    let width = 8 * TILES as u32;
    let row_bytes = u64::from(x.cols) * size_of::<T>() as u64;
    let (steps, stride) = slice(row_bytes, TILES as u32);
    // At most as many as a row of X has.
    let all_steps = row_bytes.div_ceil(STEP_BYTES.into()) as u32;
    let block_tiles = x.rows.div_ceil(BLOCK_ROWS);
    let mut column = thread::block_idx_x() * width;
    while column < w.cols {
        let weights = Weights {
            w: &w,
            memory: shared::dynamic_shared_mem::<u32>(),
            stride,
            steps,
            column,
        };
        // SAFETY: loops depend on the block alone, so that all threads reach the barriers. W is written between two.
        unsafe {
            let one_slice = all_steps <= steps;
            if one_slice {
                weights.load(0, width);
                thread::sync_threads();
            }
            let mut tile = thread::block_idx_y();
            while tile < block_tiles {
                let warp = thread::thread_idx_x() / WARP_SIZE;
                let rows = Rows::new(&x, tile * (BLOCK / WARP_SIZE) + warp);
                let mut sums = [[T::Sum::ZERO; 4]; TILES];
                let mut first = 0;
                while first < all_steps {
                    if !one_slice {
                        weights.load(first, width);
                        thread::sync_threads();
                    }
                    let count = (all_steps - first).min(steps);
                    rows.add_slice::<TILES>(first, count, &weights, &mut sums);
                    if !one_slice {
                        thread::sync_threads();
                    }
                    first += steps;
                }
                rows.store::<TILES>(&y, &epilogue, column, sums);
                tile += thread::grid_dim_y();
            }
            // W is free for the next columns.
            thread::sync_threads();
        }
        column += thread::grid_dim_x() * width;
    }
}

/// A warp's 16 rows.
struct Rows<T> {
    /// The lane's rows of X, g and g + 8; the last row in the place of those past it.
    low: Global<u32>,
    high: Global<u32>,
    /// Bytes of a row.
    row_bytes: u64,
    /// The first of the 16 rows.
    first: u64,
    element: core::marker::PhantomData<T>,
}

impl<T: Fragment> Rows<T> {
    #[inline(always)]
    fn new(x: &Dense<T>, tile: u32) -> Self {
        let first = u64::from(tile) * u64::from(ROWS);
        let row_bytes = u64::from(x.cols) * size_of::<T>() as u64;
        let row = |row: u64| {
            let row = row.min(u64::from(x.rows) - 1);
            x.data.cast::<u32>().offset_bytes(row * row_bytes)
        };
        let group = u64::from(warp::lane_id() / 4);
        Self {
            low: row(first + group),
            high: row(first + group + 8),
            row_bytes,
            first,
            element: core::marker::PhantomData,
        }
    }

    /// Adds the products of `count` steps from step `first` on with the slice of W that starts there.
    ///
    /// # Safety
    ///
    /// Rows of X; the slice is written; all lanes of the warp call it.
    #[inline(always)]
    unsafe fn add_slice<const TILES: usize>(
        &self,
        first: u32,
        count: u32,
        weights: &Weights<'_, T>,
        sums: &mut [[T::Sum; 4]; TILES],
    ) {
        let mut step = 0;
        while step < count {
            // SAFETY: strips past the row's end are zeros, and so are those of W past its last row.
            unsafe {
                let strips = self.load_steps(first + step);
                unroll!(i in 0..4 {
                    let step = step + i as u32;
                    if step < count {
                        let (low, high) = (T::prepare(strips[i][0]), T::prepare(strips[i][1]));
                        unroll!(tile in 0..8 {
                            if const { tile < TILES } {
                                let weights = weights.strip(tile as u32, step);
                                unroll!(half in 0..2 {
                                    let part = |strip| halves(strip)[half];
                                    sums[tile] = T::multiply(part(low), part(high), part(weights), sums[tile]);
                                });
                            }
                        });
                    }
                });
            }
            step += AHEAD;
        }
    }

    /// The lane's strips of as many steps as are in flight together. Only the loads are written out for each alignment, and
    /// not what is done with them: the kernels are half as long.
    ///
    /// # Safety
    ///
    /// Rows of X.
    #[inline(always)]
    unsafe fn load_steps(&self, step: u32) -> [[[u32; 4]; 2]; 4] {
        // SAFETY: rows start at a multiple of as many bytes as divide their length, up to 16, and of an element's.
        unsafe {
            match alignment(self.row_bytes) {
                16 => self.load_steps_by::<16>(step),
                8 => self.load_steps_by::<8>(step),
                4 => self.load_steps_by::<4>(step),
                _ => self.load_steps_by::<2>(step),
            }
        }
    }

    /// As `load_steps`, by loads of `BYTES`.
    #[inline(always)]
    unsafe fn load_steps_by<const BYTES: usize>(&self, step: u32) -> [[[u32; 4]; 2]; 4] {
        let mut strips = [[[0; 4]; 2]; 4];
        unroll!(i in 0..4 {
            // SAFETY: the caller's contract.
            strips[i] = unsafe { self.strips::<BYTES>(step + i as u32) };
        });
        strips
    }

    /// The lane's strips of both rows; zeros past their end.
    ///
    /// # Safety
    ///
    /// Rows of X that start at a multiple of `BYTES`.
    #[inline(always)]
    unsafe fn strips<const BYTES: usize>(&self, step: u32) -> [[u32; 4]; 2] {
        let place = u64::from(step) * u64::from(STEP_BYTES) + u64::from(warp::lane_id() % 4) * 16;
        // SAFETY: parts of a row of X.
        unsafe {
            [
                strip::<BYTES>(self.low.offset_bytes(place), place, self.row_bytes),
                strip::<BYTES>(self.high.offset_bytes(place), place, self.row_bytes),
            ]
        }
    }

    /// Writes the sums, in Y as far as it has rows and columns.
    ///
    /// # Safety
    ///
    /// The kernel's contract.
    #[inline(always)]
    unsafe fn store<const TILES: usize>(
        &self,
        y: &DenseMut<T>,
        epilogue: &Epilogue<T>,
        column: u32,
        sums: [[T::Sum; 4]; TILES],
    ) {
        let lane = warp::lane_id();
        let cols = y.cols as usize;
        unroll!(half in 0..2 {
            let row = self.first + u64::from(lane / 4) + 8 * half as u64;
            if row < u64::from(y.rows) {
                let place = row as usize * cols;
                unroll!(tile in 0..8 {
                    let column = column as usize + 8 * tile + 2 * (lane % 4) as usize;
                    if const { tile < TILES } && column < cols {
                        let pair = [sums[tile][2 * half], sums[tile][2 * half + 1]];
                        // SAFETY: a row of Y and a column, which are this lane's.
                        unsafe { store_pair(y, epilogue, place, column, pair) };
                    }
                });
            }
        });
    }
}

/// Writes two neighbouring sums of the row of Y that starts at `place`, as far as there are columns, in one access where the row's
/// alignment allows it.
///
/// # Safety
///
/// Columns below Y's are the caller's, and the first is one.
#[inline(always)]
unsafe fn store_pair<T: Fragment>(
    y: &DenseMut<T>,
    epilogue: &Epilogue<T>,
    place: usize,
    column: usize,
    sums: [T::Sum; 2],
) {
    let cols = y.cols as usize;
    // SAFETY: columns below `cols`.
    unsafe {
        let first = epilogue.apply(sums[0], column);
        if cols.is_multiple_of(2) {
            let second = epilogue.apply(sums[1], column + 1);
            y.data.store2(place + column, [first, second]);
            return;
        }
        y.data.store(place + column, first);
        if column + 1 < cols {
            y.data
                .store(place + column + 1, epilogue.apply(sums[1], column + 1));
        }
    }
}
