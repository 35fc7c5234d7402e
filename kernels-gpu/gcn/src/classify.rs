//! The last product with weights, bias and LogSoftmax in one launch: `Y = LogSoftmax(X W + b)`, X with few features.
//!
//! As operators of their own they write the product and read it again. Here a warp has eight rows of it in registers.
//! Tensor cores compute the transposed product, 16 columns of W by eight rows. Before it, the lane with `g = lane / 4`
//! and `t = lane % 4` holds features 4t to 4t + 3 of row g. So if feature 4t + q is multiplied as number t of its
//! instruction, no element moves between lanes: only W is in the order of [`pack`]. After it the lane holds columns g
//! and g + 8 of the rows 2t and 2t + 1, and eight lanes a row:
//!
//! ```text
//! X  row g     features 4t..4t+4         lane 4g + t
//! Y  row 2t    columns g, g+8            lane 4g + t        and the same columns of row 2t + 1
//! ```
//!
//! Elements are split into two tf32 numbers, as in `split_fragments` of XW. Where that is not as exact as f32, the
//! lanes compute the product on CUDA cores: by the flag [`unsplit`](Classes::unsplit) for all rows, and for eight rows
//! if one of their results is not finite.
//!
//! An element of X is read once, and one of Y written once.
//!
//! When to use it: in f32, for up to 16 features and 64 classes.

use core::array;
use cuda_std::mma;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_gemm::product::split_fragments::Tf32Parts;
#[cfg(not(target_arch = "nvptx64"))]
use warprow_kernels_gemm::product::split_fragments::{MAX_WEIGHT, split_is_exact};
use warprow_kernels_log_softmax::ExpLn;
use warprow_kernels_matrix::{Dense, DenseMut, unroll};

/// Threads in a block.
const BLOCK: u32 = 128;

/// Rows that a warp multiplies together.
const ROWS: u32 = 8;

/// Rows of a warp: it loads the weights once for all of them.
const ROWS_OF_WARP: u32 = 4 * ROWS;

/// Lanes that hold the features of a row.
const LANES: u32 = 4;

/// Features of a lane.
const WIDTH: usize = 4;

/// Maximum number of features.
pub const MAX_FEATURES: u32 = LANES * WIDTH as u32;

/// Columns of W that tensor cores multiply together.
const COLUMNS: usize = 16;

/// How many of these columns a lane holds after the product, and how many rows.
const PAIR: usize = 2;

/// From the first of a lane's columns to the second.
const EIGHT: usize = COLUMNS / PAIR;

/// Weights that a lane loads at once: of two features, for two columns.
const LOAD: usize = 4;

/// Packed weights that the lanes load at once.
const OF_LOAD: usize = LOAD * WARP_SIZE as usize;

/// Packed weights of 16 columns.
const OF_COLUMNS: usize = 2 * OF_LOAD;

/// The weights, and what follows the product.
#[repr(C)]
#[derive(KernelParam)]
pub struct Classes<T> {
    /// The weights, [packed](pack).
    pub packed: Global<T>,
    /// Added to the product: an element for each packed column.
    pub bias: Global<T>,
    /// Whether two tf32 numbers are not exact enough for the weights: 0 or 1.
    pub unsplit: u32,
    /// Whether all rows of X start at a multiple of 16 bytes and have a multiple of four elements: 0 or 1.
    pub x_in_vectors: u32,
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

/// Whether two tf32 numbers are not exact enough for these weights of so many features.
#[cfg(not(target_arch = "nvptx64"))]
pub fn is_unsplit(weights: impl Iterator<Item = f32>, features: u32) -> bool {
    !split_is_exact(weights, features, MAX_WEIGHT)
}

/// The number of columns that the packed weights have for so many.
#[cfg(not(target_arch = "nvptx64"))]
pub fn packed_columns(columns: usize) -> usize {
    columns.next_multiple_of(COLUMNS).max(3 * COLUMNS)
}

/// The weights in the order of the lanes, for so many columns: `at` gives the weight of a feature in a column, and 0
/// where there is none.
#[cfg(not(target_arch = "nvptx64"))]
pub fn pack<T>(columns: usize, at: impl Fn(usize, usize) -> T) -> Vec<T> {
    let places = packed_columns(columns) * MAX_FEATURES as usize;
    let weights = (0..places).map(|place| {
        let (block, place) = (place / OF_COLUMNS, place % OF_COLUMNS);
        let (half, lane, place) = (place / OF_LOAD, place % OF_LOAD / LOAD, place % LOAD);
        let (q, column) = (2 * half + place / PAIR, place % PAIR);
        let (g, t) = (lane / LANES as usize, lane % LANES as usize);
        at(WIDTH * t + q, block * COLUMNS + column * EIGHT + g)
    });
    weights.collect()
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
/// `x` is m x k, k at most [`MAX_FEATURES`]; `y` is m x n, n at least 1 and at most `N` times 16. They do not overlap.
/// The weights have k rows and n columns, packed for `N` times 16. The launch is [`launch`]'s for m rows.
#[kernel(name = "gcn_classify", N = [3, 4])]
pub unsafe fn classify<const N: usize>(x: Dense<f32>, y: DenseMut<f32>, classes: Classes<f32>) {
    let first = thread::index_1d() / u64::from(WARP_SIZE) * u64::from(ROWS_OF_WARP);
    if first >= u64::from(x.rows) {
        return;
    }
    let first = first as u32;
    let lane = warp::lane_id() as usize;
    let (g, t) = (lane as u32 / LANES, lane as u32 % LANES);
    let column = |block: usize, k: usize| block * COLUMNS + k * EIGHT + g as usize;
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
                unroll!(half in 0..2 {
                    let place = block * OF_COLUMNS + half * OF_LOAD + lane * LOAD;
                    let loaded: [f32; LOAD] = classes.packed.load_array(place);
                    weights[block % N][half] = Tf32Parts::of(loaded.map(f32::to_bits));
                });
            }
        });
        let mut row = features(&x, first.saturating_add(g), classes.x_in_vectors != 0);
        let end = x.rows.min(first.saturating_add(ROWS_OF_WARP));
        let mut start = first;
        while start < end {
            thread::keep_rolled();
            // In flight while these rows are computed.
            let next = start.saturating_add(ROWS);
            let next_row = features(&x, next.saturating_add(g), classes.x_in_vectors != 0);
            let mut sums = [[[0.0; PAIR]; N]; PAIR];
            let mut probe = 0.0;
            unroll!(block in 0..4 {
                if const { block < N } {
                    let product = multiply(row, weights[block % N]);
                    unroll!(i in 0..2 {
                        sums[i][block % N] = product[i];
                        // NaN if an element is not finite: infinity times 0 is NaN.
                        probe = product[i][0].mul_add(0.0, product[i][1].mul_add(0.0, probe));
                    });
                }
            });
            if classes.unsplit != 0 || warp::any(FULL_MASK, probe != 0.0) {
                unroll!(block in 0..4 {
                    if const { block < N } {
                        let packed = classes.packed.offset(block * OF_COLUMNS);
                        let product = product_on_cuda_cores(row, packed, x.cols);
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

/// The lane's four features of a row of X; zeros past the last row and feature.
///
/// # Safety
///
/// X is what its fields say, and starts at a multiple of 16 bytes, as all its rows do, if they are read `in_vectors`.
#[inline(always)]
unsafe fn features(x: &Dense<f32>, row: u32, in_vectors: bool) -> [f32; WIDTH] {
    let first = warp::lane_id() % LANES * WIDTH as u32;
    let mut features = [0.0; WIDTH];
    if row < x.rows {
        let row = x.data.offset(row as usize * x.stride as usize);
        // SAFETY: the row is X's, and features are checked.
        unsafe {
            if in_vectors {
                if first < x.cols {
                    features = row.load_array(first as usize);
                }
            } else {
                unroll!(k in 0..4 {
                    if first + (k as u32) < x.cols {
                        features[k] = row.load(first as usize + k);
                    }
                });
            }
        }
    }
    features
}

/// The lane's part of the product of eight rows with 16 columns of W: two rows of two columns.
#[inline(always)]
fn multiply(row: [f32; WIDTH], w: [Tf32Parts; 2]) -> [[f32; PAIR]; PAIR] {
    let x = Tf32Parts::of(row.map(f32::to_bits));
    let mut sums = [0.0; 4];
    unroll!(half in 0..2 {
        let of_half = |of: [u32; 4]| [of[2 * half], of[2 * half + 1]];
        sums = mma::m16n8k8_tf32(w[half].low, of_half(x.high), sums);
        sums = mma::m16n8k8_tf32(w[half].high, of_half(x.low), sums);
    });
    unroll!(half in 0..2 {
        let high = [x.high[2 * half], x.high[2 * half + 1]];
        sums = mma::m16n8k8_tf32(w[half].high, high, sums);
    });
    [[sums[0], sums[2]], [sums[1], sums[3]]]
}

/// The same in f32, on CUDA cores: `packed` are the weights of 16 columns, for so many features.
///
/// # Safety
///
/// The weights are [packed](pack). All lanes of the warp call it.
#[inline(always)]
unsafe fn product_on_cuda_cores(
    row: [f32; WIDTH],
    packed: Global<f32>,
    features: u32,
) -> [[f32; PAIR]; PAIR] {
    let (g, t) = (warp::lane_id() / LANES, warp::lane_id() % LANES);
    let mut product = [[0.0; PAIR]; PAIR];
    let mut owner = 0;
    while owner * (WIDTH as u32) < features {
        thread::keep_rolled();
        unroll!(q in 0..4 {
            let place = q / 2 * OF_LOAD + (g * LANES + owner) as usize * LOAD + q % 2 * PAIR;
            // SAFETY: it is the place of a lane's weights for its feature q.
            let weights: [f32; PAIR] = unsafe { packed.load_array(place) };
            unroll!(i in 0..2 {
                let of_row = (PAIR as u32 * t + i as u32) * LANES + owner;
                let element = warp::shfl_idx(FULL_MASK, row[q], of_row, WARP_SIZE);
                product[i] = array::from_fn(|k| element.mul_add(weights[k], product[i][k]));
            });
        });
        owner += 1;
    }
    product
}

/// LogSoftmax of the sums of a row, after the bias is added. The row's lanes have the same `t`.
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
