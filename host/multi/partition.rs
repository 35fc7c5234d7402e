//! A division of a matrix's rows among parts: contiguous, equal in work, with long rows cut.
//!
//! ```text
//! row 0   x x                 part 0: rows 0 to 1, owns 0 and 1
//! row 1   x x x | x x x x     part 1: rows 1 to 1, owns none: a piece of row 1
//!               ^      | x    part 2: rows 1 to 3, owns 2 and 3
//! row 2   x x          ^
//! row 3   x            cuts
//! ```
//!
//! A row that is cut between parts is owned by the part that has its first nonzero. That part adds the others' sums.

use crate::operand::OperandError;
use std::num::NonZeroUsize;
use std::ops::Range;

/// The largest part has at most this many percent more work than the mean, up to the work of one nonzero.
pub const MAX_IMBALANCE_PERCENT: u64 = 5;

/// Whether a row may be cut between parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowCuts {
    /// Where no boundary between rows balances the parts.
    #[default]
    Allowed,
    /// Never: each row is summed by one part. A part may then have as much work as the longest row.
    Never,
}

/// What a row costs: 1, and for each nonzero the following.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Work<'a> {
    /// 1 for each nonzero: the work of SpMM.
    Nonzeros,
    /// 1 for each nonzero, and the length of the row of B that it selects: the work of SpGEMM.
    Products {
        /// The column of each nonzero.
        col_idx: &'a [u32],
        /// The lengths of the rows of B.
        b_lengths: &'a [u32],
    },
}

impl Work<'_> {
    fn of_nonzero(self, nonzero: usize) -> u64 {
        match self {
            Self::Nonzeros => 1,
            Self::Products { col_idx, b_lengths } => {
                1 + u64::from(b_lengths[col_idx[nonzero] as usize])
            }
        }
    }

    fn of_row(self, nonzeros: Range<usize>) -> u64 {
        match self {
            Self::Nonzeros => 1 + nonzeros.len() as u64,
            Self::Products { .. } => 1 + nonzeros.map(|k| self.of_nonzero(k)).sum::<u64>(),
        }
    }
}

/// What one part has of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    clippy::exhaustive_structs,
    reason = "who divides a matrix himself makes the parts"
)]
pub struct Part {
    /// The rows of which it has nonzeros, or the empty rows; the first and the last may be cut.
    pub rows: Range<usize>,
    /// Its nonzeros.
    pub nonzeros: Range<usize>,
    /// The rows of the result that it owns: `rows`, without a first row that begins in a part before.
    pub owned: Range<usize>,
    /// Its work, in the units of [`Work`].
    pub work: u64,
}

/// A division of a matrix's rows among parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    parts: Vec<Part>,
}

/// Where a part starts: at a nonzero of a row, or at the row itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cut {
    row: usize,
    nonzero: usize,
    /// Work before the cut.
    work: u64,
}

impl Partition {
    /// Divides rows so that all parts have the same work, up to [`MAX_IMBALANCE_PERCENT`]. `row_ptr` are the row
    /// pointers from 0 on.
    ///
    /// # Panics
    ///
    /// If `row_ptr` is empty, or does not ascend.
    pub fn by_work(row_ptr: &[u32], work: Work<'_>, parts: NonZeroUsize, cuts: RowCuts) -> Self {
        let rows = row_ptr.len() - 1;
        let of_row = |row: usize| work.of_row(row_ptr[row] as usize..row_ptr[row + 1] as usize);
        let mut before: Vec<u64> = parallel::map(rows, of_row);
        before.push(0);
        let mut total = 0;
        for work in &mut before {
            total += std::mem::replace(work, total);
        }
        let parts = parts.get() as u64;
        // A boundary between rows this near to the ideal one is taken: two of them make a part this much larger.
        let tolerance = total * MAX_IMBALANCE_PERCENT / (200 * parts);
        let boundary = |part: u64| {
            let ideal = (u128::from(total) * u128::from(part) / u128::from(parts)) as u64;
            let row = before.partition_point(|&work| work <= ideal) - 1;
            let whole = |row: usize| Cut {
                row,
                nonzero: row_ptr[row] as usize,
                work: before[row],
            };
            if row == rows {
                return whole(row);
            }
            let nearest = match ideal - before[row] <= before[row + 1] - ideal {
                true => whole(row),
                false => whole(row + 1),
            };
            match cuts {
                RowCuts::Allowed if nearest.work.abs_diff(ideal) > tolerance => {
                    inside(row, row_ptr, work, before[row], ideal).unwrap_or(nearest)
                }
                _ => nearest,
            }
        };
        let cuts: Vec<Cut> = (0..=parts).map(boundary).collect();
        Self::between(&cuts, row_ptr)
    }

    /// Parts of whole rows: part i has as many rows as the number i says.
    ///
    /// # Panics
    ///
    /// If there are not as many rows in all as `row_ptr` has.
    pub fn by_row_counts(row_ptr: &[u32], counts: &[usize]) -> Self {
        assert_eq!(counts.iter().sum::<usize>() + 1, row_ptr.len());
        let mut row = 0;
        let mut cuts = Vec::with_capacity(counts.len() + 1);
        for count in [0].iter().chain(counts) {
            row += count;
            let nonzero = row_ptr[row] as usize;
            let work = (row + nonzero) as u64;
            cuts.push(Cut { row, nonzero, work });
        }
        Self::between(&cuts, row_ptr)
    }

    /// The division with these parts, which another process has computed.
    ///
    /// # Errors
    ///
    /// The rows or nonzeros of a part do not follow those of the part before.
    pub fn of_parts(parts: Vec<Part>) -> Result<Self, OperandError> {
        let (mut nonzero, mut owned) = (0, 0);
        for (number, part) in parts.iter().enumerate() {
            let starts = (part.nonzeros.start, part.owned.start) == (nonzero, owned);
            let rows = &part.rows;
            let has_owned = rows.end == part.owned.end
                && (part.owned.start == rows.start || part.owned.start == rows.start + 1);
            if !starts || !has_owned || rows.is_empty() && !part.nonzeros.is_empty() {
                return Err(OperandError::Structure {
                    line: "part",
                    number,
                    reason: "its rows or nonzeros do not follow those of the part before".into(),
                });
            }
            (nonzero, owned) = (part.nonzeros.end, part.owned.end);
        }
        Ok(Self { parts })
    }

    fn between(cuts: &[Cut], row_ptr: &[u32]) -> Self {
        let is_inside = |cut: Cut| cut.nonzero > row_ptr[cut.row] as usize;
        let first_owned = |cut: Cut| cut.row + usize::from(is_inside(cut));
        let part = |cuts: &[Cut]| {
            let (start, end) = (cuts[0], cuts[1]);
            Part {
                rows: start.row..first_owned(end).max(start.row),
                nonzeros: start.nonzero..end.nonzero,
                owned: first_owned(start)..first_owned(end),
                work: end.work - start.work,
            }
        };
        let mut parts: Vec<Part> = cuts.windows(2).map(part).collect();
        for part in parts.iter_mut().filter(|part| part.nonzeros.is_empty()) {
            // Nothing is left of a cut row between two cuts at the same place.
            part.rows = part.owned.clone();
        }
        Self { parts }
    }

    /// The parts in the order of their rows.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Where the owned rows of each part start, and where the last part's end.
    pub fn owners(&self) -> Owners {
        let starts = self.parts.iter().map(|part| part.owned.start);
        let end = self.parts.last().map(|part| part.owned.end);
        Owners {
            starts: starts.chain(end).collect(),
        }
    }

    /// The work of the largest part divided by the mean; 1 for no work.
    pub fn imbalance(&self) -> f64 {
        let total: u64 = self.parts.iter().map(|part| part.work).sum();
        let largest = self.parts.iter().map(|part| part.work).max().unwrap_or(0);
        if total == 0 {
            return 1.0;
        }
        largest as f64 * self.parts.len() as f64 / total as f64
    }
}

/// The cut inside a row that is nearest to the ideal one; `None` if that is at an end of the row.
fn inside(row: usize, row_ptr: &[u32], work: Work<'_>, before: u64, ideal: u64) -> Option<Cut> {
    let nonzeros = row_ptr[row] as usize..row_ptr[row + 1] as usize;
    let (mut nonzero, mut done) = (nonzeros.start, before + 1);
    if let Work::Nonzeros = work {
        let taken = ideal.saturating_sub(done).min(nonzeros.len() as u64);
        nonzero += taken as usize;
        done += taken;
    }
    while nonzero < nonzeros.end {
        let next = done + work.of_nonzero(nonzero);
        if next > ideal && next - ideal > ideal.saturating_sub(done) {
            break;
        }
        (nonzero, done) = (nonzero + 1, next);
    }
    let is_inside = nonzero > nonzeros.start && nonzero < nonzeros.end;
    is_inside.then_some(Cut {
        row,
        nonzero,
        work: done,
    })
}

/// Which part owns which row of a dense matrix, or of B: each has a range of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owners {
    starts: Vec<usize>,
}

impl Owners {
    /// Ranges that differ by at most one row.
    pub fn equal(rows: usize, parts: NonZeroUsize) -> Self {
        let (each, more) = (rows / parts, rows % parts);
        let start = |part: usize| part * each + part.min(more);
        Self {
            starts: (0..=parts.get()).map(start).collect(),
        }
    }

    /// The number of parts.
    pub fn parts(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.starts[self.parts()]
    }

    /// The rows of a part.
    pub fn rows_of(&self, part: usize) -> Range<usize> {
        self.starts[part]..self.starts[part + 1]
    }

    /// The part that owns a row.
    pub fn owner(&self, row: usize) -> usize {
        self.starts.partition_point(|&start| start <= row) - 1
    }
}
