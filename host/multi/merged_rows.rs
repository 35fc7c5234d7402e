//! Rows that are cut between parts, and the rows of a sparse product that their pieces make.

use super::division::Layout;
use crate::csr::DeviceCsr;
use crate::device::DeviceError;
use crate::spgemm::SpgemmElement;
use std::collections::BTreeMap;

/// The rows of which several parts have pieces: the parts of each, its owner first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CutRows {
    rows: BTreeMap<usize, Vec<Piece>>,
}

/// A piece of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub part: usize,
    /// The row among the part's rows.
    pub local_row: usize,
}

impl CutRows {
    pub fn of(layout: &Layout) -> Self {
        let parts = layout.partition().parts();
        let owners = layout.partition().owners();
        let mut rows: BTreeMap<usize, Vec<Piece>> = BTreeMap::new();
        for (number, part) in parts.iter().enumerate() {
            let row = part.rows.start;
            if row == part.owned.start {
                continue;
            }
            let piece = |part: usize| Piece {
                part,
                local_row: row - parts[part].rows.start,
            };
            let pieces = rows
                .entry(row)
                .or_insert_with(|| vec![piece(owners.owner(row))]);
            pieces.push(piece(number));
        }
        Self { rows }
    }

    pub fn count(&self) -> usize {
        self.rows.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &[Piece])> {
        self.rows
            .iter()
            .map(|(&row, pieces)| (row, pieces.as_slice()))
    }
}

/// The cut rows of C, merged: columns and values.
#[derive(Debug)]
pub(super) struct MergedRows<T> {
    rows: BTreeMap<usize, (Vec<u32>, Vec<T>)>,
}

impl<T: SpgemmElement> MergedRows<T> {
    /// Downloads the pieces, and adds the values of the same column.
    pub fn download<'a>(
        cut: &CutRows,
        parts: impl Iterator<Item = &'a DeviceCsr<T>>,
        row_ptrs: &[Vec<u32>],
    ) -> Result<Self, DeviceError> {
        let parts: Vec<&DeviceCsr<T>> = parts.collect();
        let mut rows = BTreeMap::new();
        for (row, pieces) in cut.iter() {
            let mut sums: BTreeMap<u32, T> = BTreeMap::new();
            for &Piece { part, local_row } in pieces {
                let row_ptr = &row_ptrs[part];
                let (start, end) = (row_ptr[local_row] as usize, row_ptr[local_row + 1] as usize);
                let mut columns = vec![0; end - start];
                let mut values = vec![T::default(); end - start];
                let c = parts[part];
                c.pattern()
                    .col_idx()
                    .copy_part_to_slice(start, &mut columns)?;
                c.values().copy_part_to_slice(start, &mut values)?;
                for (column, value) in columns.into_iter().zip(values) {
                    let sum = sums.get(&column).map_or(value, |&sum| sum + value);
                    sums.insert(column, sum);
                }
            }
            rows.insert(row, sums.into_iter().unzip());
        }
        Ok(Self { rows })
    }

    pub fn get(&self, row: usize) -> Option<&(Vec<u32>, Vec<T>)> {
        self.rows.get(&row)
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &(Vec<u32>, Vec<T>))> {
        self.rows.iter().map(|(&row, entries)| (row, entries))
    }
}
