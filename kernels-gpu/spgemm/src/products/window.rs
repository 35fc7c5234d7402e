//! Windows of columns: the part of a row of B that lies in one, and a run of columns as bits.

use core::array;
use cuda_std::prelude::*;

/// Probes of a search step: they divide the remaining interval into four parts.
const PROBES: usize = 3;

/// Two lower bounds at once: for each of `columns`, the first position from `start` to before `end`
/// whose column is not less, or `end`.
///
/// The search goes by quarters. Six loads are in flight, and half as many steps depend on each
/// other as in a search by halves.
///
/// # Safety
///
/// `start <= end`, and `col_idx` holds ascending columns from `start` to before `end`.
#[inline(always)]
pub unsafe fn lower_bounds(
    col_idx: Global<u32>,
    [start, end]: [u32; 2],
    columns: [u32; 2],
) -> [u32; 2] {
    let mut found = [start; 2];
    let mut left = end - start;
    // Of `count` columns that are `step` positions apart, from `at` on: how many are below
    // `column`.
    let below = |at: u32, step: u32, count: u32, column: u32| {
        let are_below: [u32; PROBES] = array::from_fn(|probe| {
            if probe as u32 >= count {
                return 0;
            }
            let position = at + (probe as u32 + 1) * step - 1;
            // SAFETY: the probed positions lie before `found + left`, which is at most `end`.
            u32::from(unsafe { col_idx.load(position as usize) } < column)
        });
        are_below[0] + are_below[1] + are_below[2]
    };
    while left > PROBES as u32 {
        let step = left / 4;
        found = array::from_fn(|i| found[i] + step * below(found[i], step, 3, columns[i]));
        // The last part is the largest: it has the remainder of the division.
        left -= 3 * step;
    }
    array::from_fn(|i| found[i] + below(found[i], 1, left, columns[i]))
}

/// The columns from `first` to `last`, both included, as bits: bit i stands for column `origin +
/// i`, for 32 columns.
#[inline(always)]
pub(crate) fn interval_bits((first, last): (u32, u32), origin: u32) -> u32 {
    let end = origin.saturating_add(31);
    if first > end || last < origin || first > last {
        return 0;
    }
    let low = first.max(origin) - origin;
    let high = last.min(end) - origin;
    (u32::MAX >> (31 - (high - low))) << low
}
