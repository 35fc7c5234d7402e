//! Where tasks start, found on the device: see [`tasks`].

use crate::device::{Device, DeviceBuffer};
use crate::operand::count;
use crate::spmm::error::SpmmError;
use cuda_std::memory::{Global, GlobalMut};
use warprow_kernels::spmm::product::tasks;
use warprow_kernels::spmm::{Items, LargeItems, RowBins, RowMarks};

/// The rows and nonzeros of a matrix or of a block of its columns.
#[derive(Clone, Copy)]
pub struct BlockRows<'a> {
    pub device: &'a Device,
    pub rows: u32,
    pub nonzeros: u32,
    pub row_ptr: Global<u32>,
}

/// Where tasks start: the row and the nonzero of each, and the end of the matrix.
#[derive(Debug)]
pub struct TaskStarts {
    pub count: u32,
    /// Steps of a task.
    pub size: u32,
    pub row: DeviceBuffer<u32>,
    pub nonzero: DeviceBuffer<u32>,
}

impl TaskStarts {
    /// The starts of tasks of `size` steps, which may split rows of more than `longest` nonzeros.
    pub fn new(a: BlockRows<'_>, size: u32, longest: u32) -> Result<Self, SpmmError> {
        let count = count(
            "the number of tasks",
            tasks::count(a.rows, a.nonzeros, size),
        )?;
        let mut row = a.device.uninitialized::<u32>(count as usize + 1)?;
        let mut nonzero = a.device.uninitialized::<u32>(count as usize + 1)?;
        let starts = (row.mutable(), nonzero.mutable());
        let arguments = (a.rows, a.row_ptr, size, longest, count, starts.0, starts.1);
        // SAFETY: the matrix's row pointers; `row` and `nonzero` have a number for each task and one for the end.
        unsafe { (a.device).launch(&tasks::starts(), tasks::launch(count), arguments)? };
        Ok(Self {
            count,
            size,
            row,
            nonzero,
        })
    }

    /// The items as a kernel gets them.
    pub fn items<T>(
        &self,
        large: LargeItems,
        partial_sums: GlobalMut<T>,
        original_row: Global<u32>,
    ) -> Items<T> {
        Items {
            count: large.item_of(self.count),
            task_size: self.size,
            large,
            row: self.row.read_only(),
            start: self.nonzero.read_only(),
            partial: partial_sums,
            arrivals: GlobalMut::from_address(0),
            original_row,
            marks: RowMarks::NONE,
            bins: RowBins::NONE,
        }
    }
}
