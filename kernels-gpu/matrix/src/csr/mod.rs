//! CSR matrices on the device: whether one is valid, the row of each nonzero, the nonzeros by
//! column, the rows in another order.

pub mod by_column;
pub mod check_structure;
pub mod rows;
