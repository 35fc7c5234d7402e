//! The arguments of the kernels: patterns of A and B, their values, a list of rows, and the pattern
//! of C.

use cuda_std::prelude::*;

/// The positions of a CSR matrix's nonzeros, without their values.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct CsrPattern {
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub cols: u32,
    /// Row r has the nonzeros `row_ptr[r]..row_ptr[r + 1]`; `rows + 1` numbers.
    pub row_ptr: Global<u32>,
    /// The column of each nonzero, ascending within a row.
    pub col_idx: Global<u32>,
}

/// The patterns of A and B.
///
/// The kernels ask for *valid* operands:
///
/// - `row_ptr` ascends from 0 to the number of nonzeros;
/// - columns ascend strictly within each row and are below `cols`;
/// - A has as many columns as B has rows;
/// - `extents` is what [`row_extents`](crate::analysis::work::row_extents) writes for B, except for
///   `sort_rows`, `sort_products`, `copy_products` and `copy_rows`, which do not read it;
/// - each matrix has fewer than 2^32 - 2^16 nonzeros, so a position plus a block's stride fits a
///   u32.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct OperandPatterns {
    /// A, m x k.
    pub a: CsrPattern,
    /// B, k x n.
    pub b: CsrPattern,
    /// For each row of B: its start, its end, its first column, its last column. One 16-byte load
    /// gives all four (see [`row_extents`](crate::analysis::work::row_extents)).
    pub extents: Global<u32>,
}

/// The values of A and B.
#[repr(C)]
#[derive(KernelParam)]
pub struct Factors<T> {
    /// The value of each nonzero of A.
    pub a: Global<T>,
    /// The value of each nonzero of B.
    pub b: Global<T>,
    /// Column and value of each nonzero of B side by side, one word each, as
    /// [`pair_nonzeros`](crate::products::lane_products::pair_nonzeros) writes them; null if they
    /// are not paired.
    pub pairs: Global<u32>,
}

impl<T> Factors<T> {
    /// Values without pairs.
    pub const fn new(a: Global<T>, b: Global<T>) -> Self {
        Self {
            a,
            b,
            pairs: Global::from_address(0),
        }
    }
}

/// The rows that a launch works on. An item is a pair: a row of C and, where long rows are divided into
/// chunks, the number of the chunk (else 0). A block, a warp or a group of lanes takes one item.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct RowList {
    /// The position in `list` of the first item of this launch.
    pub first: u32,
    /// The number of items.
    pub count: u32,
    /// The row and the chunk of each item.
    pub list: Global<u32>,
}

/// The pattern of C, as the numeric kernels read it.
///
/// They read the columns of row r from `columns[starts[r]]` on. There are two cases:
///
/// - C already has its columns. `starts` is `row_ptr`, `columns` are C's own, and `col_idx` is
///   null.
/// - The symbolic phase has only *staged* the columns, in memory that is laid out by `starts`. The
///   numeric kernel that computes a row's values also writes its columns to `col_idx`.
#[repr(C)]
#[derive(Clone, Copy, KernelParam)]
pub struct OutputPattern {
    /// Row r of C has the entries `row_ptr[r]..row_ptr[r + 1]`; `rows + 1` numbers.
    pub row_ptr: Global<u32>,
    /// The position in `columns` of each row's first column.
    pub starts: Global<u32>,
    /// The columns of each row, ascending.
    pub columns: Global<u32>,
    /// Where kernels write the column of each entry; null if C has its columns.
    pub col_idx: GlobalMut<u32>,
}

impl RowList {
    /// The row and the chunk of an item of this launch.
    ///
    /// # Safety
    ///
    /// `item` is less than `count`, and `list` has the pairs of all items, from an even position
    /// on.
    #[inline(always)]
    pub unsafe fn load(&self, item: u32) -> [u32; 2] {
        // SAFETY: `item` is below `count`, by the contract; the list begins at an even position, so
        // pairs are aligned.
        unsafe { self.list.load2(2 * (self.first as usize + item as usize)) }
    }
}

impl CsrPattern {
    /// The positions of a row's nonzeros, start and end.
    ///
    /// # Safety
    ///
    /// `row` is below `rows`.
    #[inline(always)]
    pub unsafe fn row(&self, row: u32) -> (u32, u32) {
        let row = row as usize;
        // SAFETY: `row` is below `rows`, by the contract; `row_ptr` has `rows + 1` numbers.
        unsafe { (self.row_ptr.load(row), self.row_ptr.load(row + 1)) }
    }
}

impl OutputPattern {
    /// The positions of a row's entries, start and end.
    ///
    /// # Safety
    ///
    /// `row` is a row of C.
    #[inline(always)]
    pub unsafe fn row(&self, row: u32) -> (u32, u32) {
        let row = row as usize;
        // SAFETY: `row` is a row of C, by the contract; `row_ptr` has a number more than C has rows.
        unsafe { (self.row_ptr.load(row), self.row_ptr.load(row + 1)) }
    }

    /// The columns of a row.
    ///
    /// # Safety
    ///
    /// `row` is a row of C.
    #[inline(always)]
    pub unsafe fn columns(&self, row: u32) -> Global<u32> {
        // SAFETY: `row` is a row of C, by the contract; `starts` has a number for each.
        let start = unsafe { self.starts.load(row as usize) };
        self.columns.offset(start as usize)
    }

    /// Whether kernels write the columns too.
    #[inline(always)]
    pub fn writes_columns(&self) -> bool {
        self.col_idx.address() != 0
    }

    /// Writes the column of an entry if C lacks it, else does nothing.
    ///
    /// # Safety
    ///
    /// `entry` is an entry of C.
    #[inline(always)]
    pub unsafe fn write_column(&self, entry: u32, column: u32) {
        if self.writes_columns() {
            // SAFETY: `entry` is an entry of C, by the contract, and `col_idx` is not null.
            unsafe { self.col_idx.store(entry as usize, column) };
        }
    }
}

impl<T> Clone for Factors<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Factors<T> {}
