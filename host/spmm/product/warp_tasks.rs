//! The tasks of the kernel [`narrow`], one for each warp.

use super::task_starts::{BlockRows, TaskStarts};
use super::tasks::{LaunchArguments, RunArguments};
use crate::csr::DevicePattern;
use crate::device::{Scratch, ZeroCounters};
use crate::spmm::error::SpmmError;
use crate::spmm::options::SpmmElement;
use std::fmt;
use warprow_kernels::spmm::product::narrow;
use warprow_kernels::spmm::product::tasks::step_of;
use warprow_kernels::spmm::{Items, LargeItems};

/// Warps that a multiprocessor runs at the same time, as the kernel's registers allow.
const RESIDENT_WARPS: u64 = 32;

/// The same for the kernels with most registers.
const MIN_RESIDENT_WARPS: u64 = 20;

/// Tasks for each of these warps: the more, the better the others balance a long one.
const TASKS_PER_WARP: u64 = 4;

/// Minimum and maximum number of steps of a task, if the caller does not ask for a size. Small tasks cost more for
/// their start, and split more rows.
const MIN_TASK_SIZE: u64 = 512;
const MAX_TASK_SIZE: u64 = 4096;

/// Maximum number of chunks of a task: with more, the device waits for the last ones.
const MAX_CHUNKS: u64 = 32;

/// Rows of more nonzeros than so many tasks have steps are split.
const TASKS_OF_LONGEST_ROW: u32 = 2;

/// Steps of a task, for warps that take `chunk` nonzeros at a time. A small matrix has small tasks, of a chunk at
/// least, since its time is that of one task.
fn task_size(steps: u64, multiprocessors: u64, chunk: u32) -> u32 {
    let (multiprocessors, chunk) = (multiprocessors.max(1), u64::from(chunk.max(1)));
    let most = (MAX_CHUNKS * chunk).clamp(MIN_TASK_SIZE, MAX_TASK_SIZE);
    let of_warp = steps.div_ceil(multiprocessors * MIN_RESIDENT_WARPS);
    let whole_chunks = of_warp.next_multiple_of(chunk).max(chunk);
    let size = steps / (multiprocessors * RESIDENT_WARPS * TASKS_PER_WARP);
    size.clamp(whole_chunks.min(MIN_TASK_SIZE), most) as u32
}

/// The tasks of a matrix.
#[derive(Debug)]
pub struct WarpTasks<E: SpmmElement> {
    starts: TaskStarts,
    /// For each task, how many parts of the split row that begins there have been stored: 0 between runs.
    arrivals: ZeroCounters,
    /// Two rows of partial sums for each task; for the widest X so far.
    partial_sums: Scratch<E::Sum>,
}

impl<E: SpmmElement> WarpTasks<E> {
    /// The tasks of a matrix: of `requested` steps, or of a size for warps that take `chunk` nonzeros at a time.
    pub fn new(a: &DevicePattern, requested: Option<u32>, chunk: u32) -> Result<Self, SpmmError> {
        let rows = BlockRows {
            device: a.device(),
            rows: a.rows,
            nonzeros: a.nonzeros(),
            row_ptr: a.row_ptr.read_only(),
        };
        let multiprocessors = u64::from(a.device().properties().multiprocessors);
        let steps = step_of(a.rows, a.nonzeros());
        let size = requested
            .unwrap_or_else(|| task_size(steps, multiprocessors, chunk))
            .max(1);
        let longest = size.saturating_mul(TASKS_OF_LONGEST_ROW);
        let starts = TaskStarts::new(rows, size, longest)?;
        Ok(Self {
            arrivals: ZeroCounters::new(a.device(), starts.count as usize),
            partial_sums: Scratch::new(a.device()),
            starts,
        })
    }

    /// The number of tasks.
    pub fn count(&self) -> u32 {
        self.starts.count
    }

    /// The maximum number of roundings between a product and the sum of its row of `terms` nonzeros, in a run whose
    /// warps take `chunk` nonzeros at a time. A lane adds up to [`narrow::LOADS`] products of a chunk one after the
    /// other, for all chunks of a row or of its part in a task; a tree joins the lanes, another one the parts.
    pub fn summation_depth(&self, terms: usize, chunk: u32) -> usize {
        const TREE: usize = 5;
        let (size, chunk) = (self.starts.size as usize, chunk as usize);
        let longest = size.saturating_mul(TASKS_OF_LONGEST_ROW as usize);
        let chunks = longest.div_ceil(chunk) + 1;
        let parts = terms / size + 2;
        let parts_of_lane = parts.div_ceil(chunk / narrow::LOADS);
        1 + narrow::LOADS * chunks + 2 * TREE + parts_of_lane + TREE
    }

    /// Launches the kernel. It joins the parts of split rows itself.
    pub fn run(
        &self,
        run: &RunArguments<E>,
        launch: impl Fn(LaunchArguments<E>) -> Result<(), SpmmError>,
    ) -> Result<(), SpmmError> {
        let rows = 2 * u64::from(self.starts.count);
        let sums = &self.partial_sums;
        sums.with(rows, run.y.cols.into(), |partial_sums| {
            self.arrivals.with(|arrivals| {
                let items = (self.starts).items(LargeItems::NONE, partial_sums, run.original_row);
                launch(LaunchArguments {
                    row_ptr: run.row_ptr,
                    items: Items { arrivals, ..items },
                    scaling: run.scaling,
                })
            })
        })
    }
}

impl<E: SpmmElement> fmt::Display for WarpTasks<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} tasks of {} steps",
            self.starts.count, self.starts.size
        )
    }
}

#[cfg(test)]
mod tests {
    use super::task_size;

    #[test]
    fn a_warp_has_a_few_tasks_and_a_task_not_too_many_chunks() {
        assert_eq!(task_size(2_000_000, 100, 256), 512, "the least");
        assert_eq!(task_size(12_800_000, 100, 256), 1000);
        assert_eq!(task_size(1 << 40, 100, 256), 4096, "the most");
        assert_eq!(task_size(1 << 40, 100, 64), 2048);
        assert_eq!(task_size(1 << 40, 100, 8), 512);
    }

    #[test]
    fn a_small_matrix_has_tasks_of_whole_chunks_for_all_warps() {
        assert_eq!(task_size(300_000, 100, 256), 256);
        assert_eq!(task_size(300_000, 100, 64), 192, "150 for each warp");
        assert_eq!(task_size(300_000, 100, 32), 160);
        assert_eq!(task_size(1_000, 100, 64), 64);
        assert_eq!(task_size(0, 0, 8), 8);
    }
}
