//! Rows of dense matrices: X from rank 0 to their owners, Y from its owners to rank 0.

use super::DistributedCsr;
use crate::world::{Word, World};
use anyhow::{Context, Result, ensure};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};
use warprow::SpmmElement;

/// The rows of X that this rank owns, from rank 0, and their number of columns.
pub fn scatter_rows<T: SpmmElement + Word>(
    world: &World,
    a: &DistributedCsr<T>,
    x: Option<ArrayView2<'_, T>>,
) -> Result<(Vec<T>, usize)> {
    if !world.is_root() {
        let features = world.broadcast::<u64>(vec![])[0];
        return Ok((world.receive(0), features as usize));
    }
    let x = x.context("rank 0 has no X to scatter")?;
    let (rows, columns) = a.shape();
    ensure!(
        x.nrows() == columns,
        "X is {:?}, and A is {rows} x {columns}",
        x.dim()
    );
    world.broadcast(vec![x.ncols() as u64]);
    let rows_of = |rank: usize| -> Vec<T> {
        let rows = a.owners().rows_of(rank);
        rows.flat_map(|row| x.row(a.original_x_row(row)).to_vec())
            .collect()
    };
    for rank in 1..world.size() {
        world.send(rank, &rows_of(rank));
    }
    Ok((rows_of(0), x.ncols()))
}

/// The whole matrix at rank 0, of which each rank has the rows that it owns; `None` on the others.
///
/// # Errors
///
/// A rank has sent rows of another length.
pub fn gather_rows<T: SpmmElement + Word>(
    world: &World,
    a: &DistributedCsr<T>,
    owned: ArrayView2<'_, T>,
) -> Result<Option<Array2<T>>> {
    if !world.is_root() {
        world.send(0, &owned.iter().copied().collect::<Vec<T>>());
        return Ok(None);
    }
    let features = owned.ncols();
    let mut whole = Array2::from_elem((a.shape().0, features), T::default());
    place(a, 0, owned, whole.view_mut());
    for rank in 1..world.size() {
        let rows = world.receive::<T>(rank);
        let count = a.partition().parts()[rank].owned.len();
        let rows = ArrayView2::from_shape((count, features), &rows)
            .with_context(|| format!("rank {rank} has sent {} elements", rows.len()))?;
        place(a, rank, rows, whole.view_mut());
    }
    Ok(Some(whole))
}

/// Copies a rank's rows to their places in the caller's order.
fn place<T: Copy>(
    a: &DistributedCsr<T>,
    rank: usize,
    rows: ArrayView2<'_, T>,
    mut whole: ArrayViewMut2<'_, T>,
) {
    let owned = a.partition().parts()[rank].owned.clone();
    for (row, values) in owned.zip(rows.axis_iter(Axis(0))) {
        whole.row_mut(a.order().original_row(row)).assign(&values);
    }
}
