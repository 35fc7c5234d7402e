//! The tasks of the kernel [`spmv`], one for each block, and the marks of where rows begin.

use super::task_starts::{BlockRows, TaskStarts};
use super::tasks::{LaunchArguments, RunArguments};
use crate::csr::DevicePattern;
use crate::device::{DeviceBuffer, Scratch, ZeroCounters, optional_pointer};
use crate::operand::count;
use crate::primitives::scan::exclusive_scan;
use crate::spmm::error::SpmmError;
use crate::spmm::options::SpmmElement;
use cuda_std::launch::LaunchConfig;
use cuda_std::warp::WARP_SIZE;
use std::fmt;
use warprow_kernels::spmm::plan::row_marks;
use warprow_kernels::spmm::product::spmv;
use warprow_kernels::spmm::product::tasks::step_of;
use warprow_kernels::spmm::{Items, LargeItems, RowMarks};

/// Blocks that a multiprocessor runs at the same time, where the device does not know.
const RESIDENT_BLOCKS: u64 = 10;

/// Minimum number of steps of a task: the nonzeros that a block takes at a time, twice.
const MIN_STEPS: u64 = 2 * spmv::NONZEROS_OF_BLOCK as u64;

/// Nonzeros of a task of a small matrix, at most.
const NONZEROS_OF_SMALL: u64 = 4 * spmv::NONZEROS_OF_BLOCK as u64;

/// Maximum number of steps of a task. A block's start and end take some 3 us on an H200, a tenth of such a task's time;
/// larger tasks balance the load less.
const MAX_STEPS: u64 = 8192;

/// Rows of more nonzeros than so many tasks have steps are split, at the earliest.
const TASKS_OF_LONGEST_ROW: u32 = 2;

/// Steps of a task, on a device that runs `resident` blocks at the same time. Blocks of equal tasks end together, so
/// the tasks are those of whole waves of blocks: with a few blocks more, the device idles while it runs these. Small
/// matrices have tasks for two thirds of a wave, which split fewer rows.
fn task_size(rows: u32, nonzeros: u32, resident: u64) -> u32 {
    let resident = resident.max(1);
    let steps = step_of(rows, nonzeros);
    let waves = steps.div_ceil(resident * MAX_STEPS).max(1);
    let of_waves = steps.div_ceil(waves * resident);
    let of_small = steps * NONZEROS_OF_SMALL / u64::from(nonzeros.max(1));
    let of_small = of_small.min(2 * NONZEROS_OF_SMALL);
    let two_thirds = 3 * steps / (2 * resident);
    of_waves.max(two_thirds.min(of_small)).max(MIN_STEPS) as u32
}

/// The longest row that a block takes alone. Fences follow the parts of split rows, and empty the L1 cache; but a row
/// should take at most half of the time that a block's share of the nonzeros takes.
fn longest_row(nonzeros: u32, size: u32, resident: u64) -> u32 {
    let share = u64::from(nonzeros) / (2 * resident).max(1);
    let share = u32::try_from(share).unwrap_or(u32::MAX);
    size.saturating_mul(TASKS_OF_LONGEST_ROW).max(share)
}

/// The tasks of a matrix.
#[derive(Debug)]
pub struct BlockTasks<E: SpmmElement> {
    starts: TaskStarts,
    /// Nonzeros of the longest row that is not split.
    longest: u32,
    empty_rows: u32,
    empty_row: DeviceBuffer<u32>,
    /// The rows that have nonzeros; `None` if all have.
    row: Option<DeviceBuffer<u32>>,
    bits: DeviceBuffer<u32>,
    ordinal: DeviceBuffer<u32>,
    /// For each task, how many parts of the split row that begins there have been stored: 0 between runs.
    arrivals: ZeroCounters,
    /// Two rows of partial sums for each task; for the widest X so far.
    partial_sums: Scratch<E::Sum>,
}

impl<E: SpmmElement> BlockTasks<E> {
    /// The tasks of a matrix: of `requested` steps, or of a size for its nonzeros and its device.
    pub fn new(a: &DevicePattern, requested: Option<u32>) -> Result<Self, SpmmError> {
        let (device, row_ptr) = (a.device(), a.row_ptr.read_only());
        let rows = BlockRows {
            device,
            rows: a.rows,
            nonzeros: a.nonzeros(),
            row_ptr,
        };
        let config = LaunchConfig::new(1, spmv::WARPS * WARP_SIZE);
        let resident = device.resident_blocks(&spmv::spmv::<E>(), &config)?;
        let resident = resident
            .unwrap_or_else(|| u64::from(device.properties().multiprocessors) * RESIDENT_BLOCKS);
        let size = requested.unwrap_or_else(|| task_size(a.rows, a.nonzeros(), resident));
        let size = size.max(1);
        let longest = match requested {
            Some(_) => size.saturating_mul(TASKS_OF_LONGEST_ROW),
            None => longest_row(a.nonzeros(), size, resident),
        };
        let starts = TaskStarts::new(rows, size, longest)?;

        // The number of rows with nonzeros before each row.
        let mut rank = device.zeros::<u32>(a.rows as usize + 1)?;
        let config = row_marks::launch_rows(a.rows);
        if a.rows > 0 {
            let arguments = (a.rows, row_ptr, rank.mutable());
            // SAFETY: the matrix has `rows + 1` row pointers, `rank` a number for each row.
            unsafe { device.launch(&row_marks::flag_rows(), config, arguments)? };
        }
        // At most the number of rows.
        let full_rows = exclusive_scan(device, &mut rank)? as u32;
        let empty_rows = a.rows - full_rows;
        let mut row = device.uninitialized::<u32>(full_rows as usize)?;
        let mut empty_row = device.uninitialized::<u32>(empty_rows as usize)?;
        let mut bits = device.zeros::<u32>(a.nnz().div_ceil(u32::BITS as usize))?;
        let warps = u64::from(starts.count) * u64::from(spmv::WARPS) + 1;
        let warps = count("the number of warps", warps)?;
        let mut ordinal = device.uninitialized::<u32>(warps as usize)?;
        if a.rows > 0 {
            let lists = (row.mutable(), empty_row.mutable(), bits.mutable());
            let arguments = (a.rows, row_ptr, rank.read_only(), lists.0, lists.1, lists.2);
            // SAFETY: `rank` has the number of rows with nonzeros before each row, the lists have room for the rows
            // with and without nonzeros, and `bits` has a bit for each nonzero, all 0.
            unsafe { device.launch(&row_marks::mark_starts(), config, arguments)? };
        }
        let arguments = (
            a.rows,
            row_ptr,
            rank.read_only(),
            starts.count,
            starts.nonzero.read_only(),
            ordinal.mutable(),
        );
        let config = row_marks::launch_warps(starts.count);
        // SAFETY: the tasks are the matrix's, and `ordinal` has a number for each of their warps and one for the end.
        unsafe { device.launch(&row_marks::ordinals(), config, arguments)? };
        Ok(Self {
            longest,
            empty_rows,
            empty_row,
            row: (empty_rows > 0).then_some(row),
            bits,
            ordinal,
            arrivals: ZeroCounters::new(device, starts.count as usize),
            partial_sums: Scratch::new(device),
            starts,
        })
    }

    /// The number of items: tasks, and groups of empty rows.
    pub fn count(&self) -> u32 {
        let groups = self.empty_rows.div_ceil(spmv::EMPTY_ROWS_OF_BLOCK);
        self.starts.count.saturating_add(groups)
    }

    /// The maximum number of roundings between a product and the sum of its row of `terms` nonzeros.
    ///
    /// A lane adds up its products in a chunk; a tree joins the lanes of the chunk, and each chunk is joined with those
    /// before, then the warps, then the parts of a split row, of which a lane takes several and a tree joins the lanes.
    pub fn summation_depth(&self, terms: usize) -> usize {
        const TREE: usize = 5;
        let warps = spmv::WARPS as usize;
        let of_block = spmv::NONZEROS_OF_BLOCK as usize;
        // A task has a row of the greatest length at most, beside as many nonzeros as it has steps.
        let of_task = self.longest as usize + self.starts.size as usize;
        let chunks = of_task.div_ceil(of_block) + 2;
        let parts = terms / self.starts.size as usize + 2;
        let of_lane = of_block / (warps * 32);
        1 + of_lane + TREE + chunks + warps + parts + TREE
    }

    /// Launches the kernel. It joins the parts of split rows itself.
    pub fn run(
        &self,
        run: &RunArguments<E>,
        launch: impl Fn(LaunchArguments<E>) -> Result<(), SpmmError>,
    ) -> Result<(), SpmmError> {
        let rows = 2 * u64::from(self.starts.count);
        let sums = &self.partial_sums;
        let marks = RowMarks {
            tasks: self.starts.count,
            empty_rows: self.empty_rows,
            empty_row: self.empty_row.read_only(),
            row: optional_pointer(self.row.as_ref()),
            bits: self.bits.read_only(),
            ordinal: self.ordinal.read_only(),
        };
        sums.with(rows, run.y.cols.into(), |partial_sums| {
            self.arrivals.with(|arrivals| {
                let items = (self.starts).items(LargeItems::NONE, partial_sums, run.original_row);
                launch(LaunchArguments {
                    row_ptr: run.row_ptr,
                    items: Items {
                        count: self.count(),
                        arrivals,
                        marks,
                        ..items
                    },
                    scaling: run.scaling,
                })
            })
        })
    }
}

impl<E: SpmmElement> fmt::Display for BlockTasks<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, size) = (self.starts.count, self.starts.size);
        write!(f, "{count} tasks of {size} steps")?;
        match self.empty_rows {
            0 => Ok(()),
            empty_rows => write!(f, ", {empty_rows} empty rows"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{longest_row, task_size};

    #[test]
    fn tasks_are_those_of_whole_waves_of_at_most_8192_steps() {
        assert_eq!(task_size(0, 0, 1320), 1024, "the least");
        assert_eq!(task_size(0, 1_000_000, 1584), 1024);
        assert_eq!(task_size(0, 1_584_000, 1584), 1500, "two thirds of a wave");
        assert_eq!(task_size(1_000_000, 6_000_000, 1600), 5000, "one wave");
        assert_eq!(task_size(0, 8192 * 1320, 1320), 8192);
        assert_eq!(task_size(0, 8192 * 1320 + 1, 1320), 4097, "two waves");
        assert_eq!(task_size(u32::MAX, u32::MAX, 0), 8192);
        assert_eq!(task_size(u32::MAX, u32::MAX, 1), 8192);
    }

    #[test]
    fn a_block_takes_rows_alone_that_are_short_for_the_matrix() {
        assert_eq!(longest_row(1 << 20, 2048, 1320), 4096);
        assert_eq!(longest_row(40_000_000, 4096, 2000), 10_000);
        assert_eq!(longest_row(u32::MAX, u32::MAX, 0), u32::MAX);
    }
}
