//! The items that a kernel works on, made once for a matrix: see [`ItemKind`].

use super::SpmmElement;
use super::joining::Joining;
use super::slices::Slices;
use super::tasks::Tasks;
use super::teams::Teams;
use crate::csr::{DeviceCsr, DevicePattern, NonzerosByColumn, gather};
use crate::device::{Device, DeviceBuffer};
use crate::error::Error;
use cuda_std::element::Element;
use cuda_std::memory::{Global, GlobalMut};
use warprow_kernels::matrix::DenseMut;
use warprow_kernels::spmm::{Epilogue, ItemKind, Items, Large, Reduction};

/// A matrix's items on a device.
#[derive(Debug)]
pub(super) enum PlannedItems<E: SpmmElement> {
    /// The rows of the matrix.
    Rows { count: u32 },
    /// The row of Y that each nonzero is for.
    Nonzeros { row: DeviceBuffer<u32> },
    /// Tasks, of one matrix or of each block of its columns.
    Tasks(Vec<Tasks<E>>),
    /// Slices.
    Slices(Slices<E::Sum>),
    /// The warps that the rows have.
    Teams(Teams),
}

/// How large items are to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct ItemSizes {
    /// What the caller wants.
    pub(super) wanted: Option<u32>,
    /// Steps of a task, at most, if the caller does not say.
    pub(super) most_of_task: Option<u32>,
    /// What the device runs at a time, if it is known for which kernel.
    pub(super) at_a_time: Option<AtATime>,
}

/// What a device runs at a time of a kernel on tasks.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtATime {
    /// How many tasks.
    pub(super) tasks: u64,
    /// Whether, where many rows are cut, small tasks that are joined are better than those that all run at a time.
    pub(super) prefers_joined: bool,
}

/// What a run of the kernel is for.
pub(super) struct Product<E: SpmmElement> {
    pub(super) row_ptr: Global<u32>,
    pub(super) rows: u32,
    /// The numbers of A's rows in the caller's order, if that is another; else null.
    pub(super) original_row: Global<u32>,
    pub(super) y: DenseMut<E>,
    pub(super) reduction: Reduction,
    pub(super) epilogue: Epilogue<E::Sum>,
    /// Items of a block.
    pub(super) group: u32,
    /// Whether several tasks are one item.
    pub(super) joining: Joining,
}

/// What is different for each launch of a run.
pub(super) struct Launch<E: SpmmElement> {
    pub(super) row_ptr: Global<u32>,
    pub(super) items: Items<E::Sum>,
    pub(super) epilogue: Epilogue<E::Sum>,
}

impl<E: SpmmElement> PlannedItems<E> {
    /// Makes the items of a matrix, whose nonzeros are put into the order of their columns for `NonzerosByColumn`, and are in
    /// that of their blocks of columns for `Tasks`. Where its rows are not in the caller's order, `original_row` has their
    /// numbers there. Teams have the rows in the order of their lengths, unless they are to `keep_order`.
    pub(super) fn make(
        kind: ItemKind,
        a: &mut DeviceCsr<E::Sum>,
        original_row: Option<&DeviceBuffer<u32>>,
        sizes: ItemSizes,
        keep_order: bool,
    ) -> Result<Self, Error> {
        let nonzeros = |row| -> Result<Self, Error> {
            let row = match original_row {
                Some(original_row) => gather(&row, original_row)?,
                None => row,
            };
            Ok(Self::Nonzeros { row })
        };
        match kind {
            ItemKind::Rows => Ok(Self::Rows {
                count: a.pattern().rows,
            }),
            ItemKind::Nonzeros => nonzeros(a.pattern().row_of_each()?),
            ItemKind::NonzerosByColumn => {
                let NonzerosByColumn { row, col, values } = a.by_column()?;
                let sorted = DevicePattern {
                    device: a.device().clone(),
                    rows: a.pattern().rows,
                    cols: a.pattern().cols,
                    // Kernels on nonzeros read the row of each instead.
                    row_ptr: a.device().uninitialized(0)?,
                    col_idx: col,
                    longest_row: None,
                };
                *a = DeviceCsr::from_parts(sorted, values);
                nonzeros(row)
            }
            ItemKind::Tasks => Tasks::of_blocks(a.pattern(), sizes).map(Self::Tasks),
            ItemKind::Slices => Slices::make(a.pattern(), sizes.wanted, false).map(Self::Slices),
            ItemKind::SlicesWithSums => {
                Slices::make(a.pattern(), sizes.wanted, true).map(Self::Slices)
            }
            ItemKind::Teams => Teams::make(a.pattern(), sizes.wanted, keep_order).map(Self::Teams),
        }
    }

    /// How many there are, in the largest launch; of tasks, if they are joined so.
    pub(super) fn count(&self, joining: Joining) -> u32 {
        match self {
            Self::Rows { count } => *count,
            // The matrix has fewer than 2^32 nonzeros.
            Self::Nonzeros { row } => row.len() as u32,
            Self::Tasks(blocks) => {
                let counts = blocks.iter().map(|tasks| tasks.count(joining));
                counts.max().unwrap_or(0)
            }
            Self::Slices(slices) => slices.count(),
            Self::Teams(teams) => teams.count(),
        }
    }

    /// Calls `launch` with the items as the kernel gets them, once or for each block of columns, and completes the rows that
    /// are cut.
    pub(super) fn run(
        &self,
        device: &Device,
        product: &Product<E>,
        launch: impl Fn(Launch<E>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let items = Items {
            count: self.count(Joining::NONE),
            task_size: 0,
            large: Large::NONE,
            row: Global::from_address(0),
            start: Global::from_address(0),
            partial: GlobalMut::from_address(0),
            original_row: product.original_row,
        };
        let with = |items| {
            launch(Launch {
                row_ptr: product.row_ptr,
                items,
                epilogue: product.epilogue,
            })
        };
        match self {
            Self::Rows { .. } => with(items),
            Self::Nonzeros { row } => with(Items {
                row: row.read_only(),
                ..items
            }),
            Self::Tasks(blocks) => blocks
                .iter()
                .enumerate()
                .try_for_each(|(block, tasks)| tasks.run(device, product, block, &launch)),
            Self::Slices(slices) => slices.run(device, items, product.y.of_sums(), with),
            Self::Teams(teams) => with(teams.items(items)),
        }
    }
}

/// Makes room for `wanted` sums where there is not enough.
pub(super) fn grow<T: Element>(
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

impl<E: SpmmElement> std::fmt::Display for PlannedItems<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rows { count } => write!(f, "{count} rows"),
            Self::Nonzeros { row } => write!(f, "{} nonzeros", row.len()),
            Self::Slices(slices) => slices.fmt(f),
            Self::Teams(teams) => teams.fmt(f),
            Self::Tasks(blocks) => match &blocks[..] {
                [tasks] => tasks.fmt(f),
                [first, ..] => write!(f, "{} blocks of columns of {first}", blocks.len()),
                [] => write!(f, "no tasks"),
            },
        }
    }
}
