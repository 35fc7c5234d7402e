//! What a kernel's threads, warps or sub-warps are given to do: rows, nonzeros or tasks.

use cuda_std::prelude::*;

/// What one unit of a kernel's parallelism works on. The plan makes the items once for a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// A row each; the plan makes nothing. Every element of Y is written.
    Rows,
    /// A nonzero each: [`Items::row`] holds the row of each. The kernel adds to Y, which the run fills with zeros first.
    Nonzeros,
    /// As `Nonzeros`, with the nonzeros sorted by column.
    NonzerosByColumn,
    /// A task each: a run of rows and nonzeros of nearly the same size (see [`tasks`](crate::product::tasks)), with the sums of
    /// rows that are cut in a second pass.
    Tasks,
    /// A [slice](crate::ladder::slices) of a row each. The kernel adds to the rows of Y that are cut, which the run fills with zeros
    /// first.
    Slices,
    /// As `Slices`, with the sums of rows that are cut in a second pass.
    SlicesWithSums,
    /// A warp each: [`Items::row`] has the row of each, unless it is its own number, and a row of more than [`Items::task_size`]
    /// nonzeros has all warps of a block (see [`teams`](crate::product::teams)).
    Teams,
}

impl ItemKind {
    /// Whether a kernel on such items adds to all of Y, where others write it.
    pub const fn adds_to_y(self) -> bool {
        matches!(self, Self::Nonzeros | Self::NonzerosByColumn)
    }

    /// Whether a kernel on such items adds to Y by atomics, to all of it or to the rows that are cut.
    pub const fn wants_atomics(self) -> bool {
        self.adds_to_y() || matches!(self, Self::Slices)
    }
}

/// The items of a product, as a kernel gets them.
#[repr(C)]
pub struct Items<T> {
    /// How many there are.
    pub count: u32,
    /// Steps of a task; the nonzeros of a slice at most; those of a row that has one warp.
    pub task_size: u32,
    /// Which items have several tasks each, where the items are tasks.
    pub large: Large,
    /// For nonzeros and slices, the row of each; for teams too, or null if each warp's row has its number. For tasks, the row in which each starts, and at the end the number of rows.
    pub row: Global<u32>,
    /// For tasks, the nonzero at which each starts, and at the end the number of nonzeros. For slices, that at which each
    /// starts.
    pub start: Global<u32>,
    /// For tasks, two rows of sums for each block: of a row that started in an earlier one, and of one that ends in a later. For
    /// slices with sums, a row of sums each.
    pub partial: GlobalMut<T>,
    /// The row of Y that each row of A is for, where A's rows are in another order than the caller's; else null. Items of
    /// nonzeros have the rows of Y themselves.
    pub original_row: Global<u32>,
}

/// Items of several tasks that follow each other: the first `count` items have `2^shift` each, the others one. The large ones cost less for each
/// of their nonzeros, and the small ones fill the time until the last large one is done.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Large {
    /// How many there are.
    pub count: u32,
    /// The logarithm of their number of tasks.
    pub shift: u32,
}

impl Large {
    /// None: each item is a task.
    pub const NONE: Self = Self { count: 0, shift: 0 };

    /// The first of an item's tasks; for the item after the last one the number of tasks.
    #[inline(always)]
    pub fn first_task(self, item: u32) -> u32 {
        let large = item.min(self.count);
        (large << self.shift) + (item - large)
    }

    /// The item that has a task; for the task after the last one the number of items.
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
    /// The row of Y that row `row` of A is for.
    ///
    /// # Safety
    ///
    /// `row` is a row of A.
    #[inline(always)]
    pub unsafe fn row_of_y(&self, row: usize) -> usize {
        if self.original_row.address() == 0 {
            row
        } else {
            // SAFETY: there is a number for each row of A.
            unsafe { self.original_row.load(row) as usize }
        }
    }
}

impl<T> Items<T> {
    /// The row of A that a warp is for, where the items are teams.
    ///
    /// # Safety
    ///
    /// `warp` is one of them.
    #[inline(always)]
    pub unsafe fn row_of_warp(&self, warp: u32) -> usize {
        if self.row.address() == 0 {
            warp as usize
        } else {
            // SAFETY: there is a number for each warp.
            unsafe { self.row.load(warp as usize) as usize }
        }
    }
}

impl<T> Clone for Items<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Items<T> {}

// SAFETY: `repr(C)`, of scalars and device pointers, without padding: four u32 before 8-byte pointers.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl<T: Element> KernelParam for Items<T> {}

/// The numbers that a launch depends on; all are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Rows of A and Y.
    pub rows: u32,
    /// Items.
    pub items: u32,
    /// Rows of X.
    pub cols: u32,
    /// Columns of X and Y.
    pub features: u32,
    /// Lanes of a sub-warp, for kernels whose tiles of features may be narrow or wide; below 8 for the kernel's own choice.
    pub lanes: u32,
}
