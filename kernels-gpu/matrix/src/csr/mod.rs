//! Rearranging CSR matrices on the device: the row of each nonzero, the nonzeros by column, the
//! rows in another order.

pub mod by_column;
pub mod rows;
