//! The cost model of a plan: it chooses the lanes of a sub-warp and the blocks of columns, and whether a row order
//! pays.
//!
//! The unit of cost is the time in which 128 bytes of X, a cache line, arrive from the L2 cache. A row of A costs
//!
//! - for each nonzero its bytes of X: more if they come from memory ([`L2_MISS_COST`]), less if they are in the L1
//!   cache ([`L1_HIT_DISCOUNT`]); the matrix's [`ColumnProfile`] gives the hit rates, as if each cache held the rows
//!   of X with the most nonzeros;
//! - for each nonzero and tile of 16-bit elements their conversion to f32 ([`CONVERSION_COST`]);
//! - for each tile of features the end of the row ([`ROW_END_COST`]);
//! - for each block of columns after the first, reading and writing a line of Y again ([`EXTRA_BLOCK_COST`]).
//!
//! Narrow tiles and many blocks raise the hit rates; wide tiles and few blocks write fewer results of rows. If
//! consecutive rows share columns ([`locality`]), fewer bytes come from memory, tiles are wide and tasks small. The
//! constants were fitted on an NVIDIA H200 to 26 R-MAT graphs with 64 to 512 features; docs/notes/spmm_plan.md has the
//! measurements.

use super::locality::{ColumnProfile, DistinctShares, NEIGHBOURS, locality};
use crate::csr::DevicePattern;
use crate::device::DeviceBuffer;
use crate::operand::{OperandError, row_bytes};
use crate::spmm::options::SpmmElement;
use warprow_kernels::spmm::product::tasks::ROW_STEPS;
use warprow_kernels::spmm::product::vector::{self, LaneCounts, passes};
use warprow_kernels::spmm::{EpilogueKind, ItemKind, Reduction, SpmmKernel};

/// The unit's bytes: a cache line.
pub const CACHE_LINE: f64 = 128.0;

/// Cost of a row's end in a tile of features: as much as four nonzeros' instructions.
const ROW_END_COST: f64 = 4.0;

/// The same where the rows are in another order than the caller's, and the kernel looks up which row of Y it is.
const ORDERED_ROW_END_COST: f64 = 4.5;

/// Cost of a line of Y for each block of columns after the first.
const EXTRA_BLOCK_COST: f64 = 4.0;

/// Cost of a nonzero's conversion of 16-bit elements to f32 in a tile of features.
const CONVERSION_COST: f64 = 0.4;

/// Additional cost of a line that comes from memory.
const L2_MISS_COST: f64 = 1.3;

/// Discount for a line in the L1 cache.
const L1_HIT_DISCOUNT: f64 = 0.4;

/// Discount for a line that a neighbouring row has just loaded, and that the L1 cache does not hold anyway.
const NEIGHBOUR_DISCOUNT: f64 = 0.2;

/// The same for [`in_step`](warprow_kernels::spmm::product::in_step), which takes neighbouring rows at the same time.
const NEIGHBOUR_DISCOUNT_IN_STEP: f64 = 0.4;

/// The share of the L2 cache that holds rows of X; A, Y, and lines that both of its halves hold take the rest.
const L2_SHARE_OF_X: f64 = 0.6;

/// Bytes of the L1 cache that hold rows of X.
const L1_BYTES_OF_X: f64 = 192.0 * 1024.0;

/// Maximum number of bytes of a row of X that a warp loads at a time.
const MAX_WARP_BYTES: f64 = 512.0;

/// Maximum number of bytes in a tile of a row of X.
const MAX_TILE_BYTES: f64 = 1024.0;

/// Hit rate of the L2 cache from which on it is not worth knowing how local the matrix is.
const FULL_HIT_RATE: f64 = 0.95;

/// [Locality](locality) below which consecutive rows share their columns.
const SHARING_BELOW: f64 = 0.6;

/// Rows of a task of a matrix whose consecutive rows share their columns.
const ROWS_OF_SHARING_TASK: f64 = 8.0;

/// Minimum mean number of nonzeros that a row has in a block of columns; with fewer, their results take most of the
/// time.
const MIN_NONZEROS_IN_BLOCK: f64 = 12.0;

/// Minimum gain in the L2 hit rate by further blocks. The estimate of smaller gains is too coarse.
const MIN_HIT_RATE_GAIN: f64 = 0.1;

/// Maximum number of blocks of columns.
const MAX_BLOCKS: u32 = 32;

/// Minimum speed-up, by the estimate, for which the rows are put into another order.
const MIN_SPEEDUP: f64 = 1.09;

/// The same where rows of X are whole cache lines of which most come from memory; the estimate is more exact there.
const MIN_SPEEDUP_FROM_MEMORY: f64 = 1.035;

/// The most that an order can do: no row shares columns with its neighbours before, and after it the distinct columns
/// are this part of the nonzeros.
const BEST_CASE: DistinctShares = DistinctShares {
    given: 1.0,
    ordered: 0.4,
};

/// Lanes of a sub-warp for one cache line, 16 bytes each.
const LANES_OF_LINE: u32 = 8;

/// A row of X, and the tiles in which sub-warps can load it.
#[derive(Clone, Copy, Debug)]
pub struct FeatureRow {
    bytes: u64,
    element_bytes: u64,
    /// Elements that a lane loads at a time.
    load_width: u32,
    /// The lanes that a sub-warp may have, where A is in one block of columns.
    lanes_of_one_block: LaneCounts,
    /// The same where A is in several blocks; the kernels for the first block have these too.
    lanes_of_blocks: LaneCounts,
}

impl FeatureRow {
    /// A row of f32 that is one cache line.
    const LINE: Self = Self {
        bytes: CACHE_LINE as u64,
        element_bytes: 4,
        load_width: 4,
        lanes_of_one_block: LaneCounts::of(&[LANES_OF_LINE]),
        lanes_of_blocks: LaneCounts::of(&[LANES_OF_LINE]),
    };

    /// A row of `features` elements, for a reduction and an epilogue of A's rows.
    pub fn new<E: SpmmElement>(
        features: u32,
        reduction: Reduction,
        epilogue: EpilogueKind,
    ) -> Self {
        let lanes = |epilogue| vector::lanes::<E>(features, reduction, epilogue);
        Self {
            bytes: row_bytes::<E>(features),
            element_bytes: size_of::<E>() as u64,
            load_width: vector::width::<E>(features, reduction),
            lanes_of_one_block: lanes(epilogue),
            lanes_of_blocks: lanes(EpilogueKind::Added),
        }
    }

    fn has_whole_lines(self) -> bool {
        self.bytes.is_multiple_of(Self::LINE.bytes)
    }

    /// Bytes of the tile of a sub-warp.
    fn tile_bytes(self, lanes: u32) -> u64 {
        let loads = passes(lanes, self.load_width);
        u64::from(lanes * self.load_width * loads) * self.element_bytes
    }

    /// The lanes that a sub-warp may have, where A is in `blocks` blocks of columns.
    pub fn lane_counts(self, blocks: u32) -> LaneCounts {
        if blocks > 1 {
            self.lanes_of_blocks
        } else {
            self.lanes_of_one_block
        }
    }

    /// The fewest of these lanes whose tile is the whole row, or the most that there are.
    pub fn lanes_of_whole_row(self, counts: LaneCounts) -> u32 {
        let is_whole = |&lanes: &u32| self.tile_bytes(lanes) >= self.bytes;
        let lanes = counts.iter().find(is_whole);
        lanes.or(counts.iter().last()).unwrap_or(LANES_OF_LINE)
    }
}

/// What the costs of a product depend on.
#[derive(Clone, Debug)]
pub struct CostModel {
    /// Mean number of nonzeros of a row.
    mean_row: f64,
    /// Mean share of the columns that a row has.
    density: f64,
    profile: ColumnProfile,
    l2_bytes: u64,
    neighbour_discount: f64,
    /// A row of X, if the number of features is known.
    x_row: Option<FeatureRow>,
    /// The [locality] of the matrix in its order of rows: the factor by which it has fewer L2 misses. 1 until it is
    /// measured.
    locality: f64,
}

impl CostModel {
    /// The model for a matrix, or `None` if the kernel works on neither tasks nor teams or the device's caches are
    /// unknown.
    pub fn for_kernel(
        a: &DevicePattern,
        kernel: SpmmKernel,
        x_row: Option<FeatureRow>,
    ) -> Result<Option<Self>, OperandError> {
        let Some(l2_bytes) = a.device().properties().l2_bytes else {
            return Ok(None);
        };
        let neighbour_discount = match kernel.items() {
            ItemKind::Tasks => NEIGHBOUR_DISCOUNT,
            ItemKind::Teams => NEIGHBOUR_DISCOUNT_IN_STEP,
            _ => return Ok(None),
        };
        let model = Self::for_cache(a, l2_bytes)?;
        Ok(Some(Self {
            neighbour_discount,
            x_row,
            ..model
        }))
    }

    /// The model for a matrix, a kernel on tasks, and an L2 cache of so many bytes.
    pub fn for_cache(a: &DevicePattern, l2_bytes: u64) -> Result<Self, OperandError> {
        let mean_row = f64::from(a.nonzeros()) / f64::from(a.rows.max(1));
        Ok(Self {
            mean_row,
            density: mean_row / f64::from(a.cols.max(1)),
            profile: ColumnProfile::measure(a.device(), a.cols, &a.col_idx)?,
            l2_bytes,
            neighbour_discount: NEIGHBOUR_DISCOUNT,
            x_row: None,
            locality: 1.0,
        })
    }

    /// Bytes of a row of X clamped to `most`, or `otherwise` if the number of features is unknown.
    fn x_row_bytes(&self, most: f64, otherwise: f64) -> f64 {
        (self.x_row).map_or(otherwise, |row| (row.bytes as f64).clamp(1.0, most))
    }

    /// Measures the locality if a choice depends on it; it may wait for the device.
    pub fn measure_locality(&mut self, a: &DevicePattern) -> Result<(), OperandError> {
        if self.depends_on_locality() {
            self.locality = locality(a, &self.profile, None)?;
        }
        Ok(())
    }

    /// It does if the L2 cache does not hold X anyway, or if a row order may pay.
    fn depends_on_locality(&self) -> bool {
        let widest_tile = self.x_row_bytes(MAX_TILE_BYTES, MAX_TILE_BYTES);
        self.l2_hit_rate(widest_tile, 1) < FULL_HIT_RATE || self.order_may_pay()
    }

    fn consecutive_rows_share(&self) -> bool {
        self.locality < SHARING_BELOW
    }

    /// Maximum number of steps of a task with which all tasks in flight find their common columns in the L2 cache;
    /// `None` if they have none.
    pub fn max_task_size(&self) -> Option<u32> {
        let row_steps = self.mean_row + f64::from(ROW_STEPS);
        let size = (ROWS_OF_SHARING_TASK * row_steps) as u32;
        self.consecutive_rows_share().then_some(size)
    }

    /// Whether rows are so dense that neighbours share columns in any order.
    pub fn any_rows_share(&self) -> bool {
        self.density * f64::from(NEIGHBOURS) >= 2.0
    }

    /// The lanes of a sub-warp: the fewest that cost least, and no more than a row of X keeps busy.
    pub fn best_lanes(&self, row: FeatureRow, blocks: u32) -> u32 {
        let mut best = (f64::INFINITY, LANES_OF_LINE);
        for lanes in row.lane_counts(blocks).iter() {
            let cost = self.row_cost(row, lanes, blocks);
            if cost < best.0 {
                best = (cost, lanes);
            }
            if row.tile_bytes(lanes) >= row.bytes {
                break;
            }
        }
        best.1
    }

    /// The number of blocks of columns, a power of two: the fewest that cost least for tiles of one cache line, or
    /// for the tiles of rows that have more than two lines and not a whole number of them.
    pub fn best_column_blocks(&self) -> u32 {
        let is_split =
            |row: &FeatureRow| row.bytes > 2 * FeatureRow::LINE.bytes && !row.has_whole_lines();
        let row = self.x_row.filter(is_split).unwrap_or(FeatureRow::LINE);
        let mut best = (f64::INFINITY, 1);
        let mut blocks = 1;
        while blocks <= MAX_BLOCKS {
            if blocks > 1 && self.mean_row / f64::from(blocks) < MIN_NONZEROS_IN_BLOCK {
                break;
            }
            let lanes = self.best_lanes(row, blocks);
            let cost = self.row_cost(row, lanes, blocks);
            let tile_bytes = row.tile_bytes(lanes).min(row.bytes) as f64;
            let gain = self.l2_hit_rate(tile_bytes, blocks) - self.l2_hit_rate(tile_bytes, best.1);
            if cost < best.0 && (blocks == 1 || gain >= MIN_HIT_RATE_GAIN) {
                best = (cost, blocks);
            }
            blocks *= 2;
        }
        best.1
    }

    /// The share of the nonzeros whose tile of X, of so many bytes, is in the L2 cache.
    pub fn l2_hit_rate(&self, tile_bytes: f64, blocks: u32) -> f64 {
        // Where the tasks in flight share columns, narrower tiles do not help: as many more tasks are in flight.
        let tile_bytes = if self.consecutive_rows_share() {
            MAX_TILE_BYTES
        } else {
            tile_bytes
        };
        let rows = self.l2_bytes as f64 * L2_SHARE_OF_X / tile_bytes;
        1.0 - self.locality * (1.0 - self.profile.covered(rows * f64::from(blocks)))
    }

    /// The estimated cost of a row of A.
    fn row_cost(&self, row: FeatureRow, lanes: u32, blocks: u32) -> f64 {
        let row_bytes = row.bytes as f64;
        let lane_tile = row.tile_bytes(lanes) as f64;
        let tiles = (row_bytes / lane_tile).ceil();
        let tile_bytes = lane_tile.min(row_bytes);
        // A tile that does not start and end with a cache line touches one more.
        let is_aligned = row.has_whole_lines() && lane_tile % CACHE_LINE == 0.0;
        let lines = tile_bytes / CACHE_LINE + if is_aligned { 0.0 } else { 1.0 };
        // A multiprocessor meets too few nonzeros of a block for its L1 cache to gain from blocks.
        let l1_hits = self.profile.covered(L1_BYTES_OF_X / tile_bytes);
        let l2_misses = 1.0 - self.l2_hit_rate(tile_bytes, blocks);
        let conversion = if row.element_bytes == 2 {
            CONVERSION_COST
        } else {
            0.0
        };
        let line_cost = 1.0 - L1_HIT_DISCOUNT * l1_hits + L2_MISS_COST * l2_misses;
        let nonzeros = self.mean_row * (lines * line_cost + conversion);
        let extra_blocks = f64::from(blocks - 1) * EXTRA_BLOCK_COST * lines;
        tiles * (ROW_END_COST + nonzeros + extra_blocks)
    }

    /// Whether it is worth looking for an order of the rows.
    pub fn order_may_pay(&self) -> bool {
        let shares_anyway =
            self.neighbour_discount == NEIGHBOUR_DISCOUNT_IN_STEP && self.any_rows_share();
        !shares_anyway
            && !self.consecutive_rows_share()
            && self.order_pays(BEST_CASE, BEST_CASE.ordered)
    }

    /// The locality of the matrix with its rows in `order`. It waits for the device.
    pub fn locality_in(
        &self,
        a: &DevicePattern,
        order: &DeviceBuffer<u32>,
    ) -> Result<f64, OperandError> {
        locality(a, &self.profile, Some(order))
    }

    /// Whether an order of the rows is worth its cost, with which the matrix has these shares of distinct columns and
    /// this locality.
    pub fn order_pays(&self, distinct: DistinctShares, locality: f64) -> bool {
        let l2_hit_rate = self.l2_hit_rate(self.warp_bytes(), 1);
        let has_whole_lines = self.x_row.is_some_and(FeatureRow::has_whole_lines);
        let min_speedup = if has_whole_lines && l2_hit_rate < 0.5 {
            MIN_SPEEDUP_FROM_MEMORY
        } else {
            MIN_SPEEDUP
        };
        self.speedup_by_order(distinct, locality) >= min_speedup
    }

    /// Notes that the rows are in an order with this locality.
    pub fn set_locality(&mut self, locality: f64) {
        self.locality = locality;
    }

    /// Bytes of a row of X that a warp loads at a time: one cache line if the number of features is unknown.
    fn warp_bytes(&self) -> f64 {
        self.x_row_bytes(MAX_WARP_BYTES, CACHE_LINE)
    }

    /// The estimated speed-up by an order of the rows.
    fn speedup_by_order(&self, distinct: DistinctShares, locality: f64) -> f64 {
        let misses = L2_MISS_COST * (1.0 - self.l2_hit_rate(self.warp_bytes(), 1));
        let lines = self.mean_row * self.warp_bytes() / CACHE_LINE;
        let cost = |row_end, distinct, misses| {
            row_end + lines * (1.0 - self.neighbour_discount * (1.0 - distinct) + misses)
        };
        let misses_in_order = misses * (locality / self.locality).min(1.0);
        cost(ROW_END_COST, distinct.given, misses)
            / cost(ORDERED_ROW_END_COST, distinct.ordered, misses_in_order)
    }
}

#[cfg(test)]
mod tests;
