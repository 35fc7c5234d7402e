//! Operations that the families share: prefix sums, sorting, and copies of rows on a device.

pub(crate) mod dense_rows;
pub mod scan;
pub mod sort;
