//! The work of each row of a product, and the lists of rows by the kernel that takes them.

pub mod counters;
pub mod merged_rows;
pub mod row_costs;
pub mod row_lists;
pub mod sorted_rows;
