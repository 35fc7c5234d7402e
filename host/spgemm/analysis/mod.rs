//! What a product costs: the work of each row, and lists of the rows by the kernel that takes them.

pub mod counters;
pub mod row_costs;
pub mod row_lists;
pub mod sorted_rows;
