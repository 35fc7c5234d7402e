//! The planner: in which order the rows are, how wide the tiles of features, and into how many blocks of columns a matrix is cut.
//!
//! All is a matter of what the caches hold. A choice's cost is estimated for a row of A, in units of the time that
//! 128 bytes of a row of X take to arrive from the L2 cache:
//!
//! - each nonzero costs its bytes of X, more by [`MISS`] if they come from memory, less by [`NEAR`] if the multiprocessor has
//!   them; what is found where follows from the matrix's [`ColumnProfile`], as if each cache held the hottest rows of X;
//! - each nonzero of 16-bit elements costs [`WIDEN`] for each tile of features;
//! - each row costs [`ROW`] for each tile of features, as its end is met that often;
//! - each block of columns after the first costs [`AGAIN`] for each line of Y, which is read and written once more.
//!
//! Where rows that are near each other have their columns in common ([`locality`](super::reuse::locality)), what comes from memory is less by as
//! much, wide tiles cost no more of it than narrow ones, and tasks are small.
//!
//! Rows of hundreds of nonzeros are taken in step, see [`in_step`](warprow_kernels::spmm::product::in_step), where bytes that a neighbouring
//! row has just read cost less still.
//!
//! Narrow tiles and many blocks fit the caches, wide tiles and few blocks cost fewer row ends. Rows in another order than the
//! caller's cost more, and are worth it where they bring together rows that share columns, so that less comes
//! from memory: see [`clusters`]. The constants were fitted on an NVIDIA H200 to 13 graphs of each of two kinds of R-MAT at 64 to 512 features.

mod clusters;
mod row_of_x;

use super::columns::ColumnProfile;
use super::reuse;
use crate::csr::DevicePattern;
use crate::error::Error;
pub(super) use row_of_x::RowOfX;
use warprow_kernels::spmm::product::tasks::ROW_STEPS;
use warprow_kernels::spmm::{ItemKind, SpmmKernel};

/// A row's end, of a tile of features: four nonzeros' worth of instructions.
const ROW: f64 = 4.0;

/// A line of Y that a further block of columns adds to. Fitted to R-MAT graphs (.35) of 74 and 168 nonzeros a row, in two to eight blocks.
const AGAIN: f64 = 4.0;

/// A nonzero's instructions for a tile of 16-bit elements, which are made f32 first, beyond those that their bytes pay for. Fitted to
/// 8 graphs of R-MAT .57 at 128 to 512 features, where the choices with anything from 0.4 to 1 are within 0.1 % of the best.
const WIDEN: f64 = 0.4;

/// What bytes cost less that a neighbouring row has just read, and that are not in the multiprocessor's cache anyway.
const SHARED: f64 = 0.2;

/// As [`SHARED`], where neighbouring rows are taken in step.
const SHARED_IN_STEP: f64 = 0.4;

/// What bytes cost more that come from memory.
const MISS: f64 = 1.3;

/// What bytes cost less that are in the multiprocessor's own cache.
const NEAR: f64 = 0.4;

/// The unit's bytes: a cache line.
pub(super) const LINE: f64 = 128.0;

/// The share of the L2 cache that holds rows of X; the rest goes to A, Y, and to lines that both of its halves hold.
const L2_SHARE: f64 = 0.6;

/// Bytes of a multiprocessor's own cache that hold rows of X.
const L1_BYTES: f64 = 192.0 * 1024.0;

/// Bytes of a row of X that a warp takes at once.
const WIDE_ROW: f64 = 512.0;

/// Bytes of the widest tile of X.
const WIDE_TILE: f64 = 1024.0;

/// The part of the nonzeros whose row of X the L2 cache holds where it is not worth knowing how local the matrix is.
const HELD: f64 = 0.95;

/// The [locality](reuse::locality) below which rows that are near each other have their columns in common.
const LOCAL: f64 = 0.6;

/// Rows of a task of such a matrix, where tasks are no smaller and no larger than any. Measured on graphs of communities that lie together, f32: of 2.9
/// million rows of ten nonzeros, tasks of 64 and 128 steps take 0.8 times as long as of 256; of 2.5 million of six 0.75 and 0.8 times; of 0.6 million
/// of 74 nonzeros 1.17 and 0.98 times.
const LOCAL_ROWS: f64 = 8.0;

/// Nonzeros of a row in a block of columns, at least, on average. With fewer, most of the time goes to rows' ends.
const LEAST_NONZEROS: f64 = 12.0;

/// The share of the nonzeros that further blocks must bring into the L2 cache. A skewed graph has most of it there anyhow, and
/// what is left is too rare for the estimate.
const LEAST_GAIN: f64 = 0.1;

/// Blocks of columns, at most.
const MAX_BLOCKS: u32 = 32;

/// Lanes of a sub-warp for one cache line, 16 bytes each.
const LANES: u32 = 8;

/// What the choice depends on.
#[derive(Clone, Debug)]
pub(super) struct Planner {
    /// Nonzeros of a row, on average.
    mean_row: f64,
    /// The part of the columns that a row has, on average.
    share_of_columns: f64,
    /// How the nonzeros spread over the columns.
    profile: ColumnProfile,
    /// Bytes of the L2 cache.
    l2_bytes: u64,
    /// What bytes cost less that a neighbouring row has just read.
    shared: f64,
    /// A row of X, if it is known how many features there are.
    row: Option<RowOfX>,
    /// The [locality](reuse::locality) of the matrix: the part of the misses that the order of its rows leaves. 1 until it is measured.
    misses_left: f64,
}

impl Planner {
    /// That of a matrix, for a kernel on tasks or teams on a device whose cache is known, and for such rows of X, if they are known.
    pub(super) fn of(
        a: &DevicePattern,
        kernel: SpmmKernel,
        row: Option<RowOfX>,
    ) -> Result<Option<Self>, Error> {
        let Some(l2_bytes) = a.device().properties().l2_bytes else {
            return Ok(None);
        };
        let shared = match kernel.items() {
            ItemKind::Tasks => SHARED,
            ItemKind::Teams => SHARED_IN_STEP,
            _ => return Ok(None),
        };
        let planner = Self::with_cache(a, l2_bytes)?;
        Ok(Some(Self {
            shared,
            row,
            ..planner
        }))
    }

    /// That of a matrix, for an L2 cache of so many bytes.
    pub(super) fn with_cache(a: &DevicePattern, l2_bytes: u64) -> Result<Self, Error> {
        let mean_row = f64::from(a.nonzeros()) / f64::from(a.rows.max(1));
        Ok(Self {
            mean_row,
            share_of_columns: mean_row / f64::from(a.cols.max(1)),
            profile: ColumnProfile::measure(a.device(), a.cols, &a.col_idx)?,
            l2_bytes,
            shared: SHARED,
            row: None,
            misses_left: 1.0,
        })
    }

    /// Bytes of a row of X that a warp takes at once: one cache line, unless it is known how many there are.
    fn row_bytes(&self) -> f64 {
        (self.row).map_or(LINE, |row| (row.bytes as f64).clamp(1.0, WIDE_ROW))
    }

    /// Bytes of the widest tile of X that there may be.
    fn widest_tile(&self) -> f64 {
        (self.row).map_or(WIDE_TILE, |row| (row.bytes as f64).clamp(1.0, WIDE_TILE))
    }

    /// Takes note of how local the matrix is, for the choices that come after it, if they depend on it. It may wait for the device.
    pub(super) fn measure_locality(&mut self, a: &DevicePattern) -> Result<(), Error> {
        if self.wants_locality() {
            self.misses_left = reuse::locality(a, &self.profile, None)?;
        }
        Ok(())
    }

    /// Whether a choice depends on how local the matrix is: the L2 cache does not hold X anyway, or an order of the rows would be looked for.
    fn wants_locality(&self) -> bool {
        self.l2_hits(self.widest_tile(), 1) < HELD || self.hopes_for_order()
    }

    /// Whether rows that are near each other have their columns in common.
    fn is_local(&self) -> bool {
        self.misses_left < LOCAL
    }

    /// Steps of a task, at most, so that all tasks that run at a time find what they have in common in the L2 cache; `None` where they have nothing
    /// in common.
    pub(super) fn task_size(&self) -> Option<u32> {
        let row_steps = self.mean_row + f64::from(ROW_STEPS);
        self.is_local().then_some((LOCAL_ROWS * row_steps) as u32)
    }

    /// Whether so many of the columns are in a row that any 64 rows share theirs.
    pub(super) fn any_rows_share(&self) -> bool {
        self.share_of_columns * f64::from(reuse::NEIGHBOURS) >= 2.0
    }

    /// Lanes of a sub-warp, of those that there are: the fewest that cost least, and no more than a row of X keeps busy.
    pub(super) fn lanes(&self, row: RowOfX, blocks: u32) -> u32 {
        let mut best = (f64::INFINITY, LANES);
        for lanes in row.there_are(blocks).iter() {
            let cost = self.cost(row, lanes, blocks);
            if cost < best.0 {
                best = (cost, lanes);
            }
            if row.tile(lanes) >= row.bytes {
                break;
            }
        }
        best.1
    }

    /// Blocks of columns, a power of two: the fewest that cost least for tiles of one cache line, or for those that are taken of rows that
    /// have more than two lines and no whole number of them.
    ///
    /// On an H200 with 100 features of f32, whose rows have 3.1 lines and are one tile, two graphs without hubs took 0.83 and 0.87 of the time with
    /// four and eight blocks so, in the place of two and four.
    pub(super) fn column_blocks(&self) -> u32 {
        let is_split = |row: &RowOfX| row.bytes > 2 * RowOfX::LINE.bytes && !row.has_whole_lines();
        let row = self.row.filter(is_split).unwrap_or(RowOfX::LINE);
        let mut best = (f64::INFINITY, 1);
        let mut blocks = 1;
        while blocks <= MAX_BLOCKS {
            if blocks > 1 && self.mean_row / f64::from(blocks) < LEAST_NONZEROS {
                break;
            }
            let lanes = self.lanes(row, blocks);
            let cost = self.cost(row, lanes, blocks);
            let tile_bytes = row.tile(lanes).min(row.bytes) as f64;
            let gain = self.l2_hits(tile_bytes, blocks) - self.l2_hits(tile_bytes, best.1);
            if cost < best.0 && (blocks == 1 || gain >= LEAST_GAIN) {
                best = (cost, blocks);
            }
            blocks *= 2;
        }
        best.1
    }

    /// The share of the nonzeros whose tile of X, of that many bytes a row, the L2 cache holds.
    pub(super) fn l2_hits(&self, tile_bytes: f64, blocks: u32) -> f64 {
        // Where it is the tasks that run at a time which have rows of X in common, narrower tiles are of no use: as many more of them run.
        let tile_bytes = if self.is_local() {
            WIDE_TILE
        } else {
            tile_bytes
        };
        let rows = self.l2_bytes as f64 * L2_SHARE / tile_bytes;
        1.0 - self.misses_left * (1.0 - self.profile.covered(rows * f64::from(blocks)))
    }

    /// The estimated cost of a row of A.
    fn cost(&self, row: RowOfX, lanes: u32, blocks: u32) -> f64 {
        let row_bytes = row.bytes as f64;
        let lane_tile = row.tile(lanes) as f64;
        let tiles = (row_bytes / lane_tile).ceil();
        let tile_bytes = lane_tile.min(row_bytes);
        // A tile that does not start and end with a cache line touches one more.
        let aligned = row.bytes.is_multiple_of(LINE as u64) && lane_tile % LINE == 0.0;
        let lines = tile_bytes / LINE + if aligned { 0.0 } else { 1.0 };
        // A multiprocessor meets too few nonzeros of a block for its own cache to gain from blocks.
        let near = self.profile.covered(L1_BYTES / tile_bytes);
        let far = 1.0 - self.l2_hits(tile_bytes, blocks);
        let widen = if row.element_bytes == 2 { WIDEN } else { 0.0 };
        let nonzeros = self.mean_row * (lines * (1.0 - NEAR * near + MISS * far) + widen);
        let again = f64::from(blocks - 1) * AGAIN * lines;
        tiles * (ROW + nonzeros + again)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, EmulatorOptions};
    use warprow_kernels::spmm::product::vector::LaneCounts;

    const CACHE_LINE: RowOfX = RowOfX {
        lanes_of_one_block: LaneCounts::of(&[8, 16, 32]),
        lanes_of_blocks: LaneCounts::of(&[8, 16, 32]),
        ..RowOfX::LINE
    };

    const FOUR_LINES: RowOfX = RowOfX {
        bytes: 512,
        ..CACHE_LINE
    };

    /// A row of X of f32 of so many bytes, a multiple of 16.
    pub(super) fn bytes_of_x(bytes: u64) -> Option<RowOfX> {
        Some(RowOfX {
            bytes,
            ..CACHE_LINE
        })
    }

    /// A planner for 20,000 columns, of which those of each pair have that many nonzeros, and an L2 cache of so many lines.
    pub(super) fn planner(mean_row: f64, columns: &[(u32, u32)], lines: u64) -> Planner {
        let device = Device::emulator(EmulatorOptions::default());
        let mut first = 0;
        let mut cols = Vec::new();
        for &(count, nonzeros) in columns {
            for col in first..first + count {
                cols.extend(std::iter::repeat_n(col, nonzeros as usize));
            }
            first += count;
        }
        let cols = device.upload(&cols).unwrap();
        Planner {
            mean_row,
            profile: ColumnProfile::measure(&device, 20_000, &cols).unwrap(),
            share_of_columns: mean_row / 20_000.0,
            l2_bytes: lines * 128,
            shared: SHARED,
            row: None,
            misses_left: 1.0,
        }
    }

    #[test]
    fn long_rows_over_more_columns_than_the_cache_holds_are_cut_into_blocks() {
        let flat = [(20_000, 2)];
        assert_eq!(planner(168.0, &flat, 4_000).column_blocks(), 8);
        assert_eq!(planner(168.0, &flat, 40_000).column_blocks(), 1);
        assert_eq!(planner(10.0, &flat, 4_000).column_blocks(), 1);
    }

    #[test]
    fn rows_of_x_that_are_no_whole_lines_are_taken_at_once_and_want_more_blocks() {
        let flat = [(20_000, 2)];
        let blocks = |bytes| {
            let row = bytes_of_x(bytes);
            let planner = Planner {
                row,
                ..planner(74.0, &flat, 20_000)
            };
            planner.column_blocks()
        };
        assert_eq!(planner(74.0, &flat, 20_000).column_blocks(), 2);
        assert_eq!(blocks(400), 4);
        assert_eq!(blocks(512), 2, "whole lines");
        assert_eq!(blocks(132), 2, "two lines");
    }

    #[test]
    fn hot_columns_that_the_cache_holds_need_no_blocks() {
        let skewed = [(1_000, 100), (10_000, 1)];
        assert_eq!(planner(168.0, &skewed, 4_000).column_blocks(), 1);
    }

    #[test]
    fn rows_in_a_good_order_need_fewer_blocks() {
        let flat = [(20_000, 2)];
        let mut planner = planner(168.0, &flat, 4_000);
        assert_eq!(planner.column_blocks(), 8);
        planner.take_order(0.2);
        assert_eq!(planner.column_blocks(), 1);
    }

    #[test]
    fn locality_is_of_no_use_where_the_cache_holds_x_unless_an_order_is() {
        let flat = [(20_000, 2)];
        let narrow = |mean_row, shared| Planner {
            row: Some(RowOfX::LINE),
            shared,
            ..planner(mean_row, &flat, 40_000)
        };
        assert!(!narrow(7.0, SHARED).wants_locality());
        assert!(narrow(300.0, SHARED_IN_STEP).wants_locality());
        assert!(planner(7.0, &flat, 40_000).wants_locality(), "wider tiles");
    }

    #[test]
    fn rows_with_common_columns_take_wide_tiles_and_small_tasks() {
        let flat = [(20_000, 2)];
        let mut planner = planner(20.0, &flat, 30_000);
        assert_eq!(planner.lanes(FOUR_LINES, 1), 8);
        assert_eq!(planner.task_size(), None);
        planner.take_order(0.3);
        assert_eq!(planner.lanes(FOUR_LINES, 1), 32);
        // Eight rows of 20 nonzeros, each with the two steps of its end.
        assert_eq!(planner.task_size(), Some(176));
        assert!(!planner.hopes_for_order());
    }

    #[test]
    fn short_rows_take_wide_tiles_if_the_cache_holds_them_and_narrow_ones_if_not() {
        let flat = [(20_000, 2)];
        assert_eq!(planner(5.0, &flat, 1 << 20).lanes(FOUR_LINES, 1), 32);
        assert_eq!(planner(20.0, &flat, 30_000).lanes(FOUR_LINES, 1), 8);
        assert_eq!(
            planner(5.0, &flat, 1 << 20).lanes(
                RowOfX {
                    lanes_of_one_block: LaneCounts::of(&[8]),
                    ..FOUR_LINES
                },
                1
            ),
            8
        );
        assert_eq!(planner(5.0, &flat, 1 << 20).lanes(CACHE_LINE, 1), 8);
    }
}
