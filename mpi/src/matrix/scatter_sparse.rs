//! The rows of B from rank 0, which each rank keeps for others that ask.

use super::DistributedCsr;
use crate::world::{Word, World};
use anyhow::Result;
use sprs::{CsMatI, CsMatViewI};
use warprow::{CsrMatrix, SpgemmElement};

/// The rows of B that this rank owns, from rank 0.
pub fn scatter_b<T: SpgemmElement + Word>(
    world: &World,
    a: &DistributedCsr<T>,
    b: Option<CsMatViewI<'_, T, u32, u32>>,
) -> Result<CsrMatrix<T>> {
    let columns = world.broadcast(b.map_or(vec![], |b| vec![b.cols() as u64]));
    let columns = columns[0] as usize;
    let (row_ptr, col_idx, values) = match b {
        None => (world.receive(0), world.receive(0), world.receive(0)),
        Some(b) => {
            let rows_of = |rank: usize| {
                let (mut row_ptr, mut col_idx, mut values) = (vec![0], Vec::new(), Vec::new());
                for row in a.owners().rows_of(rank) {
                    let row = b
                        .outer_view(a.original_x_row(row))
                        .expect("B has a row for each column");
                    col_idx.extend_from_slice(row.indices());
                    values.extend_from_slice(row.data());
                    row_ptr.push(col_idx.len() as u32);
                }
                (row_ptr, col_idx, values)
            };
            for rank in 1..world.size() {
                let (row_ptr, col_idx, values) = rows_of(rank);
                world.send(rank, &row_ptr);
                world.send(rank, &col_idx);
                world.send(rank, &values);
            }
            rows_of(0)
        }
    };
    Ok(CsMatI::new(
        (row_ptr.len() - 1, columns),
        row_ptr,
        col_idx,
        values,
    ))
}
