//! The symbolic phase: the columns of each row of C.

pub mod bitmap_rows;
pub mod hash_rows;
pub mod run_rows;
pub mod sort_rows;
