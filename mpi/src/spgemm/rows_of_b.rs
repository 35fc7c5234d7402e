//! Rows of B that travel: each rank asks the owners for those that it needs.

use super::Spgemm;
use crate::world::{Word, World};
use anyhow::{Context, Result};
use sprs::CsMatI;
use std::ops::Range;
use warprow::{CsrMatrix, SpgemmElement};

/// For each rank, the nonzeros of this rank's rows of B that it has asked for.
pub(super) type Replies = Vec<Vec<Range<usize>>>;

/// Some rows of B, from this rank and the others.
pub(super) struct RowsOfB<T> {
    /// The rows, in the order in which they were asked for.
    pub b: CsrMatrix<T>,
    /// What this rank has sent.
    pub replies: Replies,
    /// Rows that came from other ranks.
    pub received: u64,
    /// Their bytes, as [`bytes_of_row`] counts them.
    pub received_bytes: u64,
}

/// Bytes of a row of B with so many nonzeros: columns, values, and the row itself.
pub(super) fn bytes_of_row<T>(nonzeros: u32) -> u64 {
    8 + u64::from(nonzeros) * (size_of::<u32>() + size_of::<T>()) as u64
}

impl<T: SpgemmElement + Word> Spgemm<T> {
    /// The nonzeros of an own row of B, by its global number.
    pub(super) fn own_row(&self, row: u32) -> Range<usize> {
        let row = row as usize - self.a.halo().own().start;
        self.own_b.indptr().outer_inds_sz(row)
    }

    /// The rows of B with these local numbers, ascending.
    pub(super) fn rows_of_b(&self, world: &World, used: &[u32]) -> Result<RowsOfB<T>> {
        let halo = self.a.halo();
        let global: Vec<u32> = halo.global().collect();
        let mut wanted = vec![Vec::new(); world.size()];
        for &local in used {
            let row = global[local as usize];
            if !halo.local_own().contains(&(local as usize)) {
                wanted[self.a.owners().owner(row as usize)].push(row);
            }
        }
        let asked = world.exchange(&wanted);
        let reply = |rows: &Vec<u32>| rows.iter().map(|&row| self.own_row(row)).collect();
        let replies: Vec<Vec<Range<usize>>> = asked.iter().map(reply).collect();
        let of = |list: &Range<usize>| list.len() as u32;
        let lengths = world.exchange(&replies_of(&replies, |ranges| {
            ranges.iter().map(of).collect()
        }));
        let indices = |range: &Range<usize>| self.own_b.indices()[range.clone()].to_vec();
        let columns = world.exchange(&replies_of(&replies, |ranges| {
            ranges.iter().flat_map(indices).collect()
        }));
        let data = |range: &Range<usize>| self.own_b.data()[range.clone()].to_vec();
        let values = world.exchange(&replies_of(&replies, |ranges| {
            ranges.iter().flat_map(data).collect()
        }));
        // Other ranks' rows come in their global order, which is that of `used`.
        let (lengths, columns, values) = (lengths.concat(), columns.concat(), values.concat());
        let (mut next, mut start) = (0, 0);
        let (mut row_ptr, mut col_idx, mut data) = (vec![0], Vec::new(), Vec::new());
        for &local in used {
            if halo.local_own().contains(&(local as usize)) {
                let row = self.own_row(global[local as usize]);
                col_idx.extend_from_slice(&self.own_b.indices()[row.clone()]);
                data.extend_from_slice(&self.own_b.data()[row]);
            } else {
                let end = start + lengths[next] as usize;
                col_idx.extend_from_slice(&columns[start..end]);
                data.extend_from_slice(&values[start..end]);
                (next, start) = (next + 1, end);
            }
            row_ptr.push(u32::try_from(col_idx.len()).context("a round has 2^32 nonzeros of B")?);
        }
        let shape = (used.len(), self.own_b.cols());
        Ok(RowsOfB {
            b: CsMatI::new(shape, row_ptr, col_idx, data),
            replies,
            received: lengths.len() as u64,
            received_bytes: lengths.into_iter().map(bytes_of_row::<T>).sum(),
        })
    }
}

/// A list for each rank, of its ranges.
fn replies_of<W>(
    replies: &[Vec<Range<usize>>],
    list: impl Fn(&[Range<usize>]) -> Vec<W>,
) -> Vec<Vec<W>> {
    replies.iter().map(|ranges| list(ranges)).collect()
}
