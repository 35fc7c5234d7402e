//! Dropping entries whose value is zero, after a product has been computed: count per row, scan,
//! copy.

use crate::products::lanes::warp_of_grid;
use crate::products::operands::OutputPattern;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};

/// Threads in a block.
const BLOCK: u32 = 256;

/// The launch of these kernels, a warp per row.
pub fn launch(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK / WARP_SIZE), BLOCK)
}

/// `counts[r]`, the number of entries of row r whose value is not zero. A NaN counts. A warp takes
/// a row; an entry costs its value.
///
/// # Safety
///
/// `c` is a pattern of `rows` rows (see [`OutputPattern`]), `values` has its values, `counts` room
/// for a number per row. The launch is [`launch`]'s.
#[kernel(name = "spgemm_count_nonzeros", T = [f32, f64])]
pub unsafe fn count_nonzeros<T: Real>(
    rows: u32,
    c: OutputPattern,
    values: Global<T>,
    counts: GlobalMut<u32>,
) {
    let (row, lane) = (warp_of_grid(), warp::lane_id());
    if row >= rows {
        return;
    }
    // SAFETY: `row` is below `rows`, checked above.
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

/// Copies the entries whose value is not zero, without gaps. A warp takes a row; an entry costs 4
/// bytes and its value, read and written.
///
/// # Safety
///
/// As for [`count_nonzeros`]; `row_ptr` is the exclusive scan of its counts, `col_idx` and
/// `kept_values` have room for all counted entries.
#[kernel(name = "spgemm_keep_nonzeros", T = [f32, f64])]
pub unsafe fn keep_nonzeros<T: Real>(
    rows: u32,
    c: OutputPattern,
    values: Global<T>,
    row_ptr: Global<u32>,
    col_idx: GlobalMut<u32>,
    kept_values: GlobalMut<T>,
) {
    let (row, lane) = (warp_of_grid(), warp::lane_id());
    if row >= rows {
        return;
    }
    // SAFETY: `row` is below `rows`, checked above, and as many entries are written as were
    // counted. All lanes reach the ballot, as `first` and `end` are the same for them.
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
                let position = (to + (keeps & ((1 << lane) - 1)).count_ones()) as usize;
                col_idx.store(position, c.columns.load(k as usize));
                kept_values.store(position, value);
            }
            to += keeps.count_ones();
            first += WARP_SIZE;
        }
    }
}
