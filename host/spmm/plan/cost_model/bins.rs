//! What rows in bins cost, by how long they are.

use super::candidate::Candidate;
use super::gpu::Gpu;
use crate::spmm::plan::statistics::Statistics;
use crate::spmm::product::bin_sizes::{
    GroupSizes, KernelWarps, RowLengths, log_longest, resident_warps,
};

/// Rows, or parts of rows, that a warp takes at a time, and what it does for them.
#[derive(Clone, Copy, Debug)]
pub struct BinnedRows {
    /// Warps that take them, if none takes more than it has lanes for.
    pub warps: f64,
    /// Nonzeros of a lane that are loaded together: a batch.
    pub loads: f64,
    /// Batches of nonzeros that these warps load. The last one of a row is half full in the mean.
    pub batches: f64,
    /// Batches of the longest row that is not cut, or of a part.
    pub longest: f64,
    /// Loads of columns. A group loads one column for each nonzero that it takes at a time.
    pub column_loads: f64,
}

impl BinnedRows {
    /// Those of a matrix.
    pub fn of(gpu: &Gpu, a: &Statistics, candidate: &Candidate) -> Self {
        let lanes = f64::from(candidate.lanes);
        let multiprocessors = gpu.multiprocessors as u32;
        let resident_warps = resident_warps(multiprocessors);
        let lengths = RowLengths {
            rows: a.rows,
            nonzeros: a.nonzeros,
            longest: Some(a.longest_row),
        };
        let log_longest = log_longest(lengths, resident_warps, candidate.lanes);
        let warps = match candidate.has_shared_x {
            true => KernelWarps::with_shared_x(multiprocessors),
            false => KernelWarps::new(multiprocessors),
        };
        let longest = 2.0_f64.powi(log_longest as i32);
        let of_warp = |lanes_of_group: f64| lanes_of_group / 32.0;
        let batches =
            |nonzeros: f64, group: f64| nonzeros * lanes / (group * warps.loads as f64) + 0.5;
        let is_cut = |rows: f64, nonzeros: f64| nonzeros / rows > longest;
        let power = |above| u32::try_from(above).unwrap_or(u32::MAX);
        let cut = a.lengths.iter();
        let cut = cut.filter(|&(_, rows, nonzeros)| is_cut(rows, nonzeros));
        let parts = cut.map(|(_, _, nonzeros)| nonzeros / longest).sum();
        let uncut = a.lengths.iter().rev();
        let uncut = uncut.filter(|&(_, rows, nonzeros)| !is_cut(rows, nonzeros));
        let uncut = uncut.map(|(above, rows, _)| (power(above), rows));
        let sizes = GroupSizes::new(candidate.lanes, warps, (parts, longest), uncut);
        let rows = f64::from(a.rows);
        let mut found = Self {
            warps: (rows - a.lengths.used()).max(0.0) * of_warp(lanes),
            loads: warps.loads as f64,
            batches: 0.0,
            longest: 0.0,
            column_loads: 0.0,
        };
        for (above, rows, nonzeros) in a.lengths.iter() {
            let above = power(above);
            let (items, mean, most, group) = match is_cut(rows, nonzeros) {
                true => (nonzeros / longest, longest, longest, 32),
                false => (
                    rows,
                    nonzeros / rows,
                    f64::from(above),
                    sizes.of_rows_below(above),
                ),
            };
            let group = f64::from(group);
            let most = most.min(f64::from(a.longest_row));
            found.longest = found.longest.max(batches(most, group));
            found.warps += items * of_warp(group);
            found.column_loads += items * mean * lanes / group;
            found.batches += items * of_warp(group) * batches(mean, group);
        }
        found
    }
}
