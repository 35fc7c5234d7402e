//! Products of eight rows of 16 features with 16 columns of weights by a warp, for [`classify`](crate::classify) and
//! [`aggregate`](crate::aggregate).
//!
//! Tensor cores compute the transposed product, 16 columns of W by eight rows of X. With `g = lane / 4` and
//! `t = lane % 4`, a lane holds features 4t to 4t + 3 of row g before it. In f64, step q takes feature 4t + q of each
//! lane. In f32 a step takes two: step s takes 4t + 2s as its element t, and 4t + 2s + 1 as its element t + 4. So X
//! moves between no lanes, and [`pack`] puts W into the same order. After it the lane holds columns g and g + 8 of the
//! rows 2t and 2t + 1, so eight lanes have a row:
//!
//! ```text
//! X  row g     features 4t..4t+4         lane 4g + t
//! Y  row 2t    columns g, g+8            lane 4g + t        and the same columns of row 2t + 1
//! ```
//!
//! Elements of f32 are split into two tf32 numbers, as in `split_fragments` of XW. If that is not as exact as f32 for
//! the weights, plans do not use these products ([`WeightElement::can_multiply`]). If a sum of f32 is not finite, the
//! lanes compute the eight rows again on CUDA cores.

use core::array;
use cuda_std::mma;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_gemm::product::split_fragments::Tf32Parts;
#[cfg(not(target_arch = "nvptx64"))]
use warprow_kernels_gemm::product::split_fragments::{MAX_WEIGHT, split_is_exact};
use warprow_kernels_matrix::{Operand, unroll};

/// Rows that a warp multiplies together.
pub(crate) const ROWS: u32 = 8;

/// Lanes that hold the features of a row.
pub(crate) const LANES: u32 = 4;

/// Features of a lane.
pub(crate) const WIDTH: usize = 4;

/// Features of a row.
pub const FEATURES: usize = LANES as usize * WIDTH;

/// Columns of W that are multiplied together.
pub const COLUMNS: usize = 16;

/// How many of these columns a lane holds after the product, and how many rows.
pub(crate) const PAIR: usize = 2;

/// From the first of a lane's columns to the second.
pub(crate) const COLUMN_STRIDE: usize = COLUMNS / PAIR;

/// Weights that a lane loads at once: of two features, for two columns.
const LOAD: usize = 4;

/// Packed weights that all lanes load at once.
const WEIGHTS_OF_LOAD: usize = LOAD * WARP_SIZE as usize;

/// Packed weights of 16 columns.
pub(crate) const WEIGHTS_OF_COLUMNS: usize = 2 * WEIGHTS_OF_LOAD;

/// The weights of a lane for 16 columns, in two loads.
pub type Loaded<T> = [[T; LOAD]; 2];

/// An element type of features and weights.
pub trait WeightElement: Operand<Sum = Self> + Real {
    /// Whether tensor cores are as exact as CUDA cores for all numbers.
    const IS_EXACT: bool;

    /// Whether a product with these weights, a row for each of so many features, is as exact here as in `gemm`.
    #[cfg(not(target_arch = "nvptx64"))]
    fn can_multiply(weights: impl Iterator<Item = Self>, features: usize) -> bool;

    /// The lane's part of the product of eight rows with 16 columns of W, on tensor cores: two rows of two columns. All
    /// lanes of the warp call it.
    #[doc(hidden)]
    fn multiply(row: [Self; WIDTH], weights: Loaded<Self>) -> [[Self; PAIR]; PAIR];
}

impl WeightElement for f32 {
    const IS_EXACT: bool = false;

    #[cfg(not(target_arch = "nvptx64"))]
    fn can_multiply(weights: impl Iterator<Item = f32>, features: usize) -> bool {
        features == FEATURES && split_is_exact(weights, FEATURES as u32, MAX_WEIGHT)
    }

    #[inline(always)]
    fn multiply(row: [f32; WIDTH], weights: Loaded<f32>) -> [[f32; PAIR]; PAIR] {
        multiply_parts(
            row,
            weights.map(|load| Tf32Parts::of(load.map(f32::to_bits))),
        )
    }
}

impl WeightElement for f64 {
    const IS_EXACT: bool = true;

    #[cfg(not(target_arch = "nvptx64"))]
    fn can_multiply(_: impl Iterator<Item = f64>, features: usize) -> bool {
        (1..=FEATURES).contains(&features)
    }

    #[inline(always)]
    fn multiply(row: [f64; WIDTH], weights: Loaded<f64>) -> [[f64; PAIR]; PAIR] {
        let mut of_columns = [[0.0; PAIR]; PAIR];
        unroll!(q in 0..4 {
            unroll!(column in 0..2 {
                let weight = weights[q / 2][q % 2 * PAIR + column];
                of_columns[column] = mma::m8n8k4(weight, row[q], of_columns[column]);
            });
        });
        let [[a, b], [c, d]] = of_columns;
        [[a, c], [b, d]]
    }
}

/// The weights in the order of the lanes, for a number of columns that is a multiple of 16: `at` gives the weight of a
/// feature in a column, and 0 where there is none.
#[cfg(not(target_arch = "nvptx64"))]
pub fn pack<T>(columns: usize, at: impl Fn(usize, usize) -> T) -> Vec<T> {
    let weights = (0..columns * FEATURES).map(|place| {
        let (block, place) = (place / WEIGHTS_OF_COLUMNS, place % WEIGHTS_OF_COLUMNS);
        let (half, lane, place) = (
            place / WEIGHTS_OF_LOAD,
            place % WEIGHTS_OF_LOAD / LOAD,
            place % LOAD,
        );
        let (q, column) = (2 * half + place / PAIR, place % PAIR);
        let (g, t) = (lane / LANES as usize, lane % LANES as usize);
        at(WIDTH * t + q, block * COLUMNS + column * COLUMN_STRIDE + g)
    });
    weights.collect()
}

/// Loads the lane's weights for 16 columns.
///
/// # Safety
///
/// They are 16 columns from [`pack`], which start at a multiple of 16 bytes.
#[inline(always)]
pub(crate) unsafe fn load<T: Real>(packed: Global<T>) -> Loaded<T> {
    let place = warp::lane_id() as usize * LOAD;
    // SAFETY: there are two loads for each lane.
    unsafe {
        [
            packed.load_array(place),
            packed.load_array(WEIGHTS_OF_LOAD + place),
        ]
    }
}

/// [`WeightElement::multiply`] with weights that are split.
#[inline(always)]
pub(crate) fn multiply_parts(row: [f32; WIDTH], w: [Tf32Parts; 2]) -> [[f32; PAIR]; PAIR] {
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

/// Whether any element of the warp's product is infinite or NaN. `probe` is the sum of the lane's elements, each times
/// 0: it is 0 if all are finite, else NaN.
///
/// All lanes of the warp call it.
#[inline(always)]
pub(crate) fn is_not_finite<T: Real>(probe: T) -> bool {
    warp::any(FULL_MASK, probe != T::ZERO)
}

/// [`WeightElement::multiply`] on CUDA cores; `packed` are 16 columns.
///
/// # Safety
///
/// The weights are from [`pack`], and start at a multiple of 16 bytes. All lanes of the warp call it.
#[inline(always)]
pub(crate) unsafe fn multiply_on_cuda_cores<T: Real>(
    row: [T; WIDTH],
    packed: Global<T>,
) -> [[T; PAIR]; PAIR] {
    let (g, t) = (warp::lane_id() / LANES, warp::lane_id() % LANES);
    let mut product = [[T::ZERO; PAIR]; PAIR];
    // It is rarely needed: `opaque`, so that the compiler does not unroll the loop.
    let (mut owner, end) = (0, thread::opaque(LANES));
    while owner < end {
        thread::keep_rolled();
        unroll!(q in 0..4 {
            let of_lane = (g * LANES + owner) as usize * LOAD;
            let place = q / 2 * WEIGHTS_OF_LOAD + of_lane + q % 2 * PAIR;
            // SAFETY: it is the place of a lane's weights for its feature q.
            let weights: [T; PAIR] = unsafe { packed.load_array(place) };
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
