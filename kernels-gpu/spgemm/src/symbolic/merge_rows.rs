//! Both phases, for rows of at most 16 nonzeros of A: a lane merges the rows of B.
//!
//! Rows of B are sorted. A lane holds the next column of each of them, its *head*, in registers. In
//! a step the least head is the column of the next entry. The lane adds up the products of all rows
//! of B with this head, and loads the next heads of these rows.
//!
//! ```text
//! rows of B      heads in each step        entries
//! 3 7            3   7   7   -             3 4 7 9
//! 4 7 9          4   4   7   9             1 1 2 1 products
//! ```
//!
//! So there is no sort, no table and no atomic operation, and a row costs as many steps as it has
//! entries. Sums are in the order of the nonzeros of A, so they are the same in every run. After 8
//! or 16 steps the warp writes the entries of its 32 rows: they wait in shared memory, so that
//! neighbouring lanes write neighbouring entries. 16 steps write longer pieces of rows, and leave the
//! L1 cache less memory.
//!
//! The symbolic phase counts entries first, and stages nothing in device memory. Columns still go to
//! shared memory then, where nobody reads them. A product costs its column and value of B.

use crate::products::operands::{Factors, OperandPatterns, RowList};
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE};
use warprow_kernels_matrix::unroll;

/// Threads in a block, each with a row.
const BLOCK: u32 = 128;

/// Least and greatest number of steps between two writes.
const STEPS: [u32; 2] = [8, 16];

/// The steps between two writes for rows that have `mean` entries in the mean.
pub fn steps(mean: u32, writes_columns_and_values: bool) -> u32 {
    STEPS[usize::from(writes_columns_and_values && mean > STEPS[1])]
}

/// Elements from a row's entries to the next row's in shared memory: odd, for different banks.
const fn pitch(steps: u32) -> u32 {
    steps + 1
}

/// The launch for `rows` rows: of [`merge_products`], or with `element_bytes` 0 of [`merge_rows`].
pub fn launch(rows: u32, steps: u32, element_bytes: u32) -> LaunchConfig {
    let shared_bytes = BLOCK * pitch(steps) * (4 + element_bytes);
    LaunchConfig::new(rows.div_ceil(BLOCK), BLOCK).shared_bytes(shared_bytes)
}

/// The number of entries of each listed row where `entries` is not null, and its columns, ascending,
/// where `columns` is not null. A lane takes a row.
///
/// # Safety
///
/// `operands` is valid (see [`OperandPatterns`]). The listed rows have at most `NONZEROS` nonzeros
/// of A. `entries` has a number per row. `columns` has room for each row's entries from its start in
/// `starts` on. `steps` is one of [`steps`]' numbers, and the launch is [`launch`]'s for it.
#[kernel(name = "spgemm_merge_rows", NONZEROS = [8, 16])]
pub unsafe fn merge_rows<const NONZEROS: u32>(
    operands: OperandPatterns,
    items: RowList,
    steps: u32,
    starts: Global<u32>,
    columns: GlobalMut<u32>,
    entries: GlobalMut<u32>,
) {
    let merger = RowMerger::<f32, false> {
        operands,
        factors: Factors::new(Global::from_address(0), Global::from_address(0)),
        items,
        steps,
        starts,
        columns,
        values: GlobalMut::from_address(0),
        entries,
    };
    // SAFETY: `merge` requires what this kernel requires.
    unsafe { merger.merge::<NONZEROS>() };
}

/// The values of each listed row, and its columns where `columns` is not null. A lane takes a row.
///
/// # Safety
///
/// As for [`merge_rows`]; `values` has room for each row's entries too.
#[kernel(name = "spgemm_merge_products", T = [f32, f64], NONZEROS = [8, 16])]
pub unsafe fn merge_products<T: Real, const NONZEROS: u32>(
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
    steps: u32,
    starts: Global<u32>,
    columns: GlobalMut<u32>,
    values: GlobalMut<T>,
) {
    let merger = RowMerger::<T, true> {
        operands,
        factors,
        items,
        steps,
        starts,
        columns,
        values,
        entries: GlobalMut::from_address(0),
    };
    // SAFETY: `merge` requires what this kernel requires.
    unsafe { merger.merge::<NONZEROS>() };
}

/// The rows of a launch, and where their entries go.
struct RowMerger<T, const VALUES: bool> {
    operands: OperandPatterns,
    factors: Factors<T>,
    items: RowList,
    steps: u32,
    starts: Global<u32>,
    columns: GlobalMut<u32>,
    values: GlobalMut<T>,
    entries: GlobalMut<u32>,
}

/// What is left of a row of B, and the nonzero of A that it is multiplied by.
#[derive(Clone, Copy)]
struct Head<T> {
    /// The next column; 2^32 - 1, which no column is, if nothing is left.
    column: u32,
    /// The value there.
    value: T,
    position: u32,
    end: u32,
    factor: T,
}

/// The column of a head that has come to the end of its row.
const NO_COLUMN: u32 = u32::MAX;

impl<T: Real, const VALUES: bool> RowMerger<T, VALUES> {
    /// Merges the row of the calling lane.
    ///
    /// # Safety
    ///
    /// As for [`merge_rows`], or with `VALUES` for [`merge_products`]; all lanes of the warp call it.
    #[inline(always)]
    unsafe fn merge<const NONZEROS: u32>(&self) {
        // SAFETY: `merge_row` requires of its caller what this function requires.
        unsafe {
            match NONZEROS {
                8 => self.merge_row::<8>(),
                _ => self.merge_row::<16>(),
            }
        }
    }

    #[inline(always)]
    unsafe fn merge_row<const NONZEROS: usize>(&self) {
        let (thread, lane) = (thread::thread_idx_x(), warp::lane_id());
        let item = thread::block_idx_x() * BLOCK + thread;
        if item - lane >= self.items.count {
            return;
        }
        let columns_shared = shared::dynamic_shared_mem::<u32>();
        let pitch = pitch(self.steps);
        let values_shared = columns_shared.offset((BLOCK * pitch) as usize).cast::<T>();
        let writes = VALUES || self.columns.address() != 0;
        // SAFETY: a lane loads an item only if its number is below `items.count`. Each row has its
        // own part of shared memory, and the warp synchronises between writes and reads. The outer
        // loop runs on a vote, so all lanes reach each shuffle.
        unsafe {
            let is_row = item < self.items.count;
            let (mut row, mut to, mut nonzeros) = (0, 0, (0, 0));
            if is_row {
                [row, _] = self.items.load(item);
                nonzeros = self.operands.a.row(row);
                if writes {
                    to = self.starts.load(row as usize);
                }
            }
            let mut heads = self.heads::<NONZEROS>(nonzeros);
            let mut total = 0;
            loop {
                let mut count = 0;
                while count < self.steps {
                    let column = least(&heads);
                    if column == NO_COLUMN {
                        break;
                    }
                    let sum = self.take(&mut heads, column);
                    let at = (thread * pitch + count) as usize;
                    columns_shared.store(at, column);
                    if VALUES {
                        values_shared.store(at, sum);
                    }
                    count += 1;
                }
                warp::sync_warp(FULL_MASK);
                if writes {
                    let first = (thread - lane) * pitch;
                    self.write(
                        columns_shared.offset(first as usize),
                        values_shared.offset(first as usize),
                        to + total,
                        count,
                    );
                }
                total += count;
                if !warp::any(FULL_MASK, count == self.steps) {
                    break;
                }
                warp::sync_warp(FULL_MASK);
            }
            if is_row && !VALUES && self.entries.address() != 0 {
                self.entries.store(row as usize, total);
            }
        }
    }

    /// The rows of B of a row's nonzeros of A.
    ///
    /// # Safety
    ///
    /// `nonzeros` are those of a row of A, start and end.
    #[inline(always)]
    unsafe fn heads<const NONZEROS: usize>(&self, (start, end): (u32, u32)) -> [Head<T>; NONZEROS] {
        let mut heads = [Head {
            column: NO_COLUMN,
            value: T::ZERO,
            position: 0,
            end: 0,
            factor: T::ZERO,
        }; NONZEROS];
        // The loads of all nonzeros are in flight together, then those of their rows of B.
        // SAFETY: only nonzeros below `end` are loaded. Columns of A are rows of B. A head is
        // loaded only from a row that is not empty.
        unsafe {
            unroll!(j in 0..16 {
                let k = start + j as u32;
                if j < NONZEROS && k < end {
                    heads[j].column = self.operands.a.col_idx.load(k as usize);
                    if VALUES {
                        heads[j].factor = self.factors.a.load(k as usize);
                    }
                }
            });
            unroll!(j in 0..16 {
                if j < NONZEROS && heads[j].column != NO_COLUMN {
                    (heads[j].position, heads[j].end) = self.operands.b.row(heads[j].column);
                }
            });
            unroll!(j in 0..16 {
                if j < NONZEROS {
                    heads[j] = self.loaded(heads[j]);
                }
            });
        }
        heads
    }

    /// The head with the column and the value at its position.
    ///
    /// # Safety
    ///
    /// B has at least `head.end` nonzeros.
    #[inline(always)]
    unsafe fn loaded(&self, head: Head<T>) -> Head<T> {
        let (mut column, mut value) = (NO_COLUMN, T::ZERO);
        if head.position < head.end {
            let position = head.position as usize;
            // SAFETY: `position` is below `end`, checked above.
            unsafe {
                column = self.operands.b.col_idx.load(position);
                if VALUES {
                    value = self.factors.b.load(position);
                }
            }
        }
        Head {
            column,
            value,
            ..head
        }
    }

    /// Adds up the products of a column, and goes on to the next nonzero in the rows of B that have
    /// it.
    ///
    /// # Safety
    ///
    /// `column` is not [`NO_COLUMN`], and the heads are those of rows of B.
    #[inline(always)]
    unsafe fn take<const NONZEROS: usize>(
        &self,
        heads: &mut [Head<T>; NONZEROS],
        column: u32,
    ) -> T {
        let mut sum = T::ZERO;
        unroll!(j in 0..16 {
            if j < NONZEROS && heads[j].column == column {
                sum = heads[j].factor.mul_add(heads[j].value, sum);
                heads[j].position += 1;
                // SAFETY: `end` is that of a row of B.
                heads[j] = unsafe { self.loaded(heads[j]) };
            }
        });
        sum
    }

    /// Writes the entries of the warp's rows that are in shared memory. `to` is where the next
    /// entries of the lane's own row go, `count` their number.
    ///
    /// # Safety
    ///
    /// All lanes of the warp call it, and the warp has synchronised. The output has room for the
    /// entries.
    #[inline(always)]
    unsafe fn write(
        &self,
        columns_shared: Shared<u32>,
        values_shared: Shared<T>,
        to: u32,
        count: u32,
    ) {
        // As many lanes as there are steps write the entries of a row.
        let shift = self.steps.trailing_zeros();
        let entry = warp::lane_id() & (self.steps - 1);
        let mut owner = warp::lane_id() >> shift;
        // SAFETY: an entry is read and written only if its row has that many. The loop runs alike
        // for all lanes.
        unsafe {
            while owner < WARP_SIZE {
                // Positions of an unrolled loop would need registers that the heads have.
                thread::keep_rolled();
                let count = warp::shfl_idx(FULL_MASK, count, owner, WARP_SIZE);
                let to = (warp::shfl_idx(FULL_MASK, to, owner, WARP_SIZE) + entry) as usize;
                if entry < count {
                    let at = (owner * pitch(self.steps) + entry) as usize;
                    if self.columns.address() != 0 {
                        self.columns.store(to, columns_shared.load(at));
                    }
                    if VALUES {
                        self.values.store(to, values_shared.load(at));
                    }
                }
                owner += WARP_SIZE >> shift;
            }
        }
    }
}

/// The least column of all heads.
#[inline(always)]
fn least<T, const NONZEROS: usize>(heads: &[Head<T>; NONZEROS]) -> u32 {
    let mut least = NO_COLUMN;
    unroll!(j in 0..16 {
        if j < NONZEROS {
            least = least.min(heads[j].column);
        }
    });
    least
}

const _: () = assert!(BLOCK.is_multiple_of(WARP_SIZE) && STEPS[0] == 8 && STEPS[1] == 16);
