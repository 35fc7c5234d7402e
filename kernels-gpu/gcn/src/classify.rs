//! The last product with weights, bias and LogSoftmax in one launch: `Y = LogSoftmax(X W + b)`, X with few features.
//!
//! As operators of their own they write the product and read it again. Here a warp has eight rows of it in registers.
//! [`weights`](crate::weights) tells how it multiplies, and which lane has what.
//!
//! An element of X is read once, and one of Y written once.
//!
//! When to use it: in f32, for 16 features and up to 64 classes.

use crate::weights::{
    COLUMN_STRIDE, COLUMNS, LANES, PAIR, ROWS, WEIGHTS_OF_COLUMNS, WIDTH, is_not_finite, load,
    multiply_on_cuda_cores, multiply_parts,
};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_gemm::product::split_fragments::Tf32Parts;
use warprow_kernels_log_softmax::ExpLn;
use warprow_kernels_matrix::{Dense, DenseMut, unroll};

/// Threads in a block.
const BLOCK: u32 = 128;

/// Rows of a warp: it loads the weights once for all of them.
const ROWS_OF_WARP: u32 = 4 * ROWS;

/// The weights, and what follows the product.
#[repr(C)]
#[derive(KernelParam)]
pub struct Classes<T> {
    /// The weights, [packed](crate::weights::pack) for `N` times 16 columns.
    pub packed: Global<T>,
    /// Added to the product: an element for each packed column.
    pub bias: Global<T>,
}

impl<T> Clone for Classes<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Classes<T> {}

/// The arguments of the kernel.
#[cfg(not(target_arch = "nvptx64"))]
pub type Arguments<T> = (Dense<T>, DenseMut<T>, Classes<T>);

/// The kernel for so many columns; `None` if there are none, or more than 64.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle(columns: u32) -> Option<Kernel<Arguments<f32>>> {
    match columns {
        1..=48 => Some(classify::<3>()),
        49..=64 => Some(classify::<4>()),
        _ => None,
    }
}

/// The number of columns that the packed weights have for so many.
#[cfg(not(target_arch = "nvptx64"))]
pub fn packed_columns(columns: usize) -> usize {
    columns.next_multiple_of(COLUMNS).max(3 * COLUMNS)
}

/// The launch for so many rows.
pub fn launch(rows: u32) -> LaunchConfig {
    let warps = rows.div_ceil(ROWS_OF_WARP);
    LaunchConfig::new(warps.div_ceil(BLOCK / WARP_SIZE), BLOCK)
}

/// `Y[row, :] = LogSoftmax(X[row, :] W + b)`; a warp computes eight rows at a time.
///
/// # Safety
///
/// `x` is m x 16, `y` is m x n, n at least 1 and at most `N` times 16. They do not overlap. All rows of X and
/// the weights start at a multiple of 16 bytes. The weights are 16 x n, packed for `N` times 16 columns, as many as the
/// bias has. The launch is [`launch`]'s for m rows.
//
// With at most 128 registers, an sm_90 keeps four blocks; `N` = 4 would spill some.
#[kernel(name = "gcn_classify", N = [3], registers = 128; N = [4])]
pub unsafe fn classify<const N: usize>(x: Dense<f32>, y: DenseMut<f32>, classes: Classes<f32>) {
    let first = thread::index_1d() / u64::from(WARP_SIZE) * u64::from(ROWS_OF_WARP);
    if first >= u64::from(x.rows) {
        return;
    }
    let first = first as u32;
    let (g, t) = (warp::lane_id() / LANES, warp::lane_id() % LANES);
    let column = |block: usize, k: usize| block * COLUMNS + k * COLUMN_STRIDE + g as usize;
    let mut weights = [[Tf32Parts::ZERO; 2]; N];
    let mut bias = [[0.0; PAIR]; N];
    // SAFETY: the packed weights and the bias have `N` times 16 columns. Rows from `first` on are rows of X and Y,
    // those past the last row are not loaded or written. All lanes of the warp call what needs all of them.
    unsafe {
        unroll!(block in 0..4 {
            if const { block < N } {
                bias[block % N] = [
                    classes.bias.load(column(block, 0)),
                    classes.bias.load(column(block, 1)),
                ];
                let loaded = load(classes.packed.offset(block * WEIGHTS_OF_COLUMNS));
                weights[block % N] = loaded.map(|load| Tf32Parts::of(load.map(f32::to_bits)));
            }
        });
        let end = x.rows.min(first.saturating_add(ROWS_OF_WARP));
        let mut row = features(&x, first.saturating_add(g), end);
        let mut start = first;
        while start < end {
            thread::keep_rolled();
            // The next eight rows are loaded while these are computed.
            let next = start.saturating_add(ROWS);
            let next_row = features(&x, next.saturating_add(g), end);
            let mut sums = [[[0.0; PAIR]; N]; PAIR];
            let mut probe = 0.0;
            unroll!(block in 0..4 {
                if const { block < N } {
                    let product = multiply_parts(row, weights[block % N]);
                    unroll!(i in 0..2 {
                        sums[i][block % N] = product[i];
                        // NaN if an element is not finite: infinity times 0 is NaN.
                        probe = product[i][0].mul_add(0.0, product[i][1].mul_add(0.0, probe));
                    });
                }
            });
            if is_not_finite(probe) {
                unroll!(block in 0..4 {
                    if const { block < N } {
                        let packed = classes.packed.offset(block * WEIGHTS_OF_COLUMNS);
                        let product = multiply_on_cuda_cores(row, packed);
                        unroll!(i in 0..2 {
                            sums[i][block % N] = product[i];
                        });
                    }
                });
            }
            unroll!(i in 0..2 {
                let row = start.saturating_add(PAIR as u32 * t + i as u32);
                let results = log_softmax(sums[i], bias, column, y.cols as usize);
                if row < x.rows {
                    let row = y.data.offset(row as usize * y.stride as usize);
                    store(results, row, column, y.cols as usize);
                }
            });
            row = next_row;
            start = next;
        }
    }
}

/// The lane's four features of a row of X; zeros from row `end` on.
///
/// # Safety
///
/// X has 16 columns and at least `end` rows, which start at multiples of 16 bytes.
#[inline(always)]
unsafe fn features(x: &Dense<f32>, row: u32, end: u32) -> [f32; WIDTH] {
    if row >= end {
        return [0.0; WIDTH];
    }
    let first = (warp::lane_id() % LANES) as usize * WIDTH;
    // SAFETY: the row is X's.
    unsafe { x.data.load_array(row as usize * x.stride as usize + first) }
}

/// LogSoftmax of the sums of a row, after the bias is added. The row's lanes have the same `t`; all lanes of the warp
/// call it.
#[inline(always)]
fn log_softmax<const N: usize>(
    mut row: [[f32; PAIR]; N],
    bias: [[f32; PAIR]; N],
    column: impl Fn(usize, usize) -> usize,
    columns: usize,
) -> [[f32; PAIR]; N] {
    let mut max = f32::NEG_INFINITY;
    unroll!(block in 0..4 {
        unroll!(k in 0..2 {
            if const { block < N } {
                let element = &mut row[block % N][k];
                *element += bias[block % N][k];
                if column(block, k) < columns && *element > max {
                    max = *element;
                }
            }
        });
    });
    let mut distance = LANES;
    while distance < WARP_SIZE {
        max = max.max(warp::shfl_xor(FULL_MASK, max, distance, WARP_SIZE));
        distance *= 2;
    }
    let mut sum = 0.0;
    unroll!(block in 0..4 {
        unroll!(k in 0..2 {
            if const { block < N } {
                let element = &mut row[block % N][k];
                *element -= max;
                // Past the last column it is not used, and may be above 0.
                let power = ExpLn::exp(*element);
                sum += if column(block, k) < columns { power } else { 0.0 };
            }
        });
    });
    let mut distance = LANES;
    while distance < WARP_SIZE {
        sum += warp::shfl_xor(FULL_MASK, sum, distance, WARP_SIZE);
        distance *= 2;
    }
    let logarithm = ExpLn::ln(sum);
    row.map(|pair| pair.map(|element| element - logarithm))
}

/// Stores the lane's part of a row of `columns` columns.
///
/// # Safety
///
/// It is a row of Y.
#[inline(always)]
unsafe fn store<const N: usize>(
    results: [[f32; PAIR]; N],
    row: GlobalMut<f32>,
    column: impl Fn(usize, usize) -> usize,
    columns: usize,
) {
    unroll!(block in 0..4 {
        unroll!(k in 0..2 {
            if const { block < N } && column(block, k) < columns {
                // SAFETY: the row is Y's, and the column is checked.
                unsafe { row.store(column(block, k), results[block % N][k]) };
            }
        });
    });
}
