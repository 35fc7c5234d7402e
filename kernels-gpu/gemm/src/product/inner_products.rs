//! XW for a W of few columns: a group of lanes computes the inner products of a row of X with them.
//!
//! A lane multiplies every n-th vector of 16 bytes of a row, where a group has n lanes. Shuffles add up its sums.
//!
//! A row whose length is no multiple of a vector may begin at any element of one. For each such element there is a copy
//! of W, with as many zeros before each column as there are elements before the row. They multiply the elements of the
//! neighbouring rows. A group takes four rows that begin at the same element, so they share a copy.
//!
//! ```text
//! X, rows a, b, ..   a0 a1 a2 a3 | a4 a5 a6 a7 | a8 a9 a10 b0 | b1 b2 b3 b4 | b5 b6 b7 b8 | b9 b10 c0 c1 | ..
//! W for a            w0 w1 w2 w3 | w4 w5 w6 w7 | w8 w9 w10 0
//! W for b                                        0  0  0   w0 | w1 w2 w3 w4 | w5 w6 w7 w8 | w9 w10 0  0
//! ```
//!
//! Rows are multiplied element by element if there are gaps between them, if they are among the last and X ends within
//! a vector, and once more if a sum of the warp is NaN: an infinite element of a neighbouring row, times 0, is NaN.
//!
//! Changes from `staged`: nothing goes through shared memory, rows of X may begin anywhere, no column of W is padded.
//!
//! When to use it: for one or two columns of W. With more it reads X several times.

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

/// Rows that a group computes at once.
const ROWS: usize = 4;

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
        let rows_of_block = BLOCK / WARP_SIZE * ROWS as u32;
        let most = (problem.multiprocessors.max(1)).saturating_mul(BLOCKS_PER_MULTIPROCESSOR);
        let blocks = problem.rows.div_ceil(rows_of_block).min(most);
        let config = LaunchConfig::new(
            (problem.cols.div_ceil(columns), blocks.clamp(1, MAX_GRID_Y)),
            BLOCK,
        );
        PlannedLaunch { config, kernel }
    }

    /// W by columns. Of each column there is a copy for each element of a vector at which a row of X may begin, with as
    /// many zeros before it. Copies begin at multiples of 16 bytes.
    fn pack(w: Vec<T>, problem: GemmProblem) -> Vec<T> {
        let (depth, cols) = (problem.depth as usize, problem.cols as usize);
        let copies = 1 << log_starts::<T>(problem.depth);
        let pitch = pitch::<T>(problem.depth) as usize;
        let mut packed = vec![T::narrow(T::Sum::ZERO); pitch * copies * cols];
        for (k, row) in w.chunks_exact(cols.max(1)).enumerate().take(depth) {
            for (column, &weight) in row.iter().enumerate() {
                for start in 0..copies {
                    packed[(column * copies + start) * pitch + start + k] = weight;
                }
            }
        }
        packed
    }
}

/// Elements of a vector of 16 bytes.
const fn width<T>() -> usize {
    16 / size_of::<T>()
}

/// The logarithm of the number of elements of a vector at which packed rows of `depth` elements may begin. All rows
/// begin at the first if their length is a multiple of a vector.
#[inline(always)]
const fn log_starts<T>(depth: u32) -> u32 {
    let width = width::<T>() as u32;
    if depth.is_multiple_of(width) {
        0
    } else {
        width.ilog2()
    }
}

/// Elements from one copy of a column of W to the next.
#[inline(always)]
const fn pitch<T>(depth: u32) -> u32 {
    let last_start = (1 << log_starts::<T>(depth)) - 1;
    (depth + last_start).next_multiple_of(width::<T>() as u32)
}

/// The logarithm of the lanes of a group for rows of so many vectors: the greatest power of two that gives each lane at
/// least two.
#[inline(always)]
fn log_lanes(vectors: u32) -> u32 {
    let mut log = WARP_SIZE.ilog2();
    while log > 0 && vectors >> log < 2 {
        log -= 1;
    }
    log
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
    T = [f32, f64, f16, bf16], COLUMNS = [1], registers = 64;
    T = [f32, f64, f16, bf16], COLUMNS = [2], registers = 80
)]
pub unsafe fn inner_products<T: Operand, const COLUMNS: usize>(
    x: Dense<T>,
    w: Dense<T>,
    y: DenseMut<T>,
    epilogue: BiasRelu<T>,
) {
    // SAFETY: the contract of this kernel.
    unsafe {
        match const { size_of::<T>() } {
            2 => rows::<T, COLUMNS, 8>(&x, &w, &y, &epilogue),
            4 => rows::<T, COLUMNS, 4>(&x, &w, &y, &epilogue),
            _ => rows::<T, COLUMNS, 2>(&x, &w, &y, &epilogue),
        }
    }
}

/// The product of the rows that the warp takes in turn, by vectors of `WIDTH` elements.
///
/// # Safety
///
/// That of [`inner_products`]; a vector has `WIDTH` elements.
#[inline(always)]
unsafe fn rows<T: Operand, const COLUMNS: usize, const WIDTH: usize>(
    x: &Dense<T>,
    w: &Dense<T>,
    y: &DenseMut<T>,
    epilogue: &BiasRelu<T>,
) {
    // Shifts, since a division by a number of lanes leaves a panic path.
    let log_starts = log_starts::<T>(x.cols);
    let log_lanes = log_lanes(x.cols.div_ceil(WIDTH as u32));
    let log_groups = WARP_SIZE.ilog2() - log_lanes;
    // A group's rows are so far apart that all of them begin at the same element of a vector. The rows between them
    // belong to the warp's other groups, and to other warps if there are too few groups.
    let log_apart = log_groups.max(log_starts);
    let (apart, log_sharing) = (1 << log_apart, log_apart - log_groups);
    let thread = thread::thread_idx_x();
    let (group, lane) = (
        (thread % WARP_SIZE) >> log_lanes,
        thread & ((1 << log_lanes) - 1),
    );
    let first_column = thread::block_idx_x() * COLUMNS as u32;
    // A column past the last one is computed as the last one, and not written.
    let columns: [u32; COLUMNS] = array::from_fn(|j| (first_column + j as u32).min(w.cols - 1));
    // SAFETY: the columns are columns of Y.
    let bias = columns.map(|column| unsafe { epilogue.bias_at(column) });
    let pitch = pitch::<T>(x.cols) as usize;
    let is_packed = x.stride == x.cols;
    let has_vectors = is_packed || log_starts == 0 && x.stride.is_multiple_of(WIDTH as u32);
    let ends_in_vector = is_packed && !(x.rows.wrapping_mul(x.cols)).is_multiple_of(WIDTH as u32);
    let warps = u64::from(thread::grid_dim_y()) * u64::from(BLOCK / WARP_SIZE);
    let mut warp = u64::from(thread::block_idx_y()) * u64::from(BLOCK / WARP_SIZE)
        + u64::from(thread / WARP_SIZE);
    loop {
        let first = (warp >> log_sharing) * (apart as u64 * ROWS as u64);
        if first >= u64::from(x.rows) {
            return;
        }
        let last = x.rows - 1 - first as u32;
        let of_group = ((warp as u32 & ((1 << log_sharing) - 1)) << log_groups) + group;
        let is_row = |i: u32| of_group + i * apart <= last;
        // Instead of a row past the last one, the group computes its first row again, or else the first of all, and
        // does not write it. A group's rows must begin at the same element of a vector.
        let first_of_group = if is_row(0) { of_group } else { 0 };
        let rows: [u32; ROWS] = array::from_fn(|i| {
            let row = i as u32 * apart;
            first_of_group + if is_row(i as u32) { row } else { 0 }
        });
        let start = first_of_group.wrapping_mul(x.cols) % WIDTH as u32;
        let has_last = u64::from(last) < apart as u64 * ROWS as u64;
        let operands = RowsOfGroup {
            x: x.data.offset(first as usize * x.stride as usize),
            row_bytes: x.stride * size_of::<T>() as u32,
            rows,
            start,
            end: start + x.cols,
            w: columns.map(|column| {
                let copy = ((column as usize) << log_starts) + start as usize;
                w.data.offset(copy * pitch)
            }),
        };
        let mut by_vectors = has_vectors && !(ends_in_vector && has_last);
        // SAFETY: the rows exist. Vectors are loaded only where each row begins `start` elements after a multiple of 16
        // bytes. `apart * ROWS` packed rows are whole vectors, so only the last such rows can end within one; they are
        // then loaded element by element. All lanes reach the shuffles and the vote, as `by_vectors` is the same for
        // all of them.
        let sums = unsafe {
            loop {
                let sums = operands.sums::<WIDTH>(by_vectors, lane, log_lanes);
                let is_nan = |sum: &T::Sum| sum.partial_cmp(sum).is_none();
                let some_are_nan = sums.iter().any(|row| row.iter().any(is_nan));
                if !by_vectors || log_starts == 0 || !warp::any(FULL_MASK, some_are_nan) {
                    break sums;
                }
                by_vectors = false;
            }
        };
        if lane == 0 {
            unroll!(i in 0..4 {
                if is_row(i as u32) {
                    let row = first as usize + rows[i] as usize;
                    let of_y = y.data.offset(row * y.stride as usize);
                    unroll!(j in 0..2 {
                        if j < COLUMNS && first_column + (j as u32) < w.cols {
                            let column = first_column as usize + j;
                            let sum = sums[i][j % COLUMNS];
                            // SAFETY: row and column are of Y, and no other lane writes both.
                            unsafe { of_y.store(column, epilogue.finish(sum, bias[j % COLUMNS])) };
                        }
                    });
                }
            });
        }
        warp += warps;
    }
}

/// The rows that a group computes at once, and the columns of W.
struct RowsOfGroup<T, const COLUMNS: usize> {
    /// The row from which `rows` count.
    x: Global<T>,
    /// Bytes from one row of X to the next.
    row_bytes: u32,
    rows: [u32; ROWS],
    /// The element of a vector at which all of the rows begin.
    start: u32,
    /// `start` plus the columns of X.
    end: u32,
    /// The copy of each column of W for `start`.
    w: [Global<T>; COLUMNS],
}

impl<T: Operand, const COLUMNS: usize> RowsOfGroup<T, COLUMNS> {
    /// The inner products, in each lane of the group, of which the calling lane has number `lane`. Both ways of loading
    /// add up the same elements in the same order.
    ///
    /// # Safety
    ///
    /// X has the rows, and W the columns. With `by_vectors` the vectors of the rows are aligned, and X has all of their
    /// elements. All lanes of the warp call it.
    #[inline(always)]
    unsafe fn sums<const WIDTH: usize>(
        &self,
        by_vectors: bool,
        lane: u32,
        log_lanes: u32,
    ) -> [[T::Sum; COLUMNS]; ROWS] {
        let mut sums = [[T::Sum::ZERO; COLUMNS]; ROWS];
        let mut k = lane * WIDTH as u32;
        // SAFETY: the contract of this function.
        unsafe {
            while k < self.end {
                if by_vectors {
                    sums = self.add::<WIDTH>(k, sums);
                } else {
                    let mut place = k.max(self.start);
                    while place < (k + WIDTH as u32).min(self.end) {
                        thread::keep_rolled();
                        sums = self.add::<1>(place, sums);
                        place += 1;
                    }
                }
                k += (WIDTH as u32) << log_lanes;
            }
        }
        let mut distance = (1 << log_lanes) / 2;
        while distance > 0 {
            sums = sums.map(|row| {
                row.map(|sum| sum + warp::shfl_xor(FULL_MASK, sum, distance, WARP_SIZE))
            });
            distance /= 2;
        }
        sums
    }

    /// Adds the products of the vector from `k` on to the sums of each row. All are loaded before the first is
    /// multiplied. `k` counts from the vector in which the rows begin.
    ///
    /// # Safety
    ///
    /// X and W have the vectors, at multiples of their size.
    #[inline(always)]
    unsafe fn add<const WIDTH: usize>(
        &self,
        k: u32,
        sums: [[T::Sum; COLUMNS]; ROWS],
    ) -> [[T::Sum; COLUMNS]; ROWS] {
        let mut sums = sums;
        // It may be before X, until the bytes to a row are added.
        let of_k = self
            .x
            .offset((k as usize).wrapping_sub(self.start as usize));
        // SAFETY: X and W have the vectors, by the contract.
        let (elements, weights) = unsafe {
            let of_row = |row| T::load::<WIDTH>(of_k.offset_rows(row, self.row_bytes), 0);
            let of_column = |column| T::load::<WIDTH>(column, k as usize);
            (self.rows.map(of_row), self.w.map(of_column))
        };
        unroll!(part in 0..8 {
            if part < WIDTH {
                sums = array::from_fn(|i| {
                    array::from_fn(|j| {
                        let weight = T::get(&weights[j], part);
                        T::get(&elements[i], part).mul_add(weight, sums[i][j])
                    })
                });
            }
        });
        sums
    }
}

const _: () = assert!(ROWS == 4);
