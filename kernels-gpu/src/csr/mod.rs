//! Matrices in CSR made over on a device: the row of each nonzero, the nonzeros by column, the rows in another order.

pub mod by_column;
pub mod rows;

/// The PTX entry points of the family.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn entry_points() -> Vec<&'static str> {
    [by_column::entry_points(), rows::entry_points()].concat()
}
