//! The numeric phase: the values of each row of C.

pub mod chunks;
pub mod copy;
pub mod drop_zeros;
pub mod group_rows;
pub mod interval_rows;
pub mod interval_sums;
pub mod neighbour_rows;
pub mod ordered;
pub mod spread_rows;
pub mod window_rows;
