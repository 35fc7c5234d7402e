//! What rows in bins cost, by how long they are.

use super::Gpu;
use super::candidate::Candidate;
use crate::spmm::plan::statistics::Statistics;
use crate::spmm::product::bin_sizes::{GroupSizes, log_longest, resident_warps};
use warprow_kernels::spmm::product::group_sum;

/// Rows, or parts of rows, that a warp takes at a time, and what it does for them.
#[derive(Clone, Copy, Debug)]
pub struct BinnedRows {
    /// Warps that take them, if none takes more than it has lanes for.
    pub warps: f64,
    /// Batches of nonzeros that these warps load. The last one of a row is half full in the mean.
    pub batches: f64,
    /// Batches of the longest row that is not cut, or of a part.
    pub longest: f64,
    /// Halves of cache lines that rows touch, beside those of X.
    pub half_lines: f64,
}

/// Halves of cache lines of a row: of Y and of its item, which is loaded twice; and of its columns and values.
const HALF_LINES_OF_ROW: f64 = 3.0;
const HALF_LINES_OF_LISTS: f64 = 2.0;

impl BinnedRows {
    /// Those of a matrix.
    pub fn of(gpu: &Gpu, a: &Statistics, candidate: &Candidate) -> Self {
        let lanes = f64::from(candidate.lanes);
        let resident_warps = resident_warps(gpu.multiprocessors as u32);
        let log_longest = log_longest(a.rows, a.nonzeros, resident_warps, candidate.lanes);
        let longest = 2.0_f64.powi(log_longest as i32);
        let of_warp = |lanes_of_group: f64| lanes_of_group / 32.0;
        let batches = |nonzeros: f64, group: f64| {
            nonzeros * lanes / (group * f64::from(group_sum::LOADS)) + 0.5
        };
        let mut found = Self {
            warps: 0.0,
            batches: 0.0,
            longest: 0.0,
            half_lines: f64::from(a.rows) * HALF_LINES_OF_ROW,
        };
        let mut empty_rows = f64::from(a.rows);
        let classes = || {
            a.lengths.iter().map(|(above, rows, nonzeros)| {
                let above = u32::try_from(above).unwrap_or(u32::MAX);
                match nonzeros / rows > longest {
                    true => (None, nonzeros / longest, longest),
                    false => (Some(above), rows, nonzeros / rows),
                }
            })
        };
        let sizes = GroupSizes::new(candidate.lanes, resident_warps, |group| {
            let warps = classes()
                .map(|(above, items, _)| items * of_warp(f64::from(above.map_or(32, group))));
            warps.sum()
        });
        for (_, rows, _) in a.lengths.iter() {
            empty_rows -= rows;
            found.half_lines += rows * HALF_LINES_OF_LISTS;
        }
        for (above, items, of_item) in classes() {
            let group = f64::from(above.map_or(32, |above| sizes.of_rows_below(above)));
            let most = above
                .map_or(longest, f64::from)
                .min(f64::from(a.longest_row));
            found.longest = found.longest.max(batches(most, group));
            found.warps += items * of_warp(group);
            found.batches += items * of_warp(group) * batches(of_item, group);
        }
        found.warps += empty_rows.max(0.0) * of_warp(lanes);
        found
    }
}
