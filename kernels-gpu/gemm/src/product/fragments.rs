//! Tensor cores: fragments of X straight from global memory to registers.
//!
//! `mma.sync` multiplies a 16-row fragment of X with an 8-column one of W, and wants of each lane a few elements of two
//! rows. Which elements is a matter of names: a sum over k does not change if X and W number their k in another order, the same
//! for both. So each lane takes 16 neighbouring bytes of its rows, the four lanes of a row 64 bytes, and they are used as
//! if they were the elements that the instruction asks for. X goes through no shared memory and no shuffles, and
//! each sector is read by one instruction. W lies in shared memory by columns, where a lane reads its 16 bytes as well.
//!
//! f16 and bf16 are added up in f32, f64 in f64 and as exactly as on CUDA cores. f32 is rounded to tf32, of
//! which 11 bits are left, so that for f32 this is no kernel that a plan picks by itself.
//!
//! A block takes many tiles of 128 rows, one after the other, as it has to copy W first.
//!
//! On an H200, 281,903 x 128 by 128 x 16: 0.088 ms in f64 after 0.133 for `staged`, 0.93 of the floor; 0.062 ms in tf32, 0.71; 0.029 ms in
//! f16 and bf16, 0.84 and 0.82. cuBLAS takes 0.085, 0.077 (f32), 0.032 and 0.031 ms.
//!
//! With many columns it is far from the floor: 0.2 in f16 at 128 columns where cuBLAS reaches 0.9, 0.4 at 47 in f64 where it reaches
//! 0.5. A warp of 16 rows reads from shared memory, for the 1 KiB of X of a step, half a KiB of W for each 8 columns, and stores its
//! sums in pieces of 16 bytes a row in f16; which of the two is the reason was not measured.

mod strips;
mod weights;

use self::strips::{alignment, strip};
use self::weights::Weights;
use crate::element::halves;
use crate::{Epilogue, Fragment, GemmElement, MAX_GRID_Y, Shape};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut};

/// What it does, in one line.
pub const SUMMARY: &str = "tensor cores, X from global memory to registers; f32 as tf32";

/// The rung that it continues.
pub const PARENT: Option<crate::GemmKernel> = Some(crate::GemmKernel::Staged);

/// Threads in a block.
const BLOCK: u32 = 256;

/// Rows of a warp's tile.
const ROWS: u32 = 16;

/// Rows of a block's tile.
const BLOCK_ROWS: u32 = BLOCK / WARP_SIZE * ROWS;

/// Bytes of a row of X that a warp takes in one step, 16 a lane.
const STEP_BYTES: u32 = 64;

/// Bytes of shared memory for W, at most; what is larger is taken in slices.
const SLICE_BYTES: u32 = 64 << 10;

/// Blocks for each multiprocessor, at most. With 4, f64 takes 1.35 times as long and f16 1.1 times; with as many blocks as tiles,
/// f16 takes 1.25 times as long (H200, 128 to 16 columns); of tf32 only 4 were measured.
fn blocks_per_multiprocessor<T>() -> u32 {
    match size_of::<T>() {
        8 => 3,
        4 => 4,
        _ => 2,
    }
}

/// Tiles of 8 columns that a warp computes, for that many columns.
fn tiles(cols: u32) -> u32 {
    match cols {
        0..=16 => 2,
        17..=48 => 6,
        _ => 8,
    }
}

/// Steps of a slice of W, and bytes from a column to the next in shared memory, for that many bytes of a row of X.
#[inline(always)]
fn slice(row_bytes: u64, tiles: u32) -> (u32, u32) {
    let most = SLICE_BYTES / (8 * tiles * STEP_BYTES) - 1;
    // Below `most`, or it is.
    let steps = row_bytes.div_ceil(STEP_BYTES.into()).clamp(1, most.into()) as u32;
    // An odd number of steps: two columns then lie in different halves of the banks.
    (steps, (steps | 1) * STEP_BYTES)
}

/// Tiles of columns along x, so that those that read the same rows of X do so at about the same time; blocks for tiles of 128
/// rows, in turn, along y.
pub fn launch<T: GemmElement>(shape: Shape) -> LaunchConfig {
    let tiles = tiles(shape.cols);
    let (_, stride) = slice(u64::from(shape.depth) * size_of::<T>() as u64, tiles);
    let across = shape.cols.div_ceil(8 * tiles);
    let most = shape
        .multiprocessors
        .max(1)
        .saturating_mul(blocks_per_multiprocessor::<T>());
    let blocks = shape.rows.div_ceil(BLOCK_ROWS);
    // As many tiles for each block, or one less.
    let each = blocks.div_ceil(most.min(blocks).min(MAX_GRID_Y));
    LaunchConfig::new((across, blocks.div_ceil(each)), BLOCK).shared_bytes(8 * tiles * stride)
}

/// The handle of the kernel for as many columns.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Fragment>(shape: Shape) -> Kernel<crate::Arguments<T>> {
    match tiles(shape.cols) {
        2 => fragments::<T, 2>(),
        6 => fragments::<T, 6>(),
        _ => fragments::<T, 8>(),
    }
}

/// `Y[row, j] = sum of X[row, k] * W[k, j]`, a warp for 16 rows and `TILES` times 8 columns.
///
/// A warp's step costs two loads of 16 bytes a lane from X and one from shared memory for each tile of columns.
///
/// # Safety
///
/// `x` is m x k, `w` k x n, `y` m x n, apart from each other and aligned to 16 bytes; the launch is that of [`launch`].
#[kernel(name = "gemm_fragments", T = [f32, f64, f16, bf16], TILES = [2, 6, 8])]
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
                let strips = self.load_steps::<TILES>(first + step);
                unroll!(i in 0..4 {
                    let step = step + i as u32;
                    if const { i < ahead(TILES, size_of::<T>()) } && step < count {
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
            step += const { ahead(TILES, size_of::<T>()) as u32 };
        }
    }

    /// The lane's strips of as many steps as are in flight together. Only the loads are written out for each alignment, and
    /// not what is done with them: the kernels are half as long.
    ///
    /// # Safety
    ///
    /// Rows of X.
    #[inline(always)]
    unsafe fn load_steps<const TILES: usize>(&self, step: u32) -> [[[u32; 4]; 2]; 4] {
        // SAFETY: rows start at a multiple of as many bytes as divide their length, up to 16, and of an element's.
        unsafe {
            match alignment(self.row_bytes) {
                16 => self.load_steps_by::<TILES, 16>(step),
                _ if const { size_of::<T>() == 8 } => self.load_steps_by::<TILES, 8>(step),
                8 => self.load_steps_by::<TILES, 8>(step),
                _ if const { size_of::<T>() == 4 } => self.load_steps_by::<TILES, 4>(step),
                4 => self.load_steps_by::<TILES, 4>(step),
                _ => self.load_steps_by::<TILES, 2>(step),
            }
        }
    }

    /// As `load_steps`, by loads of `BYTES`.
    #[inline(always)]
    unsafe fn load_steps_by<const TILES: usize, const BYTES: usize>(
        &self,
        step: u32,
    ) -> [[[u32; 4]; 2]; 4] {
        let mut strips = [[[0; 4]; 2]; 4];
        unroll!(i in 0..4 {
            if const { i < ahead(TILES, size_of::<T>()) } {
                // SAFETY: the caller's contract.
                strips[i] = unsafe { self.strips::<BYTES>(step + i as u32) };
            }
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

/// Steps whose loads of X are in flight together: fewer where sums take most registers.
const fn ahead(tiles: usize, size: usize) -> usize {
    if tiles == 8 && size == 8 { 2 } else { 4 }
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
