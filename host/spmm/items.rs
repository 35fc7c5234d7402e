//! The units of work of a kernel, made once for a matrix: rows, nonzeros, tasks, slices or teams (see [`ItemKind`]).

use super::error::SpmmError;
use super::ladder::slices::Slices;
use super::options::SpmmElement;
use super::plan::row_keys::longest_first;
use super::product::block_tasks::BlockTasks;
use super::product::row_bins::{BinnedRun, RowBins};
use super::product::task_sizes::{ItemSizes, Joining};
use super::product::tasks::{LaunchArguments, RunArguments, Tasks};
use super::product::teams::Teams;
use crate::csr::{ReorderedPattern, gather};
use crate::device::{Device, DeviceBuffer};
use cuda_std::memory::{Global, GlobalMut};
use warprow_kernels::spmm;
use warprow_kernels::spmm::{ItemKind, Items, LargeItems, RowMarks};

/// The items of a matrix on a device.
#[derive(Debug)]
pub(super) enum PlannedItems<E: SpmmElement> {
    /// The rows of the matrix.
    Rows { count: u32 },
    /// A nonzero each, and the row of Y that it contributes to.
    Nonzeros { row: DeviceBuffer<u32> },
    /// The tasks of each block of columns; one block if the matrix is whole.
    Tasks(Vec<Tasks<E>>),
    /// The rows in bins.
    RowBins(RowBins<E>),
    /// A task for each block.
    BlockTasks(BlockTasks<E>),
    /// Slices.
    Slices(Slices<E::Sum>),
    /// The warps of the rows.
    Teams(Teams),
}

impl<E: SpmmElement> PlannedItems<E> {
    /// Makes the items of a matrix. For `NonzerosByColumn` it returns its nonzeros sorted by column; for `Tasks` they
    /// are in the order of their blocks of columns. `original_row` has the number of each row in the caller's order,
    /// if that is another. Teams take the longest rows first, unless they `keep_order`.
    pub(super) fn new(
        kind: ItemKind,
        a: ReorderedPattern,
        original_row: Option<&DeviceBuffer<u32>>,
        sizes: ItemSizes,
        keep_order: bool,
    ) -> Result<(ReorderedPattern, Self), SpmmError> {
        let nonzeros = |row| -> Result<Self, SpmmError> {
            let row = match original_row {
                Some(original_row) => gather(&row, original_row)?,
                None => row,
            };
            Ok(Self::Nonzeros { row })
        };
        let pattern = &a.pattern;
        let items = match kind {
            ItemKind::Rows => Self::Rows {
                count: pattern.rows,
            },
            ItemKind::Nonzeros => nonzeros(pattern.row_of_each()?)?,
            ItemKind::NonzerosByColumn => {
                // Kernels on nonzeros read the row of each instead of row pointers.
                let (sorted, row) = a.by_column()?;
                return Ok((sorted, nonzeros(row)?));
            }
            ItemKind::Tasks => Self::Tasks(Tasks::of_blocks(pattern, sizes)?),
            ItemKind::RowBins => {
                let lanes = sizes.lanes_of_nonzero;
                Self::RowBins(RowBins::new(pattern, original_row, sizes.requested, lanes)?)
            }
            ItemKind::BlockTasks => Self::BlockTasks(BlockTasks::new(pattern, sizes.requested)?),
            ItemKind::Slices => Self::Slices(Slices::new(pattern, sizes.requested, false)?),
            ItemKind::SlicesWithSums => Self::Slices(Slices::new(pattern, sizes.requested, true)?),
            ItemKind::Teams => {
                let sorts = !keep_order && pattern.rows > 0;
                let order = sorts.then(|| longest_first(pattern)).transpose()?;
                Self::Teams(Teams::new(
                    pattern,
                    sizes.requested,
                    order.as_ref(),
                    sizes.wave,
                )?)
            }
        };
        Ok((a, items))
    }

    /// The number of items in the largest launch; `binned` says how `row_bins` takes the rows.
    pub(super) fn count(&self, joining: Joining, binned: BinnedRun) -> u32 {
        match self {
            Self::Rows { count } => *count,
            // The matrix has fewer than 2^32 nonzeros.
            Self::Nonzeros { row } => row.len() as u32,
            Self::Tasks(blocks) => {
                let counts = blocks.iter().map(|tasks| tasks.count(joining));
                counts.max().unwrap_or(0)
            }
            Self::RowBins(bins) => bins.blocks(binned),
            Self::BlockTasks(tasks) => tasks.count(),
            Self::Slices(slices) => slices.count(),
            Self::Teams(teams) => teams.count(),
        }
    }

    /// The maximum number of roundings between a product and the sum of its row of `terms` nonzeros, if such a sum is
    /// cut into items of so many to a block, and `binned` says how `row_bins` takes the rows.
    pub(super) fn summation_depth(
        &self,
        terms: usize,
        joining: Joining,
        items_of_block: u32,
        binned: BinnedRun,
    ) -> usize {
        let depth = match self {
            Self::Rows { .. } | Self::Nonzeros { .. } => terms,
            Self::RowBins(bins) => bins.summation_depth(terms, binned),
            Self::BlockTasks(tasks) => tasks.summation_depth(terms),
            Self::Slices(slices) => slices.summation_depth(terms),
            Self::Teams(teams) => teams.summation_depth(terms),
            Self::Tasks(blocks) => {
                let depths = blocks
                    .iter()
                    .map(|tasks| tasks.summation_depth(terms, joining, items_of_block));
                // Each further block of columns is added to Y.
                depths.max().unwrap_or(0) + blocks.len().saturating_sub(1)
            }
        };
        depth.min(terms)
    }

    /// Calls `launch` with the items as the kernel gets them, once or for each block of columns, and adds up the
    /// parts of split rows.
    pub(super) fn run(
        &self,
        device: &Device,
        run: &RunArguments<E>,
        launch: impl Fn(LaunchArguments<E>) -> Result<(), SpmmError>,
    ) -> Result<(), SpmmError> {
        let items = Items {
            count: self.count(Joining::NONE, run.binned),
            task_size: 0,
            large: LargeItems::NONE,
            row: Global::from_address(0),
            start: Global::from_address(0),
            partial: GlobalMut::from_address(0),
            arrivals: GlobalMut::from_address(0),
            original_row: run.original_row,
            marks: RowMarks::NONE,
            bins: spmm::RowBins::NONE,
        };
        let with = |items| {
            launch(LaunchArguments {
                row_ptr: run.row_ptr,
                items,
                scaling: run.scaling,
            })
        };
        match self {
            Self::Rows { .. } => with(items),
            Self::Nonzeros { row } => with(Items {
                row: row.read_only(),
                ..items
            }),
            Self::Tasks(blocks) => {
                // First all that may fail for want of memory: the launches for a block of columns change Y.
                blocks.iter().try_for_each(|tasks| tasks.make_room(run))?;
                blocks
                    .iter()
                    .enumerate()
                    .try_for_each(|(block, tasks)| tasks.run(device, run, block, &launch))
            }
            Self::RowBins(bins) => bins.run(run, launch),
            Self::BlockTasks(tasks) => tasks.run(run, launch),
            Self::Slices(slices) => slices.run(device, items, run.y.cast_to_sum(), with),
            Self::Teams(teams) => with(teams.items(items)),
        }
    }
}

impl<E: SpmmElement> std::fmt::Display for PlannedItems<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rows { count } => write!(f, "{count} rows"),
            Self::Nonzeros { row } => write!(f, "{} nonzeros", row.len()),
            Self::RowBins(bins) => bins.fmt(f),
            Self::BlockTasks(tasks) => tasks.fmt(f),
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
