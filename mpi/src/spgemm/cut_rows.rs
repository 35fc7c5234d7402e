//! Rows of C that are cut between ranks: their owner adds up the pieces.

use super::Spgemm;
use crate::matrix::cut_rows::{owner_of_piece, ranks_with_pieces};
use crate::world::{Word, World};
use anyhow::{Context, Result};
use sprs::CsMatI;
use std::collections::BTreeMap;
use warprow::{CsrMatrix, SpgemmElement};

impl<T: SpgemmElement + Word> Spgemm<T> {
    /// The owned rows, with the pieces of the last one that other ranks have.
    pub(super) fn with_pieces(&self, world: &World, c: &CsrMatrix<T>) -> Result<CsrMatrix<T>> {
        let partition = self.a.partition();
        let mut first = 0;
        if let Some(owner) = owner_of_piece(partition, world.rank()) {
            let piece = c.outer_view(0).context("a rank with a piece has a row")?;
            world.send(owner, piece.indices());
            world.send(owner, piece.data());
            first = 1;
        }
        let owned = c.slice_outer(first..c.rows()).to_owned();
        let ranks = ranks_with_pieces(partition, world.rank());
        if ranks.is_empty() {
            return Ok(owned);
        }
        let whole = owned.slice_outer(0..owned.rows() - 1);
        let last = owned
            .outer_view(owned.rows() - 1)
            .context("an owner has the row")?;
        let mut sums: BTreeMap<u32, T> = (last.iter())
            .map(|(column, &value)| (column as u32, value))
            .collect();
        for rank in ranks {
            let columns = world.receive::<u32>(rank);
            let values = world.receive::<T>(rank);
            for (column, value) in columns.into_iter().zip(values) {
                let sum = sums.get(&column).map_or(value, |&sum| sum + value);
                sums.insert(column, sum);
            }
        }
        let mut row_ptr = whole.indptr().to_proper().into_owned();
        let mut columns = whole.indices().to_vec();
        let mut values = whole.data().to_vec();
        for (column, value) in sums {
            columns.push(column);
            values.push(value);
        }
        row_ptr.push(u32::try_from(columns.len()).context("a rank has 2^32 entries of C")?);
        Ok(CsMatI::new(
            (owned.rows(), owned.cols()),
            row_ptr,
            columns,
            values,
        ))
    }
}
