//! The times of the memory, the L2 cache and the L1 cache, by the bytes that each transfers.

use super::caches::Misses;
use super::product::Product;
use super::tile::Tile;
use super::{LINE, WORD};
use cuda_std::warp::WARP_SIZE;
use warprow_kernels::spmm::SpmmKernel;
use warprow_kernels::spmm::product::row_bins;

/// What a multiprocessor loads from the L2 cache at least.
const SECTOR: f64 = 32.0;

/// The memory's time for a cache line of which a part is loaded, relative to a whole line, for random accesses. On an
/// H200 it is 0.77 to 0.86 (docs/notes/spmm_plan.md).
const PART_OF_LINE: f64 = 0.8;

/// The minimum L2 time of a line of which a part is loaded, relative to a whole line. Random accesses take 0.45 on an
/// H200. Plans choose best with 0.33 to 0.4 (docs/notes/spmm_plan.md).
const PART_OF_LINE_IN_L2: f64 = 0.35;

/// Bytes of a row in the list of rows in bins.
const ITEM_BYTES: f64 = 4.0 * row_bins::NUMBERS_OF_ITEM as f64;

/// The L1 cache's time for a line of the columns or values of A over that for a line of X: few of its bytes are loaded
/// at a time.
const LIST_LINE: f64 = 0.25;

/// Cache lines of a row in a bin whose neighbours are in other bins: of Y and of its item, which is loaded twice.
const LINES_OF_BINNED_ROW: f64 = 3.0;

impl Product<'_> {
    /// The memory's seconds.
    pub fn memory_seconds(&self, misses: &Misses) -> f64 {
        let (gpu, c) = (self.gpu, self.constants);
        let of_results = match self.a.is_ordered {
            true => self.rows * self.tile.count * self.bytes_at_random() * self.accesses_of_y(),
            false => self.result_bytes(),
        };
        // Each tile reads the lists again.
        let of_others = self.list_bytes() * self.tile.count + of_results;
        let of_x = self.loaded_tiles() * self.bytes_at_random() * misses.l2;
        (of_x + misses.streamed * of_others) / (gpu.memory_rate * c.memory_efficiency)
    }

    /// The bytes whose time the memory takes for a tile at a random address: of X, and of Y if its rows are in another
    /// order.
    fn bytes_at_random(&self) -> f64 {
        let of_sectors = self.tile.loaded(SECTOR);
        of_sectors.max(PART_OF_LINE * self.tile.loaded(LINE))
    }

    /// The L2 cache's seconds.
    pub fn l2_seconds(&self, misses: &Misses) -> f64 {
        let of_tile = (self.tile.loaded(SECTOR)).max(PART_OF_LINE_IN_L2 * self.tile.loaded(LINE));
        let of_x = self.loaded_tiles() * of_tile * misses.l1;
        let bytes = of_x + self.list_bytes() * self.tile.count + self.result_bytes();
        bytes / (self.cycles_per_second() * self.l2_bytes_per_cycle())
    }

    /// The seconds in which each multiprocessor copies X to its shared memory.
    pub fn copy_seconds(&self) -> f64 {
        if !self.candidate.has_shared_x {
            return 0.0;
        }
        let bytes = f64::from(self.a.cols) * self.candidate.row.bytes();
        bytes / (self.l2_bytes_per_cycle() * self.gpu.clock)
    }

    /// What a multiprocessor gets from the L2 cache in a cycle.
    fn l2_bytes_per_cycle(&self) -> f64 {
        self.constants.l2_bytes_per_cycle * self.gpu.relative_l2_rate
    }

    /// The time in which shared memory serves a nonzero, over that of the L1 cache for a line. A word of each bank, a
    /// line in all, is served at a time. Rows of X that are loaded together begin at random banks, so the busiest bank
    /// has several of them: about 1 + log2(n) / 2 of n rows that fill all banks once.
    fn shared_lines_of_nonzero(&self) -> f64 {
        let row_in_lines = self.candidate.row.bytes() / LINE;
        let rows = (1.0 / row_in_lines).max(1.0);
        (1.0 + rows.log2() / 2.0) * row_in_lines
    }

    /// The lines that a load of X touches, over those if each nonzero had lines of its own. Nonzeros of a row that are
    /// loaded together may share a line. The columns of a row are taken for random.
    fn share_of_line(&self) -> f64 {
        let together = match self.candidate.kernel {
            SpmmKernel::Vector => 1.0,
            SpmmKernel::RowGroups => self.group / self.lanes,
            _ => f64::from(WARP_SIZE) / self.lanes,
        };
        let rows_of_line = LINE / self.candidate.row.bytes();
        if together <= 1.0 || rows_of_line <= 1.0 {
            return 1.0;
        }
        let density = (self.mean_row / self.used_columns).min(1.0);
        // The lines that a whole row of A touches, over its nonzeros.
        let of_row = (1.0 - (1.0 - density).powf(rows_of_line)) / (density * rows_of_line);
        // The first nonzero of a load touches a line, each further one a new line as often as in the row.
        of_row + (1.0 - of_row) / together
    }

    /// The seconds of the L1 cache, and of shared memory.
    pub fn l1_seconds(&self) -> f64 {
        let loads = Tile::loads(self.candidate);
        let of_x = match self.candidate.has_shared_x {
            true => self.nonzeros * self.shared_lines_of_nonzero(),
            false => {
                let count = loads.count * f64::from(self.candidate.loads_of_vector());
                self.nonzeros * count * loads.loaded(LINE) / LINE * self.share_of_line()
            }
        };
        // A load of n consecutive words touches 1 + 4 n / 128 lines in the mean. There is one of values for each one of
        // columns.
        let of_lists = 2.0 * self.column_loads() + self.nonzero_bytes() * self.nonzeros / LINE;
        let of_rows = self.binned.map_or(0.0, |binned| {
            let of_y = self.rows * self.candidate.row.bytes() / LINE;
            // The lanes of a warp load the items of its rows together, twice.
            let of_items = 2.0 * binned.warps.max(self.rows * ITEM_BYTES / LINE);
            let scattered = self.scattered_rows();
            scattered * LINES_OF_BINNED_ROW * self.rows + (1.0 - scattered) * (of_y + of_items)
        });
        let lines = of_x + of_rows + LIST_LINE * self.tile.count * of_lists;
        lines * self.constants.l1_cycles_per_line / self.cycles_per_second()
    }

    /// Tiles of X that are loaded.
    fn loaded_tiles(&self) -> f64 {
        self.nonzeros * self.tile.count
    }

    /// Bytes of the columns, the values and the items that a tile takes.
    fn list_bytes(&self) -> f64 {
        // Rows whose neighbours are in other bins share no lines of columns or values: for each list, such a row takes
        // the time of one more part of a line. The L2 cache is charged for the same bytes, although its sectors are
        // smaller.
        let of_binned_rows = match self.has_kernel(SpmmKernel::RowBins) {
            true => {
                let of_list = PART_OF_LINE * LINE - WORD;
                let rows = self.scattered_rows() * self.a.lengths.used();
                ITEM_BYTES * self.rows + 2.0 * of_list * rows
            }
            false => 0.0,
        };
        self.nonzero_bytes() * self.nonzeros + of_binned_rows
    }

    /// Bytes of Y that are loaded and stored.
    fn result_bytes(&self) -> f64 {
        if self.has_kernel(SpmmKernel::RowBins) {
            // Rows of Y whose neighbours are in other bins share no sectors; the others are contiguous.
            let bytes = self.candidate.row.bytes();
            self.rows * (bytes + self.scattered_rows() * (self.tile.loaded(SECTOR) - bytes))
        } else {
            self.rows * self.candidate.row.bytes() * self.accesses_of_y()
        }
    }

    /// The share of the rows of `row_bins` whose neighbours in the matrix are in other bins. It is empirical: all rows,
    /// unless more than half of the neighbours have lengths between the same powers of two. The kernel's bins are
    /// finer.
    fn scattered_rows(&self) -> f64 {
        let neighbours_in_other_bins = 1.0 - self.a.lengths.same_octave();
        (2.0 * neighbours_in_other_bins).min(1.0)
    }

    /// How often each row of Y is loaded or stored: further blocks of columns add to it.
    fn accesses_of_y(&self) -> f64 {
        2.0 * self.blocks - 1.0
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
