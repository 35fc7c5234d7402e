//! The tasks of a matrix, made on the device: see [`tasks`].

use super::SpmmElement;
use super::items::{Launch, Product, grow};
use crate::csr::DevicePattern;
use crate::device::{Device, DeviceBuffer};
use crate::error::Error;
use cuda_std::float::Real;
use cuda_std::memory::{Global, GlobalMut};
use std::fmt;
use std::sync::Mutex;
use warprow_kernels::spmm::{Epilogue, Items, Shape, tasks, vector};

/// Tasks for each sub-warp that a GPU runs at a time: the more, the better a long task is made up for by the others.
const TASKS_PER_SLOT: u64 = 8;

/// Sub-warps of 8 lanes that a multiprocessor runs at a time, of kernels with some 64 registers a thread.
const SLOTS_PER_MULTIPROCESSOR: u64 = 128;

/// The least and the largest task, in rows and nonzeros. On an H200 tasks of 32 took up to 1.1 times as long as of 64 on most
/// graphs, for a task's own cost, and tasks of 1024 up to 1.2 times as long as of 256, for want of balance.
const TASK_SIZES: [u64; 2] = [64, 256];

/// The tasks of a matrix or of a block of its columns.
#[derive(Debug)]
pub(super) struct Tasks<E: SpmmElement> {
    count: u32,
    size: u32,
    row: DeviceBuffer<u32>,
    start: DeviceBuffer<u32>,
    /// How many start inside a row.
    cuts: u32,
    parts: Mutex<Parts<E::Sum>>,
}

/// Room for the parts of cut rows, if there are any: made for the widest X so far.
#[derive(Debug)]
struct Parts<S: Real> {
    sums: DeviceBuffer<S>,
    arrived: DeviceBuffer<u32>,
}

/// A task's size for a matrix of that many rows and nonzeros on a device: a power of two.
fn task_size(device: &Device, steps: u64) -> u32 {
    let slots = u64::from(device.properties().multiprocessors.max(1)) * SLOTS_PER_MULTIPROCESSOR;
    let size = (steps / (slots * TASKS_PER_SLOT)).clamp(TASK_SIZES[0], TASK_SIZES[1]);
    size.next_power_of_two() as u32
}

impl<E: SpmmElement> Tasks<E> {
    /// The tasks of each block of columns of a matrix, which has `rows` row pointers for each, and one at the end.
    pub(super) fn of_blocks(
        a: &DevicePattern,
        wanted_size: Option<u32>,
    ) -> Result<Vec<Self>, Error> {
        let blocks = (a.row_ptr.len() - 1)
            .checked_div(a.rows as usize)
            .unwrap_or(1);
        let mut starts = vec![0, a.nonzeros()];
        for block in 1..blocks {
            let mut start = [0];
            a.row_ptr
                .copy_part_to_slice(block * a.rows as usize, &mut start)?;
            starts.insert(block, start[0]);
        }
        let steps = u64::from(a.rows) * blocks as u64 + u64::from(a.nonzeros());
        let size = wanted_size
            .unwrap_or_else(|| task_size(a.device(), steps))
            .max(1);
        let device = a.device();
        let mut cuts = device.zeros::<u32>(starts.len() - 1)?;
        let mut tasks = Vec::new();
        for (block, ends) in starts.windows(2).enumerate() {
            let row_ptr = a.row_ptr.read_only().offset(block * a.rows as usize);
            let nonzeros = ends[1] - ends[0];
            let cuts = cuts.mutable().offset(block);
            tasks.push(Self::make(device, a.rows, nonzeros, row_ptr, size, cuts)?);
        }
        for (tasks, cuts) in tasks.iter_mut().zip(cuts.download()?) {
            tasks.cuts = cuts;
        }
        Ok(tasks)
    }

    /// The tasks of a matrix; how many start inside a row is added to `cuts`.
    fn make(
        device: &Device,
        rows: u32,
        nonzeros: u32,
        row_ptr: Global<u32>,
        size: u32,
        cuts: GlobalMut<u32>,
    ) -> Result<Self, Error> {
        let count = tasks::count(rows, nonzeros, size);
        let count = u32::try_from(count).map_err(|_| Error::TooLarge {
            what: "the number of tasks",
            found: count.into(),
            most: u32::MAX.into(),
        })?;
        let mut row = device.uninitialized::<u32>(count as usize + 1)?;
        let mut start = device.uninitialized::<u32>(count as usize + 1)?;
        let (rows_of_tasks, starts) = (row.mutable(), start.mutable());
        let arguments = (rows, row_ptr, size, count, rows_of_tasks, starts, cuts);
        // SAFETY: the buffers have the lengths that the kernel's contract asks for.
        unsafe { device.launch(&tasks::starts(), tasks::launch(count), arguments)? };
        let parts = Parts {
            sums: device.uninitialized(0)?,
            arrived: device.uninitialized(0)?,
        };
        Ok(Self {
            count,
            size,
            row,
            start,
            cuts: 0,
            parts: Mutex::new(parts),
        })
    }

    /// How many there are.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Launches the kernel on the tasks of the block.
    pub(super) fn run(
        &self,
        device: &Device,
        product: &Product<E>,
        block: usize,
        items: Items<E::Sum>,
        launch: &impl Fn(Launch<E>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        // Locked until it is launched: the next run's kernel comes after this one on the device.
        let mut parts = self
            .parts
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if self.cuts > 0 {
            let shape = Shape {
                items: self.count,
                ..product.shape
            };
            let (groups, tiles) = vector::groups_and_tiles::<E>(shape, product.reduction);
            let sums = 2 * u128::from(groups) * u128::from(shape.features);
            grow(device, &mut parts.sums, sums)?;
            let counters = u64::from(groups) * u64::from(tiles);
            if (parts.arrived.len() as u64) < counters {
                parts.arrived = device.zeros(counters as usize)?;
            }
        }
        let row_ptr = product.row_ptr.offset(block * product.shape.rows as usize);
        let mut epilogue: Epilogue<E::Sum> = product.epilogue;
        if block > 0 {
            epilogue.beta = <E::Sum as Real>::ONE;
        }
        let items = Items {
            count: self.count,
            task_size: self.size,
            row: self.row.read_only(),
            start: self.start.read_only(),
            ..items
        };
        let items = if self.cuts == 0 {
            items
        } else {
            Items {
                partial: parts.sums.mutable(),
                arrived: parts.arrived.mutable(),
                ..items
            }
        };
        launch(Launch {
            row_ptr,
            items,
            epilogue,
        })
    }
}

impl<E: SpmmElement> fmt::Display for Tasks<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} tasks of {} rows and nonzeros, {} of which start inside a row",
            self.count, self.size, self.cuts
        )
    }
}
