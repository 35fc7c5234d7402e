//! The tasks of the kernel [`narrow`], one for each warp.

use super::task_starts::{BlockRows, TaskStarts};
use super::tasks::{LaunchArguments, RunArguments};
use crate::csr::DevicePattern;
use crate::device::{DeviceBuffer, Scratch};
use crate::spmm::error::SpmmError;
use crate::spmm::options::SpmmElement;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use warprow_kernels::spmm::product::narrow;
use warprow_kernels::spmm::product::tasks::step_of;
use warprow_kernels::spmm::{Items, LargeItems};

/// Warps that a multiprocessor runs at the same time, as the kernel's registers allow.
const RESIDENT_WARPS: u64 = 40;

/// Minimum number of steps of a task, if the caller does not ask for a size: fewer cost more for the task's start.
const MIN_TASK_SIZE: u64 = 64;

/// Maximum number of chunks of a task: with more, the device waits for the last ones.
const MAX_CHUNKS: u64 = 8;

/// Steps of a task, for warps that take `chunk` nonzeros at a time. One chunk each if all tasks can run at the same
/// time; else as many as leave each warp one task, but not too many.
fn task_size(steps: u64, warps: u64, chunk: u32) -> u32 {
    let chunk = u64::from(chunk);
    let most = (MAX_CHUNKS * chunk).max(MIN_TASK_SIZE);
    let size = steps.div_ceil(warps.max(1));
    size.clamp(chunk.max(MIN_TASK_SIZE), most) as u32
}

/// The tasks of a matrix.
#[derive(Debug)]
pub struct WarpTasks<E: SpmmElement> {
    starts: TaskStarts,
    /// For each task, how many parts of the split row that begins there have been stored: 0 between runs.
    arrivals: Mutex<DeviceBuffer<u32>>,
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
        let warps = u64::from(a.device().properties().multiprocessors) * RESIDENT_WARPS;
        let size = requested
            .unwrap_or_else(|| task_size(step_of(a.rows, a.nonzeros()), warps, chunk))
            .max(1);
        let starts = TaskStarts::new(rows, size, size)?;
        Ok(Self {
            arrivals: Mutex::new(a.device().zeros(starts.count as usize)?),
            partial_sums: Scratch::new(a.device()),
            starts,
        })
    }

    /// The number of tasks.
    pub fn count(&self) -> u32 {
        self.starts.count
    }

    /// The maximum number of roundings between a product and the sum of its row of `terms` nonzeros, in a run whose
    /// warps take `chunk` nonzeros at a time: a chunk's by a group of lanes or by all, then the chunks of a task, then
    /// the tasks.
    pub fn summation_depth(&self, terms: usize, chunk: u32) -> usize {
        let (size, chunk) = (self.starts.size as usize, chunk as usize);
        let of_chunk = narrow::LONG_ROW as usize + 1;
        let parts = terms / size + 2;
        let groups = (chunk / narrow::MAX_LOADS as usize).max(1);
        of_chunk + size / chunk + 2 + parts.div_ceil(groups) + 5
    }

    /// Launches the kernel. It joins the parts of split rows itself.
    pub fn run(
        &self,
        run: &RunArguments<E>,
        launch: impl Fn(LaunchArguments<E>) -> Result<(), SpmmError>,
    ) -> Result<(), SpmmError> {
        // Runs share it, also with recorded ones: a device runs one launch after the other.
        let mut arrivals = (self.arrivals.lock()).unwrap_or_else(PoisonError::into_inner);
        let rows = 2 * u64::from(self.starts.count);
        self.partial_sums
            .with(rows, run.y.cols.into(), |partial_sums| {
                let items = (self.starts).items(LargeItems::NONE, partial_sums, run.original_row);
                launch(LaunchArguments {
                    row_ptr: run.row_ptr,
                    items: Items {
                        arrivals: arrivals.mutable(),
                        ..items
                    },
                    scaling: run.scaling,
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
    fn a_warp_has_one_task_and_a_task_a_few_chunks() {
        assert_eq!(task_size(1_000_000, 5_000, 256), 256, "the least");
        assert_eq!(task_size(2_000_000, 5_000, 256), 400);
        assert_eq!(task_size(1 << 40, 5_000, 256), 2048, "the most");
        assert_eq!(task_size(0, 5_000, 32), 64);
        assert_eq!(task_size(0, 0, 4), 64);
        assert_eq!(task_size(1 << 40, 5_000, 4), 64);
    }
}
