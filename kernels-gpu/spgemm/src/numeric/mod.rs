//! The numeric phase: the values of each row of C. A kernel per bin, and copies of what the
//! symbolic phase has staged.

pub mod chunks;
pub mod copy;
pub mod copy_columns;
pub mod drop_zeros;
pub mod interval_rows;
pub mod interval_sums;
pub mod neighbour_rows;
pub mod ordered_chunks;
pub mod search_rows;
pub mod spread_rows;
pub mod window_rows;
