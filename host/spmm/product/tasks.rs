//! The tasks of a matrix, or of each block of its columns, made on the device: see [`tasks`].

use super::row_bins::BinnedRun;
use super::task_sizes::{Groupings, ItemSizes, Joining, TaskSizes, slots};
use super::task_starts::{BlockRows, TaskStarts};
use crate::csr::{DevicePattern, ReorderedPattern};
use crate::device::{Device, DeviceBuffer, Scratch, ZeroCounters, optional_pointer};
use crate::operand::{OperandError, count};
use crate::primitives::scan::exclusive_scan;
use crate::spmm::error::SpmmError;
use crate::spmm::options::SpmmElement;
use cuda_std::float::Real;
use cuda_std::memory::{Global, GlobalMut};
use std::fmt;
use std::sync::Arc;
use warprow_kernels::matrix::DenseMut;
use warprow_kernels::spmm::product::tasks::{self, SplitRowLists};
use warprow_kernels::spmm::product::{column_blocks, vector};
use warprow_kernels::spmm::{Items, LargeItems, Reduction, Scaling};

/// Maximum number of groups of tasks for each split row in a matrix of many split rows.
const GROUPS_PER_SPLIT_ROW: u64 = 16;

/// Rows stay whole up to as many nonzeros as a task has steps, or up to [`TaskSizes::least_split_row`] if that is more.
/// In a matrix of many split rows, the limit is divided by this number.
const SPLIT_PART_OF_TASK: u32 = 4;

/// What all launches of a run have in common.
pub struct RunArguments<E: SpmmElement> {
    pub row_ptr: Global<u32>,
    pub rows: u32,
    /// The number of each row of A in the caller's order, if that is another; else null.
    pub original_row: Global<u32>,
    pub y: DenseMut<E>,
    pub reduction: Reduction,
    pub scaling: Scaling<E::Sum>,
    /// Items of a block of threads.
    pub items_of_block: u32,
    pub joining: Joining,
    /// How `row_bins` takes the rows.
    pub binned: BinnedRun,
    /// Whether the kernel of the first block of columns can join split rows itself.
    pub joins_split_rows: bool,
}

/// What each launch of a run has of its own.
pub struct LaunchArguments<E: SpmmElement> {
    pub row_ptr: Global<u32>,
    pub items: Items<E::Sum>,
    pub scaling: Scaling<E::Sum>,
}

/// The matrix with its nonzeros in the order of `blocks` blocks of columns. Its row pointers are those of one block
/// after the other, `blocks * rows + 1` numbers in all; each block starts where the one before ends.
///
/// # Errors
///
/// 2^32 rows of blocks or more; too little device memory; the driver's.
pub fn divide_into_column_blocks(
    a: ReorderedPattern,
    blocks: u32,
) -> Result<ReorderedPattern, OperandError> {
    let pattern = &a.pattern;
    let device = pattern.device();
    let (rows, cols) = (pattern.rows, pattern.cols);
    if blocks == 1 || rows == 0 {
        return Ok(a);
    }
    let starts = u64::from(rows) * u64::from(blocks);
    let starts = count("the number of rows of all blocks of columns", starts)?;
    let mut row_ptr = device.zeros::<u32>(starts as usize + 1)?;
    let mut col_idx = device.uninitialized::<u32>(pattern.nnz())?;
    let mut source = device.uninitialized::<u32>(pattern.nnz())?;
    // SAFETY: the buffers have the lengths that the kernels' contracts ask for, and a row's columns ascend.
    unsafe {
        let (old_row_ptr, old_col_idx) = (pattern.row_ptr.read_only(), pattern.col_idx.read_only());
        let config = column_blocks::launch_lengths(rows, blocks);
        let width = cols.div_ceil(blocks);
        let arguments = (rows, old_row_ptr, old_col_idx, width, row_ptr.mutable());
        device.launch(&column_blocks::lengths(), config, arguments)?;
        exclusive_scan(device, &mut row_ptr)?;
        let arguments = (
            rows,
            blocks,
            old_row_ptr,
            old_col_idx,
            optional_pointer(a.source.as_deref()),
            row_ptr.read_only(),
            col_idx.mutable(),
            source.mutable(),
        );
        let config = column_blocks::launch_copy(rows);
        device.launch(&column_blocks::copy(), config, arguments)?;
    }
    let divided = DevicePattern {
        device: device.clone(),
        rows,
        cols,
        row_ptr,
        col_idx,
        longest_row: None,
    };
    Ok(ReorderedPattern {
        pattern: Arc::new(divided),
        source: Some(Arc::new(source)),
    })
}

/// The tasks of a matrix or of a block of its columns.
#[derive(Debug)]
pub struct Tasks<E: SpmmElement> {
    starts: TaskStarts,
    /// Rows of up to so many nonzeros are not split.
    least_split_row: u32,
    groupings: Groupings,
    /// The rows that are split between blocks of threads: for [each number of items of a block](vector::GROUPS), and
    /// for each way to join tasks.
    split_rows: Vec<SplitRows>,
    /// For each block of eight items, how many parts have been stored of the split row that begins there: 0 between
    /// runs.
    arrivals: ZeroCounters,
    /// Two rows of partial sums for each block of threads, if a row is split; for the widest X so far.
    partial_sums: Scratch<E::Sum>,
}

/// The rows that are split between blocks of threads, listed by their number of parts.
#[derive(Debug)]
struct SplitRows {
    items_of_block: u32,
    /// The items of several tasks.
    large: LargeItems,
    few_parts_count: u32,
    many_parts_count: u32,
    /// The lists of all kinds of blocks, and where those of this kind start: of few parts, then of many.
    lists: Arc<DeviceBuffer<u32>>,
    start: usize,
    /// Numbers that each of the two has room for.
    room: usize,
}

impl<E: SpmmElement> Tasks<E> {
    /// The tasks of each block of columns of a matrix, which has `rows` row pointers for each, and one at the end.
    pub fn of_blocks(a: &DevicePattern, sizes: ItemSizes) -> Result<Vec<Self>, SpmmError> {
        let rows = a.rows as usize;
        let blocks = (a.row_ptr.len() - 1).checked_div(rows).unwrap_or(1);
        let mut starts = vec![0, a.nonzeros()];
        for block in 1..blocks {
            let mut start = [0];
            a.row_ptr.copy_part_to_slice(block * rows, &mut start)?;
            starts.insert(block, start[0]);
        }
        let task_sizes = TaskSizes::new(a, sizes);
        // The cost model limits the tasks of these matrices alone.
        let consecutive_rows_share = sizes.max_task_size.is_some();
        let blocks = starts.windows(2).enumerate();
        blocks
            .map(|(block, ends)| {
                let block_rows = BlockRows {
                    device: a.device(),
                    rows: a.rows,
                    nonzeros: ends[1] - ends[0],
                    row_ptr: a.row_ptr.read_only().offset(block * rows),
                };
                Self::new(block_rows, task_sizes, consecutive_rows_share)
            })
            .collect()
    }

    fn new(
        a: BlockRows<'_>,
        sizes: TaskSizes,
        consecutive_rows_share: bool,
    ) -> Result<Self, SpmmError> {
        let [eight, four] = vector::GROUPS;
        let mut kinds = Vec::new();
        let longest = |size: u32| size.max(sizes.least_split_row);
        let size = sizes.few_split_rows;
        let mut starts = TaskStarts::new(a, size, longest(size))?;
        // Only blocks of eight tasks join split rows themselves.
        let arrivals = |tasks: u32| ZeroCounters::new(a.device, tasks.div_ceil(eight) as usize);
        let Some(many_split_rows) = sizes.many_split_rows else {
            let kinds = [eight, four].map(|items| (items, LargeItems::NONE));
            return Ok(Self {
                least_split_row: sizes.least_split_row,
                arrivals: arrivals(starts.count),
                split_rows: SplitRows::find(a, &starts, &kinds)?,
                groupings: Groupings::none(starts.count),
                starts,
                partial_sums: Scratch::new(a.device),
            });
        };
        let mut split_rows = SplitRows::find(a, &starts, &[(eight, LargeItems::NONE)])?;
        let (split, blocks) = (u64::from(split_rows[0].count()), starts.count / eight);
        let many_rows_are_split = split > 0 && split * GROUPS_PER_SPLIT_ROW >= blocks.into();
        if many_rows_are_split {
            let size = many_split_rows;
            starts = TaskStarts::new(a, size, longest(size) / SPLIT_PART_OF_TASK)?;
            split_rows.clear();
            kinds.push((eight, LargeItems::NONE));
        }
        let groupings = Groupings::new(starts.count, many_rows_are_split, consecutive_rows_share);
        kinds.push((four, LargeItems::NONE));
        kinds.extend(groupings.all().map(|large| (four, large)));
        split_rows.extend(SplitRows::find(a, &starts, &kinds)?);
        Ok(Self {
            least_split_row: sizes.least_split_row,
            arrivals: arrivals(starts.count),
            starts,
            groupings,
            split_rows,
            partial_sums: Scratch::new(a.device),
        })
    }

    /// The items of several tasks in a run.
    fn large(&self, joining: Joining) -> LargeItems {
        let device = self.starts.row.device();
        self.groupings.of_run(joining, slots(device))
    }

    /// The number of items of a run.
    pub fn count(&self, joining: Joining) -> u32 {
        self.large(joining).item_of(self.starts.count)
    }

    /// The maximum number of roundings between a product and the sum of its row of `terms` nonzeros. An item's terms
    /// are added one after the other, then the items of a block of threads, then the blocks of threads: by one warp
    /// four at a time, or if they are many by eight.
    pub fn summation_depth(&self, terms: usize, joining: Joining, items_of_block: u32) -> usize {
        let (size, items_of_block) = (self.starts.size as usize, items_of_block as usize);
        let longest = size.max(self.least_split_row as usize);
        let large_item = longest << self.large(joining).shift;
        let parts = terms / (size * items_of_block) + 2;
        large_item + items_of_block + parts.min(32) / 4 + parts / 32 + 14
    }

    /// The split rows of a run.
    fn split_rows(&self, run: &RunArguments<E>) -> &SplitRows {
        let of_run = (run.items_of_block, self.large(run.joining));
        let is_of_run = |rows: &&SplitRows| (rows.items_of_block, rows.large) == of_run;
        let split_rows = self.split_rows.iter().find(is_of_run);
        split_rows.expect("split rows are listed for all blocks that kernels have")
    }

    /// The rows of partial sums that split rows need.
    fn partial_sum_rows(&self, split_rows: &SplitRows) -> u64 {
        if !split_rows.any() {
            return 0;
        }
        let items = split_rows.large.item_of(self.starts.count);
        2 * u64::from(items.div_ceil(split_rows.items_of_block))
    }

    /// Makes room for the partial sums of a run.
    pub fn make_room(&self, run: &RunArguments<E>) -> Result<(), SpmmError> {
        let rows = self.partial_sum_rows(self.split_rows(run));
        Ok(self.partial_sums.make_room(rows, run.y.cols.into())?)
    }

    /// Whether the kernel joins the split rows of a run itself, so that the product is one launch. It takes a fence for
    /// each part, which is less than a launch if all tasks run at the same time, and few parts are of one row.
    fn joins_split_rows(&self, run: &RunArguments<E>, block: usize) -> bool {
        let split_rows = self.split_rows(run);
        run.joins_split_rows
            && block == 0
            && split_rows.large == LargeItems::NONE
            && split_rows.many_parts_count == 0
            && u64::from(self.starts.count) <= slots(self.starts.row.device())
    }

    /// Launches the kernel on the tasks of a block of columns, and adds up the parts of the split rows.
    pub fn run(
        &self,
        device: &Device,
        run: &RunArguments<E>,
        block: usize,
        launch: &impl Fn(LaunchArguments<E>) -> Result<(), SpmmError>,
    ) -> Result<(), SpmmError> {
        let split_rows = self.split_rows(run);
        let row_ptr = run.row_ptr.offset(block * run.rows as usize);
        let mut scaling: Scaling<E::Sum> = run.scaling;
        if block > 0 {
            scaling.beta = <E::Sum as Real>::ONE;
        }
        let rows = self.partial_sum_rows(split_rows);
        self.partial_sums
            .with(rows, run.y.cols.into(), |partial_sums| {
                let items = (self.starts).items(split_rows.large, partial_sums, run.original_row);
                let with = |items| {
                    launch(LaunchArguments {
                        row_ptr,
                        items,
                        scaling,
                    })
                };
                if !split_rows.any() {
                    return with(items);
                }
                if self.joins_split_rows(run, block) {
                    let with_arrivals = |arrivals| with(Items { arrivals, ..items });
                    return self.arrivals.with(with_arrivals);
                }
                with(items)?;
                let SplitRows {
                    few_parts_count,
                    many_parts_count,
                    ..
                } = *split_rows;
                let config = tasks::launch_combine(few_parts_count, many_parts_count, run.y.cols);
                let handle = tasks::combine_handle::<E>(run.reduction);
                let arguments = (items, split_rows.pointers(), run.y, scaling);
                // SAFETY: the kernel before has written the parts of the split rows; y is this run's.
                unsafe { device.launch(&handle, config, arguments)? };
                Ok(())
            })
    }
}

impl SplitRows {
    /// The split rows for each kind of blocks: the items of a block, and which of them have several tasks.
    fn find(
        a: BlockRows<'_>,
        starts: &TaskStarts,
        kinds: &[(u32, LargeItems)],
    ) -> Result<Vec<Self>, SpmmError> {
        // The blocks of each kind, and where its two lists start, each with room for four numbers for each block.
        let mut all = 0;
        let places = kinds.iter().map(|&(items_of_block, large)| {
            let blocks = large.item_of(starts.count).div_ceil(items_of_block);
            let (start, room) = (all, 4 * blocks as usize);
            all += 2 * room;
            (blocks, start, room)
        });
        let places: Vec<_> = places.collect();
        let mut counts = a.device.zeros::<u32>(2 * kinds.len())?;
        let mut lists = a.device.uninitialized::<u32>(all)?;
        let numbered = kinds.iter().zip(&places).enumerate();
        for (kind, (&(items_of_block, large), &(blocks, start, room))) in numbered {
            let (no_sums, no_rows) = (GlobalMut::from_address(0), Global::from_address(0));
            let items = starts.items::<u32>(large, no_sums, no_rows);
            let counts = counts.mutable().offset(2 * kind);
            let arguments = (
                a.rows,
                a.row_ptr,
                items,
                items_of_block,
                counts,
                lists.mutable().offset(start),
                lists.mutable().offset(start + room),
            );
            // SAFETY: the two lists have room for four numbers for each block, and each kind has two counts.
            unsafe {
                (a.device).launch(&tasks::find_split_rows(), tasks::launch(blocks), arguments)?
            };
        }
        let (counts, lists) = (counts.download()?, Arc::new(lists));
        let found = kinds.iter().zip(places).zip(counts.chunks_exact(2));
        let found = found.map(
            |((&(items_of_block, large), (_, start, room)), counts)| Self {
                items_of_block,
                large,
                few_parts_count: counts[0],
                many_parts_count: counts[1],
                lists: Arc::clone(&lists),
                start,
                room,
            },
        );
        Ok(found.collect())
    }

    fn count(&self) -> u32 {
        self.few_parts_count + self.many_parts_count
    }

    fn any(&self) -> bool {
        self.count() > 0
    }

    fn pointers(&self) -> SplitRowLists {
        SplitRowLists {
            few_count: self.few_parts_count,
            many_count: self.many_parts_count,
            few: self.lists.read_only().offset(self.start),
            many: self.lists.read_only().offset(self.start + self.room),
        }
    }
}

impl<E: SpmmElement> fmt::Display for Tasks<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} tasks of {} steps, {} split rows",
            self.starts.count,
            self.starts.size,
            self.split_rows[0].count()
        )
    }
}
