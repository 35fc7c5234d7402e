//! The rows of C from all ranks, joined at rank 0.

use super::DistributedCsr;
use crate::world::{Word, World};
use anyhow::{Context, Result};
use sprs::CsMatI;
use warprow::{CsrMatrix, SpgemmElement};

/// C at rank 0, in the caller's order; `None` on the others.
///
/// # Errors
///
/// 2^32 entries or more in all.
pub fn gather_sparse<T: SpgemmElement + Word>(
    world: &World,
    a: &DistributedCsr<T>,
    c: &CsrMatrix<T>,
) -> Result<Option<CsrMatrix<T>>> {
    let row_ptr = c.indptr().to_proper().into_owned();
    if !world.is_root() {
        world.send(0, &row_ptr);
        world.send(0, c.indices());
        world.send(0, c.data());
        return Ok(None);
    }
    // All row pointers come first, so that C is allocated once, and then one part after the other.
    let others = (1..world.size()).map(|rank| world.receive::<u32>(rank));
    let row_ptrs: Vec<Vec<u32>> = [row_ptr].into_iter().chain(others).collect();
    let mut lengths = vec![0_u32; a.shape().0];
    for (part, row_ptr) in a.partition().parts().iter().zip(&row_ptrs) {
        for (row, ends) in part.owned.clone().zip(row_ptr.windows(2)) {
            lengths[a.order().original_row(row)] = ends[1] - ends[0];
        }
    }
    let mut row_ptr = vec![0_u32];
    for length in lengths {
        let end = row_ptr[row_ptr.len() - 1].checked_add(length);
        row_ptr.push(end.context("too large: C has 2^32 entries or more")?);
    }
    let entries = row_ptr[row_ptr.len() - 1] as usize;
    let (mut columns, mut values) = (vec![0; entries], vec![T::default(); entries]);
    for (rank, (part, local_ptr)) in a.partition().parts().iter().zip(&row_ptrs).enumerate() {
        let received;
        let (part_columns, part_values) = match rank {
            0 => (c.indices(), c.data()),
            _ => {
                received = (world.receive::<u32>(rank), world.receive::<T>(rank));
                (&received.0[..], &received.1[..])
            }
        };
        for (row, ends) in part.owned.clone().zip(local_ptr.windows(2)) {
            let source = ends[0] as usize..ends[1] as usize;
            let start = row_ptr[a.order().original_row(row)] as usize;
            let target = start..start + source.len();
            columns[target.clone()].copy_from_slice(&part_columns[source.clone()]);
            values[target].copy_from_slice(&part_values[source]);
        }
    }
    Ok(Some(CsMatI::new(
        (a.shape().0, c.cols()),
        row_ptr,
        columns,
        values,
    )))
}
