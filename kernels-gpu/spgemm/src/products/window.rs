//! The part of a row of B that lies in a window of columns.

use core::array;
use cuda_std::prelude::*;

/// Probes of a step: they cut what is left in four.
const PROBES: usize = 3;

/// Of the positions from one to before another in `col_idx`, ascending there, the first ones whose columns are those of
/// `columns` or greater. Both are searched for at once, by quarters: six loads are in flight, and half as many steps as with
/// halves depend on each other.
///
/// # Safety
///
/// They are positions of columns, the first not after the second.
#[inline(always)]
pub unsafe fn positions(
    col_idx: Global<u32>,
    [start, end]: [u32; 2],
    columns: [u32; 2],
) -> [u32; 2] {
    let mut found = [start; 2];
    let mut left = end - start;
    // How many of the first `count` of three columns `step` apart are below one.
    let below = |at: u32, step: u32, count: u32, column: u32| {
        let are_below: [u32; PROBES] = array::from_fn(|probe| {
            if probe as u32 >= count {
                return 0;
            }
            let position = at + (probe as u32 + 1) * step - 1;
            // SAFETY: a position between the two.
            u32::from(unsafe { col_idx.load(position as usize) } < column)
        });
        are_below[0] + are_below[1] + are_below[2]
    };
    while left > PROBES as u32 {
        let step = left / 4;
        found = array::from_fn(|i| found[i] + step * below(found[i], step, 3, columns[i]));
        // Of the last part there is the most.
        left -= 3 * step;
    }
    array::from_fn(|i| found[i] + below(found[i], 1, left, columns[i]))
}

/// A bit for each of the 32 columns from `origin` on that lies in the interval, both ends included.
#[inline(always)]
pub(crate) fn bits((first, last): (u32, u32), origin: u32) -> u32 {
    let end = origin.saturating_add(31);
    if first > end || last < origin || first > last {
        return 0;
    }
    let low = first.max(origin) - origin;
    let high = last.min(end) - origin;
    (u32::MAX >> (31 - (high - low))) << low
}
