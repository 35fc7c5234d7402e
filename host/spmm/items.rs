//! The items that a kernel works on, made once for a matrix: see [`ItemKind`].

use super::slices::Slices;
use super::{SpmmElement, extent};
use crate::csr::{DeviceCsr, NonzerosByColumn, gather};
use crate::device::{Device, DeviceBuffer};
use crate::error::Error;
use cuda_std::memory::{Global, GlobalMut};
use std::sync::Mutex;
use warprow_kernels::matrix::DenseMut;
use warprow_kernels::spmm::tasks::Cuts;
use warprow_kernels::spmm::{ItemKind, Items, tasks};

/// Tasks for each sub-warp that a GPU runs at a time: the more, the better a long task is made up for by the others.
const TASKS_PER_SLOT: u64 = 8;

/// Sub-warps of 8 lanes that a multiprocessor runs at a time, of kernels with some 64 registers a thread.
const SLOTS_PER_MULTIPROCESSOR: u64 = 128;

/// The least and the largest task, in rows and nonzeros. On an H200 tasks of 32 took up to 1.1 times as long as of 64 on most
/// graphs, for a task's own cost, and tasks of 1024 up to 1.2 times as long as of 256, for want of balance.
const TASK_SIZES: [u64; 2] = [64, 256];

/// A matrix's items on a device.
#[derive(Debug)]
pub(super) enum PlannedItems<T: SpmmElement> {
    /// The rows of the matrix.
    Rows { count: u32 },
    /// The row of Y that each nonzero is for.
    Nonzeros { row: DeviceBuffer<u32> },
    /// Tasks.
    Tasks(Tasks<T>),
    /// Slices.
    Slices(Slices<T>),
}

#[derive(Debug)]
pub(super) struct Tasks<T: SpmmElement> {
    count: u32,
    size: u32,
    row: DeviceBuffer<u32>,
    start: DeviceBuffer<u32>,
    /// How many rows are cut into few parts and into many, and the lists of them.
    few_count: u32,
    many_count: u32,
    few: DeviceBuffer<u32>,
    many: DeviceBuffer<u32>,
    /// Two rows of sums for each task, if a row is cut: made for the widest X so far.
    partial: Mutex<DeviceBuffer<T>>,
}

/// A task's size for a matrix of that many rows and nonzeros on a device: a power of two.
fn task_size(device: &Device, steps: u64) -> u32 {
    let slots = u64::from(device.properties().multiprocessors.max(1)) * SLOTS_PER_MULTIPROCESSOR;
    let size = (steps / (slots * TASKS_PER_SLOT)).clamp(TASK_SIZES[0], TASK_SIZES[1]);
    size.next_power_of_two() as u32
}

impl<T: SpmmElement> PlannedItems<T> {
    /// Makes the items of a matrix, whose nonzeros are put into the order of their columns for `NonzerosByColumn`. Where its
    /// rows are not in the caller's order, `original_row` has their numbers there.
    pub(super) fn make(
        kind: ItemKind,
        a: &mut DeviceCsr<T>,
        original_row: Option<&DeviceBuffer<u32>>,
        wanted_size: Option<u32>,
    ) -> Result<Self, Error> {
        let nonzeros = |row| -> Result<Self, Error> {
            let row = match original_row {
                Some(original_row) => gather(&row, original_row)?,
                None => row,
            };
            Ok(Self::Nonzeros { row })
        };
        match kind {
            ItemKind::Rows => Ok(Self::Rows { count: a.rows }),
            ItemKind::Nonzeros => nonzeros(a.row_of_each()?),
            ItemKind::NonzerosByColumn => {
                let NonzerosByColumn { row, col, values } = a.by_column()?;
                (a.col_idx, a.values) = (col, values);
                nonzeros(row)
            }
            ItemKind::Tasks => Tasks::make(a, wanted_size).map(Self::Tasks),
            ItemKind::Slices => Slices::make(a, wanted_size, false).map(Self::Slices),
            ItemKind::SlicesWithSums => Slices::make(a, wanted_size, true).map(Self::Slices),
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u32 {
        match self {
            Self::Rows { count } => *count,
            // The matrix has fewer than 2^32 nonzeros.
            Self::Nonzeros { row } => row.len() as u32,
            Self::Tasks(tasks) => tasks.count,
            Self::Slices(slices) => slices.count(),
        }
    }

    /// Whether the kernel adds to Y.
    pub(super) fn adds_to_y(&self) -> bool {
        matches!(self, Self::Nonzeros { .. })
    }

    /// Calls `launch` with the items as the kernel gets them, and completes the rows that are cut.
    pub(super) fn run(
        &self,
        device: &Device,
        row_ptr: Global<u32>,
        original_row: Option<&DeviceBuffer<u32>>,
        y: DenseMut<T>,
        launch: impl FnOnce(Items<T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let items = Items {
            count: self.count(),
            task_size: 0,
            row: Global::from_address(0),
            start: Global::from_address(0),
            partial: GlobalMut::from_address(0),
            original_row: original_row.map_or(Global::from_address(0), DeviceBuffer::read_only),
        };
        match self {
            Self::Rows { .. } => launch(items),
            Self::Nonzeros { row } => launch(Items {
                row: row.read_only(),
                ..items
            }),
            Self::Tasks(tasks) => tasks.run(device, row_ptr, items, y, launch),
            Self::Slices(slices) => slices.run(device, items, y, launch),
        }
    }
}

impl<T: SpmmElement> Tasks<T> {
    fn make(a: &DeviceCsr<T>, wanted_size: Option<u32>) -> Result<Self, Error> {
        let device = a.device();
        let (rows, nonzeros, row_ptr) = (a.rows, a.nnz(), &a.row_ptr);
        let size = wanted_size
            .unwrap_or_else(|| task_size(device, u64::from(rows) + u64::from(nonzeros)))
            .max(1);
        let count = tasks::count(rows, nonzeros, size);
        let count = extent(
            "the number of tasks",
            usize::try_from(count).unwrap_or(usize::MAX),
        )?;
        let mut row = device.uninitialized::<u32>(count as usize + 1)?;
        let mut start = device.uninitialized::<u32>(count as usize + 1)?;
        let mut counts = device.zeros::<u32>(2)?;
        let mut few = device.uninitialized::<u32>(count as usize)?;
        let mut many = device.uninitialized::<u32>(count as usize)?;
        let config = tasks::launch(count);
        // SAFETY: the buffers have the lengths that the kernels' contracts ask for.
        unsafe {
            let arguments = (
                rows,
                row_ptr.read_only(),
                size,
                count,
                row.mutable(),
                start.mutable(),
            );
            device.launch(&tasks::starts(), config, arguments)?;
            let items = Items::<u32> {
                count,
                task_size: size,
                row: row.read_only(),
                start: start.read_only(),
                partial: GlobalMut::from_address(0),
                original_row: Global::from_address(0),
            };
            let lists = (counts.mutable(), few.mutable(), many.mutable());
            let arguments = (rows, row_ptr.read_only(), items, lists.0, lists.1, lists.2);
            device.launch(&tasks::find_cuts(), config, arguments)?;
        }
        let counts = counts.download()?;
        Ok(Self {
            count,
            size,
            row,
            start,
            few_count: counts[0],
            many_count: counts[1],
            few,
            many,
            partial: Mutex::new(device.uninitialized(0)?),
        })
    }

    fn run(
        &self,
        device: &Device,
        row_ptr: Global<u32>,
        items: Items<T>,
        y: DenseMut<T>,
        launch: impl FnOnce(Items<T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        // Locked until all is launched: the next run's kernels come after this one's on the device.
        let mut partial = self
            .partial
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let cuts = Cuts {
            few_count: self.few_count,
            many_count: self.many_count,
            few: self.few.read_only(),
            many: self.many.read_only(),
        };
        let cut = self.few_count > 0 || self.many_count > 0;
        if cut {
            grow(
                device,
                &mut partial,
                2 * u128::from(self.count) * u128::from(y.cols),
            )?;
        }
        let items = Items {
            task_size: self.size,
            row: self.row.read_only(),
            start: self.start.read_only(),
            partial: partial.mutable(),
            ..items
        };
        launch(items)?;
        if cut {
            let config = tasks::launch_combine(self.few_count, self.many_count, y.cols);
            let arguments = (row_ptr, items, cuts, y);
            // SAFETY: the kernel before has written the sums of the cut rows; y is this run's.
            unsafe { device.launch(&tasks::combine::<T>(), config, arguments)? };
        }
        Ok(())
    }
}

/// Makes room for `wanted` sums where there is not enough.
pub(super) fn grow<T: SpmmElement>(
    device: &Device,
    sums: &mut DeviceBuffer<T>,
    wanted: u128,
) -> Result<(), Error> {
    let wanted = usize::try_from(wanted).map_err(|_| Error::TooLarge {
        what: "the number of partial sums",
        found: wanted,
        most: usize::MAX as u64,
    })?;
    if sums.len() < wanted {
        // The old ones are given back first.
        *sums = device.uninitialized(0)?;
        *sums = device.uninitialized(wanted)?;
    }
    Ok(())
}

impl<T: SpmmElement> std::fmt::Display for PlannedItems<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rows { count } => write!(f, "{count} rows"),
            Self::Nonzeros { row } => write!(f, "{} nonzeros", row.len()),
            Self::Slices(slices) => slices.fmt(f),
            Self::Tasks(tasks) => write!(
                f,
                "{} tasks of {} rows and nonzeros, {} rows cut",
                tasks.count,
                tasks.size,
                tasks.few_count + tasks.many_count
            ),
        }
    }
}
