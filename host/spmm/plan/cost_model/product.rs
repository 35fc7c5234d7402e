//! A product with a candidate: what the formulas of all resources need.

use super::CostModel;
use super::bins::BinnedRows;
use super::candidate::Candidate;
use super::constants::Constants;
use super::gpu::Gpu;
use super::tile::Tile;
use crate::spmm::plan::statistics::Statistics;
use warprow_kernels::spmm::SpmmKernel;
use warprow_kernels::spmm::product::group_sum;

/// By how many standard deviations the longest of a warp's rows exceeds the mean, if a group has so many lanes: what is
/// expected of 16, 8, 4 and 2 normally distributed lengths.
fn deviations(group: u32) -> f64 {
    match group {
        2 => 1.77,
        4 => 1.42,
        8 => 1.03,
        16 => 0.56,
        _ => 0.0,
    }
}

/// A product with a candidate on a GPU.
pub struct Product<'a> {
    pub gpu: &'a Gpu,
    pub constants: &'a Constants,
    pub a: &'a Statistics,
    pub candidate: &'a Candidate,
    /// The rows in bins, for `row_bins` alone.
    pub binned: Option<BinnedRows>,
    pub tile: Tile,
    pub rows: f64,
    pub nonzeros: f64,
    /// Mean number of nonzeros of a row.
    pub mean_row: f64,
    /// Columns that have nonzeros.
    pub used_columns: f64,
    /// Blocks of columns.
    pub blocks: f64,
    /// Rows of all blocks of columns.
    pub row_ends: f64,
    /// Lanes that take a nonzero together.
    pub lanes: f64,
    /// Lanes that take a row or a task together.
    pub group: f64,
}

impl<'a> Product<'a> {
    /// The product of a matrix, which must have nonzeros.
    pub fn new(model: &'a CostModel, a: &'a Statistics, candidate: &'a Candidate) -> Self {
        let gpu = &model.gpu;
        let (rows, nonzeros) = (f64::from(a.rows), f64::from(a.nonzeros));
        let is_binned = candidate.kernel == SpmmKernel::RowBins;
        let blocks = f64::from(candidate.blocks);
        Self {
            gpu,
            constants: &model.constants,
            a,
            candidate,
            binned: is_binned.then(|| BinnedRows::of(gpu, a, candidate)),
            tile: Tile::of(candidate),
            rows,
            nonzeros,
            mean_row: nonzeros / rows,
            used_columns: a.columns.counts.used().min(f64::from(a.cols)),
            blocks,
            row_ends: rows * blocks,
            lanes: f64::from(candidate.lanes),
            group: f64::from(candidate.group),
        }
    }

    /// Whether the candidate has this kernel.
    pub fn has_kernel(&self, kernel: SpmmKernel) -> bool {
        self.candidate.kernel == kernel
    }

    /// Cycles of all multiprocessors in a second.
    pub fn cycles_per_second(&self) -> f64 {
        self.gpu.multiprocessors * self.gpu.clock
    }

    /// Bytes of a column and a value of A.
    pub fn nonzero_bytes(&self) -> f64 {
        self.candidate.row.nonzero_bytes()
    }

    /// The batches of nonzeros that a group of `row_groups` loads for a row. The last one is half full in the mean.
    pub fn batches(&self, length: f64) -> f64 {
        let batch = self.group / self.lanes * group_sum::LOADS as f64;
        length / batch + 0.5
    }

    /// The expected length of the longest row of a warp of `row_groups`, for which its other groups wait.
    pub fn longest_of_warp(&self) -> f64 {
        self.mean_row * (1.0 + deviations(self.candidate.group) * self.a.variation())
    }
}
