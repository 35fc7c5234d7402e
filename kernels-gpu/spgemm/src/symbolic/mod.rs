//! The symbolic phase: the columns of each row of C, ascending, and their number. They are staged
//! until the row pointers of C are known.

pub mod bitmap_rows;
mod bits;
pub mod hash_rows;
pub mod merge_rows;
pub mod narrow_rows;
pub mod run_rows;
pub mod sort_rows;
mod sorted_entries;
