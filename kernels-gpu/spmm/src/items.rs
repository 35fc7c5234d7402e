//! Items: the units of work of a kernel, which are rows, nonzeros, tasks, slices, or the warps of teams.

use crate::bins::RowBins;
use cuda_std::prelude::*;

/// What a thread, warp or sub-warp works on. The plan makes the items once for a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// A row each; the plan makes nothing. The kernel writes every element of Y.
    Rows,
    /// A nonzero each, whose row is in [`Items::row`]. The kernel adds to Y, which the run fills with zeros first.
    Nonzeros,
    /// As `Nonzeros`, with the nonzeros sorted by column.
    NonzerosByColumn,
    /// One or several [tasks](crate::product::tasks) each. A second kernel sums the rows that are split.
    Tasks,
    /// A row each, or a part of a long one, in [bins](RowBins) of similar length. The warp that stores the last part of
    /// a row joins its parts.
    RowBins,
    /// A [task](crate::product::tasks) each, which a block takes. The warp that stores the last part of a split row
    /// joins its parts. Rows without nonzeros have items of their own.
    BlockTasks,
    /// A [slice](crate::ladder::slices) of a row each. The kernel adds to the rows of Y that are split, which the run
    /// fills with zeros first.
    Slices,
    /// As `Slices`; a second kernel sums the rows that are split.
    SlicesWithSums,
    /// A warp each, for one row; some rows have several warps of a block (see [`teams`](crate::product::teams)).
    Teams,
}

impl ItemKind {
    /// Whether a kernel on such items adds to all of Y; the others write it.
    pub const fn adds_to_y(self) -> bool {
        matches!(self, Self::Nonzeros | Self::NonzerosByColumn)
    }

    /// Whether a kernel on such items adds to Y by atomics: to all of Y, or to the rows that are split.
    pub const fn wants_atomics(self) -> bool {
        self.adds_to_y() || matches!(self, Self::Slices)
    }
}

/// The items of a product, as a kernel gets them.
#[repr(C)]
#[derive(KernelParam)]
pub struct Items<T> {
    /// The number of items; for rows in bins, of blocks.
    pub count: u32,
    /// Steps of a task; the maximum number of nonzeros of a slice, or of a part of a row in bins.
    pub task_size: u32,
    /// Which items have several tasks.
    pub large: LargeItems,
    /// The row of each nonzero or slice; the row of each warp, or null if warp w has row w. The row in which each task
    /// starts, and after the last task the number of rows. For bins, the [numbers] of each item.
    ///
    /// [numbers]: crate::product::row_bins::NUMBERS_OF_ITEM
    pub row: Global<u32>,
    /// The nonzero at which each task or slice starts, and after the last task the number of nonzeros.
    pub start: Global<u32>,
    /// Partial sums. Tasks have two rows of sums a block: for a row that started in an earlier block, and for a row
    /// that ends in a later one. Block tasks have these two rows each, slices with sums and parts of rows in bins one.
    pub partial: GlobalMut<T>,
    /// For block tasks, how many parts have been stored of the split row that begins in each task: 0 between runs. For
    /// rows in bins the same of each row, at its first part. For tasks the same of each block, or null if a second
    /// kernel joins the parts.
    pub arrivals: GlobalMut<u32>,
    /// The row of Y for each row of A, where A's rows are in another order than Y's; else null. Items of nonzeros have
    /// the rows of Y themselves.
    pub original_row: Global<u32>,
    /// For block tasks, where rows begin.
    pub marks: RowMarks,
    /// For rows in bins, where each bin begins and ends.
    pub bins: RowBins,
}

/// Where the rows of a matrix begin, for the tasks of blocks. The plan [makes](crate::plan::row_marks) it.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct RowMarks {
    /// The number of tasks. The items after them are groups of rows without nonzeros.
    pub tasks: u32,
    /// The number of rows without nonzeros.
    pub empty_rows: u32,
    /// These rows.
    pub empty_row: Global<u32>,
    /// The rows that have nonzeros; null if all have.
    pub row: Global<u32>,
    /// A bit for each nonzero: whether it is the first one of its row.
    pub bits: Global<u32>,
    /// For each warp of each task, the number of rows that begin before its first nonzero; then the number of rows that
    /// have nonzeros.
    pub ordinal: Global<u32>,
}

impl RowMarks {
    /// For items that have no marks.
    pub const NONE: Self = Self {
        tasks: 0,
        empty_rows: 0,
        empty_row: Global::from_address(0),
        row: Global::from_address(0),
        bits: Global::from_address(0),
        ordinal: Global::from_address(0),
    };
}

/// Items of several consecutive tasks: the first `count` items have `2^shift` tasks each, the others one. Large items
/// cost less for each nonzero; the small ones fill the time until the last large one ends.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, KernelParam)]
pub struct LargeItems {
    /// The number of large items.
    pub count: u32,
    /// The binary logarithm of the tasks of a large item.
    pub shift: u32,
}

impl LargeItems {
    /// No large items: each item is a task.
    pub const NONE: Self = Self { count: 0, shift: 0 };

    /// The first task of an item; for the item after the last one, the number of tasks.
    #[inline(always)]
    pub fn first_task(self, item: u32) -> u32 {
        let large = item.min(self.count);
        (large << self.shift) + (item - large)
    }

    /// The item of a task; for the task after the last one, the number of items.
    #[inline(always)]
    pub fn item_of(self, task: u32) -> u32 {
        let in_large = self.count << self.shift;
        if task < in_large {
            task >> self.shift
        } else {
            self.count + (task - in_large)
        }
    }
}

impl<T> Items<T> {
    /// The row of Y for row `row` of A.
    ///
    /// # Safety
    ///
    /// `row` is a row of A.
    #[inline(always)]
    pub unsafe fn row_of_y(&self, row: usize) -> usize {
        if self.original_row.address() == 0 {
            row
        } else {
            // SAFETY: `original_row` has a number for each row of A, of which `row` is one.
            unsafe { self.original_row.load(row) as usize }
        }
    }
}

impl<T> Clone for Items<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Items<T> {}

/// The sizes that a launch depends on; all but the last two are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// Rows of A and Y.
    pub rows: u32,
    /// Items.
    pub items: u32,
    /// Rows of X.
    pub cols: u32,
    /// Columns of X and Y.
    pub features: u32,
    /// Lanes of a sub-warp, for kernels with several tile widths; below 4 for the kernel's own choice.
    pub lanes: u32,
    /// Where rows of X and Y start, if not at multiples of `features`: the bitwise or of both leading dimensions, and
    /// of the elements by which X and Y start after a multiple of 16 bytes. 0 if X and Y are packed.
    pub row_starts: u32,
    /// The blocks of a launch of [`row_bins` with X in shared memory](crate::product::row_bins::shared_x); 0 for all
    /// other launches.
    pub shared_x_blocks: u32,
}

impl LaunchShape {
    /// A number whose factors of two are those of the features, and of the elements at which rows of X and Y start:
    /// vectors of 2, 4 or 8 elements are possible if it is a multiple of that.
    pub(crate) const fn vector_multiple(self) -> u32 {
        self.features | self.row_starts
    }
}
