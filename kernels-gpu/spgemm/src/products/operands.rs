//! How the operands of a product are passed to kernels: patterns, row extents, and items of work.

use cuda_std::prelude::*;

/// Where the nonzeros of a matrix in CSR are.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Pattern {
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub cols: u32,
    /// `rows + 1` positions in `col_idx`.
    pub row_ptr: Global<u32>,
    /// The column of each nonzero, ascending within a row.
    pub col_idx: Global<u32>,
}

/// The patterns of A and B.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Operands {
    /// A, m x k.
    pub a: Pattern,
    /// B, k x n.
    pub b: Pattern,
    /// For each row of B four numbers: where it starts and ends, its first and its last column (see
    /// [`row_extents`](crate::analysis::work::row_extents)).
    pub extents: Global<u32>,
}

/// The values of A and B.
#[repr(C)]
pub struct Factors<T> {
    /// Of each nonzero of A.
    pub a: Global<T>,
    /// Of each nonzero of B.
    pub b: Global<T>,
    /// Of each nonzero of B its column and its value, a word each, if [`lane_products`](crate::products::lane_products) has put them
    /// beside each other; else at address 0.
    pub pairs: Global<u32>,
}

impl<T> Factors<T> {
    /// Values that are not paired with columns.
    pub const fn new(a: Global<T>, b: Global<T>) -> Self {
        Self {
            a,
            b,
            pairs: Global::from_address(0),
        }
    }
}

/// What the sub-warps, warps or blocks of a launch work on: a pair of numbers each, a row of C and, where rows are cut,
/// which of its chunks.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Items {
    /// The first item of the launch in `list`.
    pub first: u32,
    /// How many there are.
    pub count: u32,
    /// Row and chunk of each.
    pub list: Global<u32>,
}

/// The pattern of C as the numeric kernels read it and, where the columns are aside still, write it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Structure {
    /// `rows + 1` positions of entries.
    pub row_ptr: Global<u32>,
    /// Where the columns of each row start in `columns`: its row pointer, or where they were put aside.
    pub starts: Global<u32>,
    /// The columns of each row, ascending.
    pub columns: Global<u32>,
    /// Where the column of each entry belongs; nowhere, at address 0, if it is there.
    pub col_idx: GlobalMut<u32>,
}

impl Items {
    /// Row and chunk of an item of the launch.
    ///
    /// # Safety
    ///
    /// `item` is below `count`.
    #[inline(always)]
    pub unsafe fn load(&self, item: u32) -> [u32; 2] {
        // SAFETY: the caller's contract; pairs are aligned.
        unsafe { self.list.load2(2 * (self.first as usize + item as usize)) }
    }
}

impl Pattern {
    /// The positions of a row's nonzeros, start and end.
    ///
    /// # Safety
    ///
    /// `row` is below `rows`.
    #[inline(always)]
    pub unsafe fn row(&self, row: u32) -> (u32, u32) {
        let row = row as usize;
        // SAFETY: the caller's contract.
        unsafe { (self.row_ptr.load(row), self.row_ptr.load(row + 1)) }
    }
}

impl Structure {
    /// The positions of a row's entries, start and end.
    ///
    /// # Safety
    ///
    /// `row` is a row of C.
    #[inline(always)]
    pub unsafe fn row(&self, row: u32) -> (u32, u32) {
        let row = row as usize;
        // SAFETY: the caller's contract.
        unsafe { (self.row_ptr.load(row), self.row_ptr.load(row + 1)) }
    }

    /// The columns of a row.
    ///
    /// # Safety
    ///
    /// `row` is a row of C.
    #[inline(always)]
    pub unsafe fn columns(&self, row: u32) -> Global<u32> {
        // SAFETY: the caller's contract.
        let start = unsafe { self.starts.load(row as usize) };
        self.columns.offset(start as usize)
    }

    /// Whether the columns are to be written too.
    #[inline(always)]
    pub fn wants_columns(&self) -> bool {
        self.col_idx.address() != 0
    }

    /// Writes the column of an entry, if it is wanted.
    ///
    /// # Safety
    ///
    /// `entry` is an entry of C.
    #[inline(always)]
    pub unsafe fn put(&self, entry: u32, column: u32) {
        if self.wants_columns() {
            // SAFETY: the caller's contract.
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

macro_rules! arguments {
    ($($argument:ty),*) => {$(
        // SAFETY: `repr(C)`, of scalars and device pointers, without padding: two u32 before 8-byte pointers.
        #[cfg(not(target_arch = "nvptx64"))]
        unsafe impl KernelParam for $argument {}
    )*};
}
arguments!(Pattern, Operands, Items, Structure);

// SAFETY: `repr(C)`, of device pointers.
#[cfg(not(target_arch = "nvptx64"))]
unsafe impl<T: Element> KernelParam for Factors<T> {}
