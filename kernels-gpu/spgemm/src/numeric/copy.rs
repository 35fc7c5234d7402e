//! Rows of C whose values need no sums: rows of one nonzero of A, and rows that the symbolic phase
//! has computed.
//!
//! | kernel | rows | a warp takes |
//! |---|---|---|
//! | [`copy_products`] | one nonzero of A | 1024 entries: multiples of the row of B |
//! | [`copy_rows`] | short rows with staged columns and values | 16 rows, their entries numbered by prefix sums |
//!
//! With the entries of 16 rows numbered, all 32 lanes have work. With a group of lanes per row,
//! short rows would wait for longer ones. An entry costs its column and value, read and written.
//! [`copy_rows`] copies both, or one of them: to copy values first takes less memory.

use crate::products::bins::{BIN_BITS, SymbolicValues, symbolic};
use crate::products::lanes::{inclusive_sum, owner, warp_of_grid};
use crate::products::operands::{Factors, OperandPatterns, OutputPattern, RowList};
use core::array;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Threads in a block.
const BLOCK: u32 = 256;

/// Entries per lane whose loads are in flight together.
const UNROLL: usize = 4;

/// Rows of a warp of [`copy_rows`].
const ROWS_PER_WARP: u32 = 16;

/// Entries that a warp of [`copy_products`] takes.
pub const CHUNK: u32 = 1024;

/// The launch of [`copy_rows`] for this many rows.
pub fn launch_rows(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows.div_ceil(BLOCK / WARP_SIZE * ROWS_PER_WARP), BLOCK)
}

/// The launch of [`copy_products`] for this many chunks of rows, a warp each.
pub fn launch_products(chunks: u32) -> LaunchConfig {
    LaunchConfig::new(chunks.div_ceil(BLOCK / WARP_SIZE), BLOCK)
}

/// The values of rows of one nonzero of A: those of the row of B, multiplied. Also their columns if
/// C lacks them. A warp takes [`CHUNK`] entries of a row.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The items are chunks of [`CHUNK`] entries of rows
/// with one nonzero of A. `c` is the pattern of their product (see [`OutputPattern`]), and `values`
/// has room for its entries. The launch is [`launch_products`]'s.
#[kernel(name = "spgemm_copy_products", T = [f32, f64])]
pub unsafe fn copy_products<T: Real>(
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
    c: OutputPattern,
    values: GlobalMut<T>,
) {
    let (item, lane) = (warp_of_grid(), warp::lane_id());
    if item >= items.count {
        return;
    }
    // SAFETY: `item` is below `items.count`, checked above. The row of C has as many
    // entries as the row of B, and `p` is below that number.
    unsafe {
        let [row, chunk] = items.load(item);
        let k = operands.a.row_ptr.load(row as usize) as usize;
        let factor = factors.a.load(k);
        let (start, end) = operands.b.row(operands.a.col_idx.load(k));
        let to = c.row_ptr.load(row as usize);
        let first = chunk * CHUNK;
        let end_of_chunk = first + (end - start - first).min(CHUNK);
        let mut p = first + lane;
        while p < end_of_chunk {
            let value = multiple(factor, factors.b.load((start + p) as usize));
            values.store((to + p) as usize, value);
            if c.writes_columns() {
                c.write_column(to + p, operands.b.col_idx.load((start + p) as usize));
            }
            p += WARP_SIZE;
        }
    }
}

/// The entry with this one product, as other kernels add it up: from 0 on, so that a product of -0.0
/// gives 0.0.
#[inline(always)]
fn multiple<T: Real>(factor: T, value: T) -> T {
    factor.mul_add(value, T::ZERO)
}

/// The columns and values that the symbolic phase has staged.
#[repr(C)]
#[derive(KernelParam)]
pub struct StagedRows<T> {
    /// Where each row starts in both arrays.
    pub starts: Global<u32>,
    /// The columns.
    pub columns: Global<u32>,
    /// The values of sorted rows; not read for rows without [`SymbolicValues`].
    pub values: Global<T>,
}

impl<T> Clone for StagedRows<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for StagedRows<T> {}

/// Copies columns and values of each row that has [`SymbolicValues`] to their place in C. A warp
/// takes 16 rows, a lane every 32nd of their entries.
///
/// If `col_idx` is null, columns are not copied, and if `values` is null, values are not. At most one of them is null.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). `row_words` is that of
/// [`row_work`](crate::analysis::work::row_work). `staged` has the columns of the rows in `known` if
/// `col_idx` is not null, and their values if `values` is not; rows of one nonzero of A come from B.
/// `row_ptr` has the row pointers of C. `col_idx` and `values` have room for its entries, but one of
/// them may be null. The launch is [`launch_rows`]'s.
#[kernel(name = "spgemm_copy_rows", T = [f32, f64])]
pub unsafe fn copy_rows<T: Real>(
    operands: OperandPatterns,
    factors: Factors<T>,
    row_words: Global<u32>,
    known: SymbolicValues,
    staged: StagedRows<T>,
    row_ptr: Global<u32>,
    col_idx: GlobalMut<u32>,
    values: GlobalMut<T>,
) {
    let sources = CopySources {
        operands,
        factors,
        row_words,
        known,
        staged,
        row_ptr,
    };
    // SAFETY: the contract of this kernel; `values` is not null if `col_idx` is.
    unsafe {
        match (col_idx.address() != 0, values.address() != 0) {
            (true, true) => sources.copy::<true, true>(col_idx, values),
            (true, false) => sources.copy::<true, false>(col_idx, values),
            (false, _) => sources.copy::<false, true>(col_idx, values),
        }
    }
}

/// What [`copy_rows`] reads.
struct CopySources<T> {
    operands: OperandPatterns,
    factors: Factors<T>,
    row_words: Global<u32>,
    known: SymbolicValues,
    staged: StagedRows<T>,
    row_ptr: Global<u32>,
}

impl<T: Real> CopySources<T> {
    /// Copies the rows of the warp.
    ///
    /// # Safety
    ///
    /// That of [`copy_rows`]. `col_idx` is not null with `COLUMNS`, and `values` is not with `VALUES`. All lanes of the
    /// warp call it.
    #[inline(always)]
    unsafe fn copy<const COLUMNS: bool, const VALUES: bool>(
        &self,
        col_idx: GlobalMut<u32>,
        values: GlobalMut<T>,
    ) {
        let b = &self.operands.b;
        let lane = warp::lane_id();
        // SAFETY: `p` is below `total` where an entry is copied. The loop runs alike for all lanes of the warp, so all
        // reach each shuffle.
        unsafe {
            let row = self.row_of_lane();
            let are_from_b = warp::ballot(FULL_MASK, row.is_from_b);
            let sum = inclusive_sum::<32>(FULL_MASK, row.count);
            let total = warp::shfl_idx(FULL_MASK, sum, WARP_SIZE - 1, WARP_SIZE);
            let before_row = sum - row.count;
            let (from, to) = (
                row.from.wrapping_sub(before_row),
                row.to.wrapping_sub(before_row),
            );
            // The lanes' entries begin at a cache line of C: a write of 32 entries of 4 bytes then touches one line,
            // not two, as long as no rows are left out.
            let before = warp::shfl_idx(FULL_MASK, to, 0, WARP_SIZE) % WARP_SIZE;
            let mut first = 0;
            while first < total.saturating_add(before) {
                // A lane before the first entry has a number above all entries.
                let number = |u: u32| (first + u * WARP_SIZE + lane).wrapping_sub(before);
                let entries: [(u32, u32, T); UNROLL] = array::from_fn(|u| {
                    let p = number(u as u32);
                    let owner = owner::<32>(FULL_MASK, sum, p);
                    let from = warp::shfl_idx(FULL_MASK, from, owner, WARP_SIZE).wrapping_add(p);
                    let to = warp::shfl_idx(FULL_MASK, to, owner, WARP_SIZE).wrapping_add(p);
                    let factor = if are_from_b == 0 || !VALUES {
                        T::ZERO
                    } else {
                        warp::shfl_idx(FULL_MASK, row.factor, owner, WARP_SIZE)
                    };
                    if p >= total {
                        return (0, 0, T::ZERO);
                    }
                    let (from, (mut column, mut value)) = (from as usize, (0, T::ZERO));
                    if are_from_b >> owner & 1 == 1 {
                        if COLUMNS {
                            column = b.col_idx.load(from);
                        }
                        if VALUES {
                            value = multiple(factor, self.factors.b.load(from));
                        }
                    } else {
                        if COLUMNS {
                            column = self.staged.columns.load(from);
                        }
                        if VALUES {
                            value = self.staged.values.load(from);
                        }
                    }
                    (to, column, value)
                });
                unroll!(u in 0..4 {
                    if number(u as u32) < total {
                        let (to, column, value) = entries[u];
                        if COLUMNS {
                            col_idx.store(to as usize, column);
                        }
                        if VALUES {
                            values.store(to as usize, value);
                        }
                    }
                });
                first += UNROLL as u32 * WARP_SIZE;
            }
        }
    }

    /// The row of the lane; one without entries if it has none, or if the row is not copied.
    ///
    /// # Safety
    ///
    /// That of [`copy_rows`].
    #[inline(always)]
    unsafe fn row_of_lane(&self) -> RowToCopy<T> {
        let (lane, mut copied) = (warp::lane_id(), RowToCopy::EMPTY);
        let first_row = thread::index_1d() / u64::from(WARP_SIZE) * u64::from(ROWS_PER_WARP);
        let row = first_row + u64::from(lane);
        if lane >= ROWS_PER_WARP || row >= u64::from(self.operands.a.rows) {
            return copied;
        }
        let (a, b, row) = (&self.operands.a, &self.operands.b, row as usize);
        // SAFETY: `row` is below `a.rows`. A row in bin `COPY` has one nonzero of A.
        unsafe {
            let bin = self.row_words.load(row) & ((1 << BIN_BITS) - 1);
            copied.to = self.row_ptr.load(row);
            let count = self.row_ptr.load(row + 1) - copied.to;
            if !self.known.contains(bin, count) {
                return copied;
            }
            copied.count = count;
            if bin == symbolic::COPY {
                let k = a.row_ptr.load(row) as usize;
                copied.from = b.row_ptr.load(a.col_idx.load(k) as usize);
                copied.factor = self.factors.a.load(k);
                copied.is_from_b = true;
            } else {
                copied.from = self.staged.starts.load(row);
            }
        }
        copied
    }
}

/// A row of C to copy.
struct RowToCopy<T> {
    /// The number of its entries.
    count: u32,
    /// The position of the first, in B or where the symbolic phase has staged it.
    from: u32,
    /// Its position in C.
    to: u32,
    /// Whether its entries are multiples of a row of B.
    is_from_b: bool,
    /// By what these are multiplied.
    factor: T,
}

impl<T: Real> RowToCopy<T> {
    const EMPTY: Self = Self {
        count: 0,
        from: 0,
        to: 0,
        is_from_b: false,
        factor: T::ONE,
    };
}

const _: () = assert!(UNROLL == 4);
