//! The times of the memory, the L2 cache and the L1 cache, by the bytes that each transfers.

use super::caches::Misses;
use super::product::Product;
use super::tile::Tile;
use super::{LINE, NONZERO_BYTES, WORD};
use warprow_kernels::spmm::SpmmKernel;
use warprow_kernels::spmm::product::row_bins;

/// What a multiprocessor loads from the L2 cache at least.
const SECTOR: f64 = 32.0;

/// What the L2 cache loads from memory at least.
const MEMORY_ACCESS: f64 = 64.0;

/// Bytes of a row in the list of rows in bins.
const ITEM_BYTES: f64 = 4.0 * row_bins::NUMBERS_OF_ITEM as f64;

/// The L1 cache's time for a line of the columns or values of A over that for a line of X: few of its bytes are loaded
/// at a time.
const LIST_LINE: f64 = 0.25;

/// Cache lines of a row in a bin: of Y and of its item, which is loaded twice.
const LINES_OF_BINNED_ROW: f64 = 3.0;

impl Product<'_> {
    /// The memory's seconds.
    pub fn memory_seconds(&self, misses: &Misses) -> f64 {
        let (gpu, c) = (self.gpu, self.constants);
        let loads_of_x = self.nonzeros * Tile::loads(self.candidate).count;
        let of_x = self.loaded_tiles() * self.tile.loaded(MEMORY_ACCESS)
            + loads_of_x * c.load_overhead_bytes;
        let of_others = self.list_bytes() + self.result_bytes();
        (of_x * misses.l2 + misses.streamed * of_others) / (gpu.memory_rate * c.memory_efficiency)
    }

    /// The L2 cache's seconds.
    pub fn l2_seconds(&self, misses: &Misses) -> f64 {
        let of_x = self.loaded_tiles() * self.tile.loaded(SECTOR) * misses.l1;
        let bytes = of_x + self.list_bytes() * self.tile.count + self.result_bytes();
        let per_cycle = self.constants.l2_bytes_per_cycle * self.gpu.relative_l2_rate;
        bytes / (self.cycles_per_second() * per_cycle)
    }

    /// The L1 cache's seconds.
    pub fn l1_seconds(&self) -> f64 {
        let loads = Tile::loads(self.candidate);
        let of_x = self.nonzeros * loads.count * loads.loaded(LINE) / LINE;
        // A load of n consecutive words touches 1 + 4 n / 128 lines in the mean. There is one of values for each one of
        // columns.
        let of_lists = 2.0 * self.column_loads() + NONZERO_BYTES * self.nonzeros / LINE;
        let of_rows = match self.has_kernel(SpmmKernel::RowBins) {
            true => LINES_OF_BINNED_ROW * self.rows,
            false => 0.0,
        };
        let lines = of_x + of_rows + LIST_LINE * self.tile.count * of_lists;
        lines * self.constants.l1_cycles_per_line / self.cycles_per_second()
    }

    /// Tiles of X that are loaded.
    fn loaded_tiles(&self) -> f64 {
        self.nonzeros * self.tile.count
    }

    /// Bytes of the columns, the values and the items that a tile takes.
    fn list_bytes(&self) -> f64 {
        // Rows in bins share no accesses to memory, neither of columns nor of values. The same bytes are taken from the
        // L2 cache, although its sectors are smaller.
        let of_binned_rows = match self.has_kernel(SpmmKernel::RowBins) {
            true => ITEM_BYTES * self.rows + 2.0 * (MEMORY_ACCESS - WORD) * self.a.lengths.used(),
            false => 0.0,
        };
        NONZERO_BYTES * self.nonzeros + of_binned_rows
    }

    /// Bytes of Y that are loaded and stored.
    fn result_bytes(&self) -> f64 {
        if self.has_kernel(SpmmKernel::RowBins) {
            // Rows of Y in the order by length share no sectors.
            self.rows * self.tile.loaded(SECTOR)
        } else {
            self.rows * self.candidate.row.bytes() * (2.0 * self.blocks - 1.0)
        }
    }

    /// Loads of columns.
    fn column_loads(&self) -> f64 {
        let of_group = self.nonzeros * self.lanes / self.group;
        match self.candidate.kernel {
            SpmmKernel::Vector => self.nonzeros / self.lanes,
            SpmmKernel::InStep => self.nonzeros / 32.0,
            // The rows of a warp's groups follow one another, so short ones share lines.
            SpmmKernel::RowGroups => {
                let shared = self.mean_row * WORD / LINE + self.group / 32.0;
                of_group * shared.min(1.0)
            }
            _ => self.binned.map_or(of_group, |binned| binned.column_loads),
        }
    }
}
