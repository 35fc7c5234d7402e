//! A product whose structure is kept: for other values of A and B in the same places.

use super::Spgemm;
use super::rows_of_b::{Replies, RowsOfB};
use crate::world::{Word, World};
use anyhow::{Result, ensure};
use std::ops::Range;
use warprow::{CsrMatrix, DeviceCsr, SpgemmElement};

/// The structure of a rank's rows of C, and which values of B travel. It keeps all rows of B that the rank uses on its
/// device.
#[derive(Debug)]
pub struct SpgemmStructure<T: SpgemmElement> {
    /// This rank's nonzeros of B that each rank needs.
    replies: Replies,
    /// Where the values of each row of B come from, in the order of the rows.
    sources: Vec<Source>,
    a: DeviceCsr<T>,
    b: DeviceCsr<T>,
    plan: warprow::Spgemm<T>,
}

/// Where the values of a row of B come from.
#[derive(Clone, Debug)]
enum Source {
    /// From this rank's nonzeros of B.
    Own(Range<usize>),
    /// From another rank: the next so many.
    Received(usize),
}

impl<T: SpgemmElement + Word> Spgemm<T> {
    /// Computes the structure of C: rows of B travel once, without rounds.
    ///
    /// # Errors
    ///
    /// 2^32 products, nonzeros or entries or more on one rank; a device without memory; the driver's.
    pub fn structure(&self, world: &World) -> Result<SpgemmStructure<T>> {
        let rows = self.all_rows();
        let used = self.used_columns(rows.clone());
        let RowsOfB { b, replies, .. } = self.rows_of_b(world, &used)?;
        let (own, first) = (
            self.matrix().halo().local_own(),
            self.matrix().halo().own().start,
        );
        let source = |(row, &local): (usize, &u32)| {
            let local = local as usize;
            match own.contains(&local) {
                true => Source::Own(self.own_row((first + local - own.start) as u32)),
                false => Source::Received(b.outer_view(row).map_or(0, |row| row.nnz())),
            }
        };
        let sources = used.iter().enumerate().map(source).collect();
        // `multiply_values` brings the values.
        let a = self.chunk_of_a(rows, &used)?.map(|_| T::default());
        let b = b.map(|_| T::default());
        let device = &self.device;
        let (a, b) = (
            DeviceCsr::upload(device, a.view())?,
            DeviceCsr::upload(device, b.view())?,
        );
        Ok(SpgemmStructure {
            replies,
            sources,
            plan: warprow::Spgemm::symbolic(a.pattern(), b.pattern(), self.options)?,
            a,
            b,
        })
    }

    /// The rows of C that this rank owns, with these values of its nonzeros of A, as [`matrix`](Self::matrix) has them,
    /// and of B, as [`own_b`](Self::own_b) has them. Only values travel.
    ///
    /// # Errors
    ///
    /// Another number of values; a device that fails.
    pub fn multiply_values(
        &self,
        world: &World,
        structure: &mut SpgemmStructure<T>,
        a_values: &[T],
        b_values: &[T],
    ) -> Result<CsrMatrix<T>> {
        let wanted = (self.matrix().local().nnz(), self.own_b().nnz());
        let found = (a_values.len(), b_values.len());
        ensure!(
            found == wanted,
            "wanted are {} values of A and {} of B, found {} and {}",
            wanted.0,
            wanted.1,
            found.0,
            found.1
        );
        let of = |ranges: &Vec<Range<usize>>| {
            let values = ranges
                .iter()
                .flat_map(|range| b_values[range.clone()].iter().copied());
            values.collect()
        };
        let replies: Vec<Vec<T>> = structure.replies.iter().map(of).collect();
        let received = world.exchange(&replies).concat();
        let mut rest = &received[..];
        let mut values = Vec::with_capacity(structure.b.values().len());
        for source in &structure.sources {
            match source {
                Source::Own(range) => values.extend_from_slice(&b_values[range.clone()]),
                Source::Received(count) => {
                    let (row, behind) = rest.split_at(*count);
                    values.extend_from_slice(row);
                    rest = behind;
                }
            }
        }
        structure.a.values_mut()?.copy_from_slice(a_values)?;
        structure.b.values_mut()?.copy_from_slice(&values)?;
        let c = (structure.plan).numeric(structure.a.values(), structure.b.values())?;
        self.with_pieces(world, &c.download()?)
    }
}
