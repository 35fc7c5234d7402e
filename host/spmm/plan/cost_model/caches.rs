//! The miss rates of the caches.

use super::product::Product;
use super::{IN_STEP_WARPS, LINE};
use warprow_kernels::spmm::SpmmKernel;
use warprow_kernels::spmm::product::vector::items_of_block;
use warprow_kernels::spmm::product::{row_bins, row_groups};

/// The part of the used columns over which groups of lanes that started together are spread, if all rows have the same
/// length. Else the variation of the lengths is added.
const DRIFT: f64 = 0.1;

/// Data of up to 0.7 times the L2 cache stays there between runs; from 0.6 times more on, nothing does.
const HELD_BETWEEN_RUNS: (f64, f64) = (0.7, 0.6);

/// The shares of the nonzeros whose tile of X is in no cache.
pub struct Misses {
    /// Not in the L1 cache.
    pub l1: f64,
    /// Nor in the L2 cache.
    pub l2: f64,
    /// The share of A, Y and the used rows of X that a run loads from memory because the run before has evicted it.
    pub streamed: f64,
}

impl Product<'_> {
    /// The miss rates of the candidate.
    pub fn misses(&self) -> Misses {
        let l1 = match self.candidate.has_shared_x {
            true => 0.0,
            false => self.a.locality.of(self.neighbours()) * self.l1_missed(),
        };
        let c = self.constants;
        let l2_bytes = c.l2_share * self.gpu.l2_bytes;
        let row_bytes = self.candidate.row.bytes();
        // A tile occupies whole lines, which it may share with the next tile of its row, not with other rows.
        let occupied = self.tile.loaded(LINE).min(row_bytes);
        let partitions = self.gpu.l2_partitions;
        let rows_of_partition = l2_bytes / f64::from(partitions) / occupied;
        let missed = (self.a.columns).missed(rows_of_partition * self.blocks, partitions);
        let all_bytes =
            (f64::from(self.a.cols) + self.rows) * row_bytes + self.nonzero_bytes() * self.nonzeros;
        let (least, range) = HELD_BETWEEN_RUNS;
        let streamed = ((all_bytes / self.gpu.l2_bytes - least) / range).clamp(0.0, 1.0);
        let l2 = (missed * self.a.locality.far)
            .min(self.l2_missed_in_phase(rows_of_partition))
            .max(streamed * self.used_columns / self.nonzeros)
            .min(l1);
        Misses { l1, l2, streamed }
    }

    /// Neighbouring rows that share an L1 cache: those of a block.
    fn neighbours(&self) -> f64 {
        match self.candidate.kernel {
            SpmmKernel::Vector => {
                let own = (self.constants.l1_reuse_nonzeros / self.mean_row).max(1.0);
                f64::from(items_of_block(self.candidate.lanes)) * own
            }
            SpmmKernel::InStep => 4.0,
            SpmmKernel::RowGroups => f64::from(row_groups::BLOCK) / self.group,
            // Those of one bin stay in the matrix's order, so they are near each other; that bins leave out the rows
            // between them is ignored.
            _ => self.binned.map_or(1.0, |binned| {
                let warps_of_block = f64::from(row_bins::BLOCK / 32);
                (warps_of_block * self.rows / binned.warps).max(1.0)
            }),
        }
    }

    /// The share of the nonzeros that the L1 cache has to load, if neighbouring rows share no columns.
    fn l1_missed(&self) -> f64 {
        let l1 = self.constants.l1_share * self.gpu.l1_bytes / self.tile.first;
        let missed = self.a.columns.missed(l1, 1);
        match self.candidate.kernel {
            // All warps of a multiprocessor are at the same columns.
            SpmmKernel::InStep => self.loaded_in_phase(IN_STEP_WARPS).min(missed),
            // So are groups, as far as their rows are equally long and the cache holds the columns between them.
            SpmmKernel::RowGroups => {
                let resident = self.candidate.resident_warps() * 32.0 / self.group;
                let rows = resident.min(self.rows / self.gpu.multiprocessors);
                self.missed_in_phase(l1, rows, DRIFT).min(missed)
            }
            _ => missed,
        }
    }

    /// The share of the nonzeros that an L2 cache whose partitions hold so many rows of X has to load, if the groups of
    /// lanes that run at the same time go through the columns together; 1 for kernels without such groups.
    fn l2_missed_in_phase(&self, rows_of_partition: f64) -> f64 {
        let items = match self.candidate.kernel {
            SpmmKernel::RowGroups => self.rows,
            SpmmKernel::RowBins => self.binned.map_or(self.rows, |binned| binned.warps),
            _ => return 1.0,
        };
        let waves = (items / self.slots()).max(1.0);
        // A group starts when one of the wave before has ended, so the spread grows with each wave. `drift` is the mean
        // over the waves.
        let drift = DRIFT * (1.0 + waves) / 2.0;
        self.missed_in_phase(rows_of_partition, self.rows / waves, drift)
    }

    /// The share of the nonzeros that a cache for so many rows of X has to load, if so many rows of A go through the
    /// columns together, spread over this part of the used columns and the variation of their lengths.
    fn missed_in_phase(&self, cached: f64, rows: f64, drift: f64) -> f64 {
        let between = self.used_columns * (drift + self.a.variation()).min(1.0);
        self.loaded_in_phase(rows).max(1.0 - cached / between)
    }

    /// The share of the nonzeros whose row of X is loaded anew if so many rows go through the columns together.
    fn loaded_in_phase(&self, rows: f64) -> f64 {
        let nonzeros = rows * self.mean_row;
        self.a.columns.counts.expected_distinct(nonzeros) / nonzeros
    }
}
