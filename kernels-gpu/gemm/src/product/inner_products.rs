//! XW for a W of few columns: a group of lanes computes the inner products of a row of X with them.
//!
//! A lane multiplies every n-th element of a row, where a group has n lanes, or every n-th vector of 4, 8 or 16 bytes if
//! the columns of X are a multiple of it. It loads four or eight rows before it multiplies, and each element of W serves
//! all of them. Shuffles add up the sums of a group. W is stored by columns, so that lanes load it as they load X.
//!
//! ```text
//! groups of 4 lanes, rows of 11 elements        lane 0  1  2  3
//!                                                    0  1  2  3    loaded together, of each row of the group
//!                                                    4  5  6  7
//!                                                    8  9 10  -
//! ```
//!
//! Changes from `staged`: nothing goes through shared memory, so rows of X may begin anywhere, and no column of W is
//! padded.
//!
//! When to use it: for one or two columns of W. With one, it is the product of a matrix and a vector. With more it reads
//! X several times.

use crate::{BiasRelu, GemmKernel, Rung, Strides};
#[cfg(not(target_arch = "nvptx64"))]
use crate::{GemmProblem, MAX_GRID_Y, Multiplies, PlannedLaunch};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;
use warprow_kernels_matrix::{Dense, DenseMut, Operand};

/// Threads in a block.
const BLOCK: u32 = 128;

/// The fewest rows that a group computes at once.
#[cfg(not(target_arch = "nvptx64"))]
const LEAST_ROWS: u32 = 4;

/// Maximum number of blocks for each multiprocessor. Warps take rows in turn.
#[cfg(not(target_arch = "nvptx64"))]
const BLOCKS_PER_MULTIPROCESSOR: u32 = 16;

/// The kernel in the table.
pub struct InnerProducts;

impl Rung for InnerProducts {
    const SUMMARY: &'static str =
        "few columns of W: a group of lanes computes the inner products of a row of X";
    const PARENT: Option<GemmKernel> = Some(GemmKernel::Staged);
    const STRIDES: Strides = Strides::Below4GiB;

    fn refusal(depth: u32, size: usize) -> Option<&'static str> {
        let bytes = u64::from(depth) * size as u64;
        (bytes > u32::MAX.into()).then_some("it is for rows of X of less than 4 GiB")
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: Operand> Multiplies<T> for InnerProducts {
    /// The grid has tiles of columns along x, and along y blocks whose warps share the rows.
    fn plan(problem: GemmProblem) -> PlannedLaunch<T> {
        let (columns, kernel) = match problem.cols {
            1 => (1, inner_products::<T, 1>()),
            _ => (2, inner_products::<T, 2>()),
        };
        // As if all groups had 32 lanes; with smaller ones, some warps have no rows.
        let rows_of_block = BLOCK / WARP_SIZE * LEAST_ROWS;
        let most = (problem.multiprocessors.max(1)).saturating_mul(BLOCKS_PER_MULTIPROCESSOR);
        let blocks = problem.rows.div_ceil(rows_of_block).min(most);
        let config = LaunchConfig::new(
            (problem.cols.div_ceil(columns), blocks.clamp(1, MAX_GRID_Y)),
            BLOCK,
        );
        PlannedLaunch { config, kernel }
    }

    /// W by columns, each at a multiple of 16 bytes.
    fn pack(w: Vec<T>, problem: GemmProblem) -> Vec<T> {
        let (depth, cols) = (problem.depth as usize, problem.cols as usize);
        let pitch = pitch::<T>(problem.depth) as usize;
        let mut packed = vec![T::narrow(T::Sum::ZERO); pitch * cols];
        for (k, row) in w.chunks_exact(cols.max(1)).enumerate().take(depth) {
            for (column, &weight) in row.iter().enumerate() {
                packed[column * pitch + k] = weight;
            }
        }
        packed
    }
}

/// Elements from one column of the packed W to the next.
#[inline(always)]
const fn pitch<T>(depth: u32) -> u32 {
    depth.next_multiple_of(16 / size_of::<T>() as u32)
}

/// The logarithm of the lanes of a group for rows of so many vectors. They are the greatest power of two that gives each
/// lane at least two. If instructions are the limit, they are half as many where more than half of the lanes would be
/// idle in the last step.
#[inline(always)]
fn log_lanes(vectors: u32, is_issue_bound: bool) -> u32 {
    let mut log = WARP_SIZE.ilog2();
    while log > 0 && vectors >> log < 2 {
        log -= 1;
    }
    let lanes = 1 << log;
    let in_last_step = vectors & (lanes - 1);
    let is_nearly_empty = in_last_step > 0 && 2 * in_last_step < lanes;
    if is_issue_bound && is_nearly_empty {
        log - 1
    } else {
        log
    }
}

/// `Y[row, j] = sum over k of X[row, k] * W[k, j]`; a group of lanes computes several rows and `COLUMNS` columns.
///
/// # Safety
///
/// `x` is m x k, `w` is k x n, packed by [`InnerProducts`], and `y` is m x n. They do not overlap and are aligned to 16
/// bytes. The launch is the plan of [`InnerProducts`].
//
// Without these limits, `ptxas` saves registers and waits for each load before the next one.
#[kernel(
    name = "gemm_inner_products",
    T = [f32], COLUMNS = [1], registers = 72;
    T = [f32], COLUMNS = [2], registers = 96;
    T = [f16, bf16], COLUMNS = [1], registers = 96;
    T = [f16, bf16], COLUMNS = [2], registers = 104;
    T = [f64], COLUMNS = [1], registers = 64;
    T = [f64], COLUMNS = [2], registers = 80
)]
pub unsafe fn inner_products<T: Operand, const COLUMNS: usize>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: BiasRelu<T>,
) {
    // The width depends on the columns of X, not on its leading dimension, so neither do the bits of Y.
    let fits = |width: u32| x.cols.is_multiple_of(width);
    // SAFETY: the contract of this kernel; the columns are a multiple of the width.
    unsafe {
        match const { size_of::<T>() } {
            2 if fits(8) => rows::<T, COLUMNS, 8, 4, 1>(&x, &w, &y, &epilogue),
            2 if fits(2) => rows::<T, COLUMNS, 2, 8, 2>(&x, &w, &y, &epilogue),
            2 => rows::<T, COLUMNS, 1, 8, 2>(&x, &w, &y, &epilogue),
            4 if fits(4) => rows::<T, COLUMNS, 4, 4, 1>(&x, &w, &y, &epilogue),
            4 if fits(2) => rows::<T, COLUMNS, 2, 4, 1>(&x, &w, &y, &epilogue),
            4 => rows::<T, COLUMNS, 1, 8, 1>(&x, &w, &y, &epilogue),
            _ if fits(2) => rows::<T, COLUMNS, 2, 4, 1>(&x, &w, &y, &epilogue),
            _ => rows::<T, COLUMNS, 1, 4, 1>(&x, &w, &y, &epilogue),
        }
    }
}

/// The product of the rows that the warp takes in turn, by vectors of `WIDTH` elements. A group has `ROWS` rows at a
/// time, and loads `STEPS` vectors of each before it multiplies.
///
/// # Safety
///
/// That of [`inner_products`]; the columns of X are a multiple of `WIDTH`.
#[inline(always)]
unsafe fn rows<
    T: Operand,
    const COLUMNS: usize,
    const WIDTH: usize,
    const ROWS: usize,
    const STEPS: usize,
>(
    x: &Dense<T>,
    w: &Dense<T>,
    y: &DenseMut<T>,
    epilogue: &BiasRelu<T>,
) {
    // Single elements need as many instructions as vectors. With f32 and f64 and one column of W, memory is the limit.
    let is_issue_bound = WIDTH == 1 && (COLUMNS > 1 || size_of::<T>() == 2);
    // Shifts, since a division by a number of lanes leaves a panic path.
    let log_lanes = log_lanes(x.cols / WIDTH as u32, is_issue_bound);
    let lanes = 1 << log_lanes;
    let groups = WARP_SIZE >> log_lanes;
    let thread = thread::thread_idx_x();
    let (group, lane) = ((thread % WARP_SIZE) >> log_lanes, thread & (lanes - 1));
    let first_column = thread::block_idx_x() * COLUMNS as u32;
    let pitch = pitch::<T>(x.cols) as usize;
    // A column past the last one is computed as the last one, and not written.
    let columns: [u32; COLUMNS] = array::from_fn(|j| (first_column + j as u32).min(w.cols - 1));
    let of_w: [Global<T>; COLUMNS] = array::from_fn(|j| w.data.offset(columns[j] as usize * pitch));
    // SAFETY: the columns are columns of Y.
    let bias = columns.map(|column| unsafe { epilogue.bias_at(column) });
    let rows_of_warp = u64::from(groups) * ROWS as u64;
    let warps = u64::from(thread::grid_dim_y()) * u64::from(BLOCK / WARP_SIZE);
    let warp = u64::from(thread::block_idx_y()) * u64::from(BLOCK / WARP_SIZE)
        + u64::from(thread / WARP_SIZE);
    let has_aligned_rows = x.stride.is_multiple_of(WIDTH as u32);
    let row_bytes = x.stride * size_of::<T>() as u32;
    let mut first = warp * rows_of_warp;
    while first < u64::from(x.rows) {
        // Rows past the last one are computed as the last one, and not written.
        let last = x.rows - 1 - first as u32;
        let rows: [u32; ROWS] = array::from_fn(|i| (i as u32 * groups + group).min(last));
        let of_x = (x.data).offset(first as usize * x.stride as usize);
        let mut sums = [[T::Sum::ZERO; COLUMNS]; ROWS];
        let mut k = lane * WIDTH as u32;
        let step = lanes * WIDTH as u32;
        // SAFETY: rows begin at multiples of `WIDTH`, or elements are loaded one by one. The rows and columns exist;
        // `WIDTH` elements from a place below `x.cols` on are below it, too, since it is a multiple of `WIDTH`.
        unsafe {
            let operands = (of_x, row_bytes, rows, of_w);
            if const { STEPS > 1 } && (WIDTH == 1 || has_aligned_rows) {
                while x.cols - k.min(x.cols) > (STEPS as u32 - 1) * step {
                    sums = add::<T, COLUMNS, WIDTH, ROWS, STEPS>(operands, (k, step), sums);
                    k += STEPS as u32 * step;
                }
            }
            while k < x.cols {
                if WIDTH == 1 || has_aligned_rows {
                    sums = add::<T, COLUMNS, WIDTH, ROWS, 1>(operands, (k, step), sums);
                } else {
                    let mut place = k;
                    while place < k + WIDTH as u32 {
                        thread::keep_rolled();
                        sums = add::<T, COLUMNS, 1, ROWS, 1>(operands, (place, step), sums);
                        place += 1;
                    }
                }
                k += step;
            }
        }
        let mut distance = lanes / 2;
        while distance > 0 {
            sums = sums.map(|row| {
                row.map(|sum| sum + warp::shfl_xor(FULL_MASK, sum, distance, WARP_SIZE))
            });
            distance /= 2;
        }
        if lane == 0 {
            unroll!(i in 0..8 {
                if i < ROWS && i as u32 * groups + group <= last {
                    let row = first + u64::from(i as u32 * groups + group);
                    let of_y = y.data.offset(row as usize * y.stride as usize);
                    unroll!(j in 0..2 {
                        if j < COLUMNS && first_column + (j as u32) < w.cols {
                            let column = first_column as usize + j;
                            let sum = sums[i % ROWS][j % COLUMNS];
                            // SAFETY: row and column are of Y, and no other lane writes both.
                            unsafe { of_y.store(column, epilogue.finish(sum, bias[j % COLUMNS])) };
                        }
                    });
                }
            });
        }
        first += warps * rows_of_warp;
    }
}

/// Adds `STEPS` products of vectors to the sums of each row, with the vectors from `k` on, `step` elements apart. All
/// are loaded before the first is multiplied.
///
/// # Safety
///
/// X has the rows, which begin at multiples of `row_bytes` from `of_x` on. X and W have the vectors, at multiples of
/// their size.
#[inline(always)]
unsafe fn add<
    T: Operand,
    const COLUMNS: usize,
    const WIDTH: usize,
    const ROWS: usize,
    const STEPS: usize,
>(
    (of_x, row_bytes, rows, of_w): (Global<T>, u32, [u32; ROWS], [Global<T>; COLUMNS]),
    (k, step): (u32, u32),
    sums: [[T::Sum; COLUMNS]; ROWS],
) -> [[T::Sum; COLUMNS]; ROWS] {
    let mut sums = sums;
    let at = |s: usize| (k + s as u32 * step) as usize;
    const { assert!(STEPS <= 2 && WIDTH <= 8 && ROWS <= 8 && COLUMNS <= 2) };
    let elements: [[T::Vector; ROWS]; STEPS] = array::from_fn(|s| {
        let of_k = of_x.offset(at(s));
        // SAFETY: X has the vectors, by the contract.
        rows.map(|row| unsafe { T::load::<WIDTH>(of_k.offset_rows(row, row_bytes), 0) })
    });
    let weights: [[T::Vector; COLUMNS]; STEPS] = array::from_fn(|s| {
        // SAFETY: W has the vectors, by the contract.
        of_w.map(|column| unsafe { T::load::<WIDTH>(column, at(s)) })
    });
    unroll!(s in 0..2 {
        unroll!(part in 0..8 {
            if s < STEPS && part < WIDTH {
                sums = array::from_fn(|i| {
                    array::from_fn(|j| {
                        let weight = T::get(&weights[s % STEPS][j], part);
                        T::get(&elements[s % STEPS][i], part).mul_add(weight, sums[i][j])
                    })
                });
            }
        });
    });
    sums
}
