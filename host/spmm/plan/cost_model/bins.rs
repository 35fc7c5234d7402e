//! What rows in bins cost, by how long they are.

use super::Gpu;
use super::candidate::Candidate;
use crate::spmm::plan::statistics::Statistics;
use crate::spmm::product::row_bins::log_longest;
use warprow_kernels::spmm::product::{group_sum, row_bins};

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
        let log_longest = log_longest(a.nonzeros, gpu.multiprocessors as u32, candidate.lanes);
        let longest = 2.0_f64.powi(log_longest as i32);
        let of_warp = |lanes_of_group: f64| lanes_of_group / 32.0;
        let batches = |nonzeros: f64, group: f64| {
            nonzeros * lanes / (group * f64::from(group_sum::LOADS)) + 0.5
        };
        let mut found = Self {
            warps: 0.0,
            batches: 0.0,
            longest: batches(longest.min(f64::from(a.longest_row)), 32.0),
            half_lines: f64::from(a.rows) * HALF_LINES_OF_ROW,
        };
        let mut empty_rows = f64::from(a.rows);
        for (above, rows, nonzeros) in a.lengths.iter() {
            empty_rows -= rows;
            found.half_lines += rows * HALF_LINES_OF_LISTS;
            let mean = nonzeros / rows;
            let (items, of_item, group) = if mean > longest {
                (nonzeros / longest, longest, 32)
            } else {
                let above = u32::try_from(above).unwrap_or(u32::MAX);
                (rows, mean, row_bins::group(candidate.lanes, above))
            };
            let group = f64::from(group);
            found.warps += items * of_warp(group);
            found.batches += items * of_warp(group) * batches(of_item, group);
        }
        found.warps += empty_rows.max(0.0) * of_warp(lanes);
        found
    }
}
