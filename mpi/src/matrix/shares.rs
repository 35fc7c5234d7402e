//! From shares of a file to distributed rows: work is added up over all ranks, and entries travel to their owners.

use super::DistributedCsr;
use crate::world::{Word, World};
use anyhow::{Context, Result};
use sprs::CsMatI;
use std::num::NonZeroUsize;
use std::ops::Range;
use warprow::multi::{OperandRows, Order, Part, Partition};
use warprow::{CsrMatrix, Scalar};

impl<T: Scalar + Word> DistributedCsr<T> {
    /// The matrix of which each rank has read a share. Rows stay in their order, uncut; a rank has neighbouring
    /// rows of equal work. The work is that of SpMM; with the lengths of the rows of B it is that of SpGEMM.
    ///
    /// # Errors
    ///
    /// 2^32 nonzeros or more on one rank.
    pub fn of_shares(
        world: &World,
        share: &CsrMatrix<T>,
        b_lengths: Option<&[u64]>,
        operand: OperandRows,
    ) -> Result<Self> {
        let of_nonzero =
            |column: &u32| 1 + b_lengths.map_or(0, |lengths| lengths[*column as usize]);
        let work = share
            .outer_iterator()
            .map(|row| row.indices().iter().map(of_nonzero).sum::<u64>());
        let work = world.sum(work.collect());
        let ranks = NonZeroUsize::new(world.size()).context("a run has a rank")?;
        let ranges = equal_work(&work, ranks);
        let local = rows_of_shares(world, share, &ranges)?;
        let nonzeros = world.all(local.nnz() as u64);
        let mut before = 0;
        let part = |(rank, &nonzeros): (usize, &u64)| {
            let start = before;
            before += nonzeros as usize;
            let rows = ranges[rank].clone();
            Part {
                work: rows.len() as u64 + work[rows.clone()].iter().sum::<u64>(),
                owned: rows.clone(),
                nonzeros: start..before,
                rows,
            }
        };
        let parts = nonzeros.iter().enumerate().map(part).collect();
        let partition = Partition::of_parts(parts)?;
        Self::of_rows(
            world,
            (share.rows(), share.cols()),
            Order::given(),
            partition,
            operand,
            local,
        )
    }
}

/// This rank's rows of a matrix of which each rank has a share, with their columns in the whole matrix. `ranges` are
/// the rows of each rank. Entries at the same place are added in the order of the ranks.
///
/// # Errors
///
/// 2^32 nonzeros or more on one rank.
pub fn rows_of_shares<T: Scalar + Word>(
    world: &World,
    share: &CsrMatrix<T>,
    ranges: &[Range<usize>],
) -> Result<CsrMatrix<T>> {
    let mut lengths = Vec::new();
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for range in ranges {
        // Empty ranges may stand behind the last row.
        let rows = match range.is_empty() {
            true => CsrMatrix::zero((0, share.cols())),
            false => share.slice_outer(range.clone()).to_owned(),
        };
        lengths.push(
            rows.outer_iterator()
                .map(|row| row.nnz() as u32)
                .collect::<Vec<_>>(),
        );
        columns.push(rows.indices().to_vec());
        values.push(rows.data().to_vec());
    }
    let lengths = world.exchange(&lengths);
    let columns = world.exchange(&columns);
    let values = world.exchange(&values);
    let count = ranges[world.rank()].len();
    let mut starts = vec![0; world.size()];
    let (mut row_ptr, mut all_columns, mut all_values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..count {
        let mut entries: Vec<(u32, T)> = Vec::new();
        for (rank, start) in starts.iter_mut().enumerate() {
            let end = *start + lengths[rank][row] as usize;
            let columns = columns[rank][*start..end].iter().copied();
            entries.extend(columns.zip(values[rank][*start..end].iter().copied()));
            *start = end;
        }
        // A stable sort keeps the order of the ranks.
        entries.sort_by_key(|&(column, _)| column);
        for (column, value) in entries {
            let first = row_ptr[row] as usize;
            match all_columns[first..].last() {
                Some(&last) if last == column => {
                    let sum = all_values.last_mut().context("a column has a value")?;
                    *sum = T::from_f64(T::to_f64(*sum) + T::to_f64(value));
                }
                _ => {
                    all_columns.push(column);
                    all_values.push(value);
                }
            }
        }
        row_ptr.push(u32::try_from(all_columns.len()).context("a rank has 2^32 nonzeros or more")?);
    }
    Ok(CsMatI::new(
        (count, share.cols()),
        row_ptr,
        all_columns,
        all_values,
    ))
}

/// Ranges of neighbouring rows, each ending where the work is nearest to an equal share. A row costs 1 and its work.
fn equal_work(work: &[u64], ranks: NonZeroUsize) -> Vec<Range<usize>> {
    let mut before = vec![0];
    for work in work {
        before.push(before[before.len() - 1] + 1 + work);
    }
    let total = u128::from(before[work.len()]);
    let start = |rank: usize| {
        let ideal = (total * rank as u128 / ranks.get() as u128) as u64;
        let row = before.partition_point(|&work| work < ideal);
        let nearer = row > 0 && ideal - before[row - 1] <= before[row] - ideal;
        if nearer { row - 1 } else { row }
    };
    (0..ranks.get())
        .map(|rank| start(rank)..start(rank + 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_equal_work_have_all_rows_in_their_order() {
        for (work, ranks, wanted) in [
            (&[0; 6][..], 3, &[0..2, 2..4, 4..6][..]),
            (&[9, 0, 0, 0, 0, 0], 2, &[0..1, 1..6]),
            (&[0, 0, 99], 3, &[0..2, 2..3, 3..3]),
            (&[], 2, &[0..0, 0..0]),
        ] {
            let found = equal_work(work, NonZeroUsize::new(ranks).unwrap());
            assert_eq!(found, wanted, "{work:?}");
        }
    }
}
