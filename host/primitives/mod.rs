//! Operations that the families share: prefix sums and sorting on a device.

pub mod scan;
pub mod sort;
