//! Rounds: which rows of A are multiplied together, so that the rows of B that they need fit into bounded memory.

use super::Spgemm;
use super::rows_of_b::bytes_of_row;
use crate::world::{Word, World};
use anyhow::Result;
use sprs::CsMatI;
use std::ops::Range;
use warprow::multi::OperandRows;
use warprow::{CsrMatrix, SpgemmElement};

impl<T: SpgemmElement + Word> Spgemm<T> {
    /// The lengths of the rows of B in the halo, from their owners.
    pub(super) fn lengths_of_halo(&self, world: &World) -> Vec<u32> {
        let halo = self.a.halo();
        let wanted: Vec<Vec<u32>> = (0..world.size())
            .map(|rank| halo.rows_from(rank).to_vec())
            .collect();
        let asked = world.exchange(&wanted);
        let length = |&row: &u32| self.own_row(row).len() as u32;
        let lengths: Vec<Vec<u32>> = asked
            .iter()
            .map(|rows| rows.iter().map(length).collect())
            .collect();
        world.exchange(&lengths).concat()
    }

    /// Ranges of this rank's rows whose rows of B, those of other ranks, have at most the bytes of a round. If all of B
    /// is replicated, all rows are one range.
    pub(super) fn chunks(&self, lengths: &[u32]) -> Vec<Range<usize>> {
        if self.a.operand() == OperandRows::Replicated {
            return vec![self.all_rows()];
        }
        let own = self.a.halo().local_own();
        let bytes = |local: usize| {
            let number = if local < own.start {
                local
            } else {
                local - own.len()
            };
            bytes_of_row::<T>(lengths[number])
        };
        let mut last_used = vec![usize::MAX; self.a.halo().local_len()];
        let (mut chunks, mut start, mut total) = (Vec::new(), 0, 0);
        for (row, columns) in self.a.local().outer_iterator().enumerate() {
            let is_foreign = |column: &&u32| !own.contains(&(**column as usize));
            let foreign = || {
                columns
                    .indices()
                    .iter()
                    .filter(is_foreign)
                    .map(|&k| k as usize)
            };
            let new: u64 = foreign()
                .filter(|&k| last_used[k] != start)
                .map(bytes)
                .sum();
            if total > 0 && total + new > self.round_bytes {
                chunks.push(start..row);
                (start, total) = (row, 0);
            }
            for column in foreign() {
                if last_used[column] != start {
                    last_used[column] = start;
                    total += bytes(column);
                }
            }
        }
        chunks.push(start..self.a.local().rows());
        chunks.retain(|rows| !rows.is_empty());
        chunks
    }

    /// All of this rank's rows.
    pub(super) fn all_rows(&self) -> Range<usize> {
        0..self.a.local().rows()
    }

    /// The rows of B that this rank is given for some of its rows, ascending: those that they select, or all.
    pub(super) fn used_columns(&self, rows: Range<usize>) -> Vec<u32> {
        let local = self.a.local();
        if self.a.operand() == OperandRows::Replicated {
            return (0..local.cols() as u32).collect();
        }
        let rows = local.slice_outer(rows);
        let mut used = rows.indices().to_vec();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// Rows of A with their columns numbered among those that they use.
    pub(super) fn chunk_of_a(&self, rows: Range<usize>, used: &[u32]) -> Result<CsrMatrix<T>> {
        let rows = self.a.local().slice_outer(rows);
        let number = |column| used.binary_search(column).expect("they are all used") as u32;
        let columns = rows.indices().iter().map(number).collect();
        let row_ptr = rows.indptr().to_proper().into_owned();
        let shape = (rows.rows(), used.len());
        Ok(CsMatI::new(shape, row_ptr, columns, rows.data().to_vec()))
    }
}
