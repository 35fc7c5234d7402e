//! The list of rows for the kernel [`aggregate`]: long rows first, short ones sorted by length within windows.
//!
//! Sorted rows make the lanes of a warp end together. Windows keep rows close that were close before, since these may
//! share columns.

use super::GcnElement;
use crate::csr::DevicePattern;
use crate::device::{DeviceBuffer, Scratch, ZeroCounters};
use crate::operand::OperandError;
use std::cmp::Reverse;
use warprow_kernels::gcn::aggregate::{
    MAX_FEATURES, MAX_OF_LANES, MAX_OF_WARP, NUMBERS_OF_ROW, PIECE, RowList,
};

/// Rows of a window: four blocks, which share columns in a cache. In the sorted window of 32 warps, the rows of a warp
/// differ by about a 32nd of the range of lengths.
const WINDOW: usize = 256;

/// The list of a matrix's rows on its device.
#[derive(Debug)]
pub struct DeviceRowList<T: GcnElement> {
    rows: DeviceBuffer<u32>,
    pieces: DeviceBuffer<u32>,
    counts: [u32; 3],
    sums: Scratch<T>,
    arrivals: ZeroCounters,
}

impl<T: GcnElement> DeviceRowList<T> {
    /// The list of a matrix.
    ///
    /// # Errors
    ///
    /// Too little device memory; the driver's.
    pub fn new(matrix: &DevicePattern) -> Result<Self, OperandError> {
        let device = matrix.device();
        let list = SortedRows::new(&matrix.row_ptr.download()?);
        Ok(Self {
            rows: device.upload(&list.rows)?,
            pieces: device.upload(&list.pieces)?,
            counts: list.counts,
            sums: Scratch::new(device),
            arrivals: ZeroCounters::new(device, list.counts[0] as usize),
        })
    }

    /// How many pieces of rows blocks compute, and how many rows warps and four lanes compute.
    pub fn counts(&self) -> [u32; 3] {
        self.counts
    }

    /// Calls `launch` with the list.
    ///
    /// # Errors
    ///
    /// Those of `launch`; too little device memory for the sums of pieces.
    pub fn with<E: From<crate::device::DeviceError>>(
        &self,
        launch: impl FnOnce(RowList<T>) -> Result<(), E>,
    ) -> Result<(), E> {
        let [of_blocks, of_warps, of_lanes] = self.counts;
        (self.sums).with(of_blocks.into(), MAX_FEATURES.into(), |sums| {
            self.arrivals.with(|arrivals| {
                launch(RowList {
                    of_blocks,
                    of_warps,
                    of_lanes,
                    rows: self.rows.read_only(),
                    pieces: self.pieces.read_only(),
                    sums,
                    arrivals,
                })
            })
        })
    }
}

/// The list of a matrix's rows.
#[derive(Debug, PartialEq, Eq)]
struct SortedRows {
    /// [`NUMBERS_OF_ROW`] numbers for each row or piece of a row.
    rows: Vec<u32>,
    /// For each piece the first piece of its row, and how many the row has.
    pieces: Vec<u32>,
    /// How many pieces of rows blocks compute, and how many rows warps and four lanes compute.
    counts: [u32; 3],
}

impl SortedRows {
    /// The rows between these row pointers.
    fn new(row_ptr: &[u32]) -> Self {
        let rows = row_ptr.len().saturating_sub(1);
        let length = |row: usize| row_ptr[row + 1] - row_ptr[row];
        let mut long = [Vec::new(), Vec::new()];
        let mut short = Vec::with_capacity(rows);
        let mut of_length = vec![Vec::new(); MAX_OF_LANES as usize + 1];
        for first in (0..rows).step_by(WINDOW) {
            for row in first..rows.min(first + WINDOW) {
                match length(row) {
                    length if length > MAX_OF_WARP => long[0].push(row),
                    length if length > MAX_OF_LANES => long[1].push(row),
                    length => of_length[length as usize].push(row),
                }
            }
            for rows in of_length.iter_mut().rev() {
                short.append(rows);
            }
        }
        let [of_blocks, mut of_warps] = long;
        // The longest first: nobody waits for them at the end.
        of_warps.sort_by_key(|&row| Reverse(length(row)));
        let mut list = Self {
            rows: Vec::with_capacity(NUMBERS_OF_ROW * rows),
            pieces: Vec::new(),
            counts: [0; 3],
        };
        for row in of_blocks {
            let (first, pieces) = (list.counts[0], length(row).div_ceil(PIECE));
            for piece in 0..pieces {
                let start = row_ptr[row] + piece * PIECE;
                let end = row_ptr[row + 1].min(start.saturating_add(PIECE));
                list.push(row, start, end, 0);
                list.pieces.extend([first, pieces]);
            }
        }
        for (rows, who) in [(of_warps, 1), (short, 2)] {
            for row in rows {
                list.push(row, row_ptr[row], row_ptr[row + 1], who);
            }
        }
        list
    }

    /// Adds the nonzeros from `start` to `end` of a row.
    fn push(&mut self, row: usize, start: u32, end: u32, who: usize) {
        // The cast is exact: a matrix has fewer than 2^32 rows.
        self.rows.extend([row as u32, start, end, 0]);
        self.counts[who] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_ptr(lengths: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let mut ends = vec![0];
        ends.extend(lengths.into_iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        }));
        ends
    }

    #[test]
    fn rows_are_listed_once_by_who_computes_them() {
        let lengths = [3, 0, 33, 1025, 32, 3, 70, 2048];
        let list = SortedRows::new(&row_ptr(lengths));
        assert_eq!(list.counts, [4, 2, 4]);
        let rows: Vec<u32> = list.rows.iter().copied().step_by(NUMBERS_OF_ROW).collect();
        assert_eq!(rows, [3, 3, 7, 7, 6, 2, 4, 0, 5, 1]);
        let pieces = [
            [3, 36, 1060, 0],
            [3, 1060, 1061, 0],
            [7, 1166, 2190, 0],
            [7, 2190, 3214, 0],
        ];
        assert_eq!(list.rows[..4 * NUMBERS_OF_ROW], pieces.concat());
        assert_eq!(list.pieces, [0, 2, 0, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn short_rows_stay_in_their_window() {
        let lengths = (0..3 * WINDOW as u32 / 2).map(|row| row % 30);
        let list = SortedRows::new(&row_ptr(lengths));
        assert_eq!(list.counts, [0, 0, 3 * WINDOW as u32 / 2]);
        let rows: Vec<u32> = list.rows.iter().copied().step_by(NUMBERS_OF_ROW).collect();
        let (first, second) = rows.split_at(WINDOW);
        assert!(first.iter().all(|&row| (row as usize) < WINDOW));
        for rows in [first, second] {
            assert!(rows.is_sorted_by_key(|row| Reverse(row % 30)));
        }
    }

    #[test]
    fn a_matrix_without_rows_has_an_empty_list() {
        let list = SortedRows::new(&[0]);
        assert!(list.rows.is_empty() && list.counts == [0; 3]);
    }
}
