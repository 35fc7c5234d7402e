//! Entries whose value is zero, left out of a product that has been computed.

use crate::products::lanes::warp_of_grid;
use crate::products::operands::Structure;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block.
const BLOCK: u32 = 256;

/// The launch of these kernels, a warp a row.
pub fn launch(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK / WARP_SIZE), BLOCK)
}

/// The entries of each row whose value is not zero, counted; a NaN is none. A warp a row.
///
/// # Safety
///
/// `c` is a matrix of `rows` rows with these values, `counts` has a number for each row.
#[kernel(name = "spgemm_count_nonzeros", T = [f32, f64])]
pub unsafe fn count_nonzeros<T: Real>(
    rows: u32,
    c: Structure,
    values: Global<T>,
    counts: GlobalMut<u32>,
) {
    let (row, lane) = (warp_of_grid(), warp::lane_id());
    if row >= rows {
        return;
    }
    // SAFETY: a row of C.
    unsafe {
        let (start, end) = c.row(row);
        let mut count = 0;
        let mut k = start + lane;
        while k < end {
            count += u32::from(values.load(k as usize) != T::ZERO);
            k += WARP_SIZE;
        }
        let count = warp::reduce_add(FULL_MASK, count);
        if lane == 0 {
            counts.store(row as usize, count);
        }
    }
}

/// The entries whose value is not zero, one beside the other. A warp a row.
///
/// # Safety
///
/// As for [`count_nonzeros`], `row_ptr` the sums of its counts, `col_idx` and `kept` with room for all entries counted.
#[kernel(name = "spgemm_keep_nonzeros", T = [f32, f64])]
pub unsafe fn keep_nonzeros<T: Real>(
    rows: u32,
    c: Structure,
    values: Global<T>,
    row_ptr: Global<u32>,
    col_idx: GlobalMut<u32>,
    kept: GlobalMut<T>,
) {
    let (row, lane) = (warp_of_grid(), warp::lane_id());
    if row >= rows {
        return;
    }
    // SAFETY: a row of C, as many entries of it as were counted.
    unsafe {
        let (start, end) = c.row(row);
        let mut to = row_ptr.load(row as usize);
        let mut first = start;
        while first < end {
            let k = first + lane;
            let value = if k < end {
                values.load(k as usize)
            } else {
                T::ZERO
            };
            let keeps = warp::ballot(FULL_MASK, value != T::ZERO);
            if value != T::ZERO {
                let place = (to + (keeps & ((1 << lane) - 1)).count_ones()) as usize;
                col_idx.store(place, c.columns.load(k as usize));
                kept.store(place, value);
            }
            to += keeps.count_ones();
            first += WARP_SIZE;
        }
    }
}
