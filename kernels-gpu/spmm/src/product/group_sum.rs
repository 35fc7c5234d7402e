//! The sum of a row by a group of lanes: for few features, with X in global or shared memory.
//!
//! Within the group, a nonzero has as many lanes as its row of X has vectors. Each lane loads the columns and values of
//! its own nonzeros, four or eight rounds (`COUNT`) at a time:
//!
//! ```text
//! 8 features (2 lanes of 4), a group of 8 lanes, a row of 7 nonzeros
//!
//! lane                 0 1   2 3   4 5   6 7
//! nonzeros              0     1     2     3      loaded together
//!                       4     5     6     -
//! ```

use crate::product::lane_columns::LaneVectors;
use crate::product::reduction::{Reducer, Reduction};
use core::array;
use warprow_kernels_matrix::{Csr, Operand};

/// Nonzeros of a lane that are loaded together.
pub const LOADS: usize = 4;

/// Neighbouring features that a lane has: the widest vector whose width divides `multiple`, the number of features or
/// [that of a shape](crate::LaunchShape::vector_multiple).
pub(in crate::product) fn width<T: Operand>(multiple: u32, reduction: Reduction) -> u32 {
    let widths: &[u32] = match (reduction.is_extremum(), size_of::<T>()) {
        (true, _) => &[1],
        (false, 4) => &[4, 2, 1],
        (false, 8) => &[2, 1],
        (false, _) => &[4, 1],
    };
    let fits = |width: &&u32| multiple.is_multiple_of(**width);
    *widths.iter().find(fits).unwrap_or(&1)
}

/// The lane's part of the reduction of a row: of every nonzero that it loads, its vector of the row of X. The group
/// loads `step` nonzeros at a time, of which the lane's is number `first`.
///
/// # Safety
///
/// The nonzeros from `start` up to `end` are A's, whose columns are rows of X; rows of X begin at multiples of `WIDTH`
/// elements. `step` is at least 1, and `first` below it.
#[allow(
    clippy::needless_range_loop,
    reason = "iterators over the arrays are not unrolled, and put them into local memory"
)]
#[inline(always)]
pub(in crate::product) unsafe fn of_lane<
    T: Operand,
    R: Reducer,
    const WIDTH: usize,
    const COUNT: usize,
>(
    (a, x): (&Csr<T::Sum>, impl LaneVectors<T>),
    (step, first): (u32, u32),
    (start, end): (u32, u32),
) -> [T::Sum; WIDTH] {
    let value_bytes = size_of::<T::Sum>() as u32;
    let mut sum = [R::start(); WIDTH];
    if first >= end - start {
        return sum;
    }
    let mut position = start + first;
    loop {
        // The lane's nonzeros begin at `position`, and the row has so many from there on: at least one. A load past the
        // row's end loads its last nonzero again, whose bytes are there already, and the product is left out.
        let left = end - position;
        // SAFETY: the offsets from `position` are below `left`, so these are nonzeros of the row.
        unsafe {
            let nonzeros: [u32; COUNT] =
                array::from_fn(|i| position + (i as u32 * step).min(left - 1));
            let cols: [u32; COUNT] =
                array::from_fn(|i| a.col_idx.offset_rows(nonzeros[i], 4).load(0));
            let values: [T::Sum; COUNT] =
                array::from_fn(|i| a.values.offset_rows(nonzeros[i], value_bytes).load(0));
            let vectors: [T::Vector; COUNT] = array::from_fn(|i| x.vector(cols[i]));
            for i in 0..COUNT {
                if i as u32 * step < left {
                    sum = array::from_fn(|k| R::take(values[i], T::get(&vectors[i], k), sum[k]));
                }
            }
        }
        if left <= COUNT as u32 * step {
            return sum;
        }
        position += COUNT as u32 * step;
    }
}
