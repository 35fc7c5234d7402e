//! The product of `shallow` in f64: a thread reads its rows of X and its columns of W from memory, where W stays in the
//! caches, and writes its elements of Y there.
//!
//! Tiles in f64 take twice the shared memory, so fewer blocks are resident. With tiles of X and Y in shared memory,
//! products in f64 with up to 8 columns of X were 0.50 to 1.08 times as fast as with the first version of this file
//! (docs/notes/gemm.md).
//!
//! A thread writes two neighbouring columns at once, which start at a multiple of 16 bytes. In a row whose part of the
//! tile starts at an odd element of Y, its columns are one further to the left. All rows of a thread start at an even
//! element, or all at an odd one.
//!
//! ```text
//! 5 columns        thread 0   thread 1   thread 2
//! even start       0 1        2 3        4 -
//! odd start        - 0        1 2        3 4
//! ```

use super::BLOCK;
use crate::BiasRelu;
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, MAX_GRID_Y};
use core::array;
use cuda_std::prelude::*;
#[cfg(not(target_arch = "nvptx64"))]
use cuda_std::warp::WARP_SIZE;
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut, Operand};

/// Maximum number of columns of a tile. A row of such a tile has `BLOCK` threads, and a block has two rows.
const MOST_COLUMNS: u32 = 2 * BLOCK - 2;

/// Rows that a thread multiplies at once.
const ROWS: usize = 4;

/// Maximum number of columns of X for which a block ends after one step, unless that takes more blocks than a grid may
/// have along y: blocks that run together then write neighbouring rows. With more columns that is slower.
#[cfg(not(target_arch = "nvptx64"))]
const MAX_DEPTH_OF_ONE_STEP: u32 = 3;

/// Maximum number of threads for each multiprocessor and tile of columns, if X has more columns than that. The blocks
/// take rows in turn.
#[cfg(not(target_arch = "nvptx64"))]
const THREADS_PER_MULTIPROCESSOR: u32 = 1024;

/// The threads of a row in a tile of so many columns, one for each pair of them; and the rows that a block multiplies
/// side by side. These are an even number, so that a thread's pairs are aligned in all of its rows. Also, the end of a
/// row and the start of the next one may be in the same sector of memory, and then one block writes both.
#[inline(always)]
const fn shape(columns: u32) -> (u32, u32) {
    let across = columns / 2 + 1;
    let rows = BLOCK / across / 2 * 2;
    (across, if rows == 0 { 2 } else { rows })
}

/// The columns of every tile but the last one, which may have fewer.
#[inline(always)]
const fn tile(cols: u32) -> u32 {
    let tiles = cols.div_ceil(MOST_COLUMNS);
    // Without columns there is no tile; the condition spares the panic path of a division by zero.
    cols.div_ceil(if tiles == 0 { 1 } else { tiles })
}

/// The grid has tiles of columns along x, and along y blocks that share the rows evenly.
#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn launch(problem: GemmProblem) -> LaunchConfig {
    let tile = tile(problem.cols);
    let (across, rows) = shape(tile);
    let threads = (across * rows).next_multiple_of(WARP_SIZE);
    let steps = problem.rows.div_ceil(rows * ROWS as u32);
    let most = if problem.depth <= MAX_DEPTH_OF_ONE_STEP {
        steps
    } else {
        (problem.multiprocessors.max(1)).saturating_mul(THREADS_PER_MULTIPROCESSOR / threads)
    };
    let steps_of_block = steps.div_ceil(most.clamp(1, MAX_GRID_Y)).max(1);
    let blocks = steps.div_ceil(steps_of_block).max(1);
    LaunchConfig::new((problem.cols.div_ceil(tile), blocks), threads)
}

/// The product.
///
/// # Safety
///
/// The same as of [`shallow`](super::shallow), with the launch of this file.
#[inline(always)]
pub(super) unsafe fn multiply<T: Operand>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: BiasRelu<T>,
) {
    let tile = tile(w.cols);
    let first_column = thread::block_idx_x() * tile;
    let columns = (w.cols - first_column.min(w.cols)).min(tile);
    let (across, rows_of_block) = shape(tile);
    let thread = thread::thread_idx_x();
    let (row, pair) = (thread / across, thread % across);
    if row >= rows_of_block || columns == 0 {
        return;
    }
    let step = u64::from(rows_of_block) * ROWS as u64;
    let mut first = u64::from(thread::block_idx_y()) * step + u64::from(row);
    // The thread's rows are an even number of rows apart, so all of them start odd, or all of them even.
    let starts_odd = (first as u32)
        .wrapping_mul(y.stride)
        .wrapping_add(first_column)
        % 2
        == 1;
    let pair = Pair::new(
        (2 * pair).wrapping_sub(starts_odd.into()),
        (first_column, columns),
    );
    // SAFETY: the bias has the columns of Y.
    let bias = unsafe { pair.bias(&epilogue) };
    let of_w = (pair.place).map(|column| w.data.offset((first_column + column) as usize));
    while first < u64::from(x.rows) {
        // The cast is exact: it is below the rows.
        let number = first as u32;
        let last = x.rows - 1 - number;
        let below: [u32; ROWS] = array::from_fn(|i| i as u32 * rows_of_block);
        // Rows past the last one are computed as the last one, and not written.
        let of_x: [Global<T>; ROWS] = {
            let from = x.data.offset(number as usize * x.stride as usize);
            array::from_fn(|i| from.offset(below[i].min(last) as usize * x.stride as usize))
        };
        let mut sums = [[T::Sum::ZERO; 2]; ROWS];
        let (mut k, mut of_row) = (0, of_w);
        while k < x.cols {
            // SAFETY: X has the rows and column `k`. W has row `k` and the columns.
            unsafe {
                let elements: [T::Sum; ROWS] = array::from_fn(|i| of_x[i].load(k as usize).widen());
                let factors = of_row.map(|column| column.load(0).widen());
                unroll!(i in 0..4 {
                    sums[i][0] = elements[i].mul_add(factors[0], sums[i][0]);
                    sums[i][1] = elements[i].mul_add(factors[1], sums[i][1]);
                });
            }
            of_row = of_row.map(|column| column.offset(w.cols as usize));
            k += 1;
        }
        finish(&mut sums, bias, &epilogue);
        let to = (y.data).offset(number as usize * y.stride as usize + first_column as usize);
        unroll!(i in 0..4 {
            if below[i] <= last {
                let of_row = to.offset(below[i] as usize * y.stride as usize);
                // SAFETY: row and columns are of Y, and no other thread has them. The pair starts at an even element.
                unsafe { pair.store(of_row, sums[i]) };
            }
        });
        first += step * u64::from(thread::grid_dim_y());
    }
}

/// The two columns of a tile that a thread has.
#[derive(Clone, Copy)]
struct Pair {
    /// Whether the tile has them.
    exists: [bool; 2],
    /// The columns in the tile; column 0 in place of one that does not exist, so that loads stay in the tile.
    place: [u32; 2],
    first_column: u32,
}

impl Pair {
    /// The columns `left` and `left + 1` of a tile of `columns` columns, at least one; `left` may be -1.
    #[inline(always)]
    fn new(left: u32, (first_column, columns): (u32, u32)) -> Self {
        let both = [left, left.wrapping_add(1)];
        Self {
            exists: both.map(|column| column < columns),
            place: both.map(|column| if column < columns { column } else { 0 }),
            first_column,
        }
    }

    /// The bias of both columns; zeros if there is none.
    ///
    /// # Safety
    ///
    /// The bias, if there is one, has the columns of the tile.
    #[inline(always)]
    unsafe fn bias<T: Operand>(self, epilogue: &BiasRelu<T>) -> [T::Sum; 2] {
        if epilogue.has_bias == 0 {
            return [T::Sum::ZERO; 2];
        }
        // SAFETY: the tile has the column.
        (self.place).map(|column| unsafe {
            let column = self.first_column + column;
            epilogue.bias.load(column as usize).widen()
        })
    }

    /// Stores the sums of the columns that exist. The caches evict them first, which makes writes of a large Y faster.
    ///
    /// # Safety
    ///
    /// Y has the columns of the tile from `of_row` on, and no other thread writes these two. The left one is at a
    /// multiple of two elements.
    #[inline(always)]
    unsafe fn store<T: Operand>(self, of_row: GlobalMut<T>, sums: [T::Sum; 2]) {
        let [left, right] = self.place.map(|column| column as usize);
        // SAFETY: what is stored exists, and two at once are aligned, by the contract.
        unsafe {
            match self.exists {
                [true, true] => of_row.store_streaming(left, sums.map(T::narrow)),
                [true, false] => of_row.store_streaming(left, [T::narrow(sums[0])]),
                [false, true] => of_row.store_streaming(right, [T::narrow(sums[1])]),
                [false, false] => {}
            }
        }
    }
}

/// Adds the bias, and applies ReLU.
#[inline(always)]
fn finish<T: Operand>(sums: &mut [[T::Sum; 2]; ROWS], bias: [T::Sum; 2], epilogue: &BiasRelu<T>) {
    if epilogue.has_bias != 0 {
        unroll!(i in 0..4 {
            unroll!(j in 0..2 {
                sums[i][j] += bias[j];
            });
        });
    }
    if epilogue.relu != 0 {
        unroll!(i in 0..4 {
            unroll!(j in 0..2 {
                if sums[i][j] < T::Sum::ZERO {
                    sums[i][j] = T::Sum::ZERO;
                }
            });
        });
    }
}
