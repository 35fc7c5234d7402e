//! Kernels that look at the matrix, for a plan to choose by.

pub mod columns;
pub mod hash;
pub mod order;
pub mod reuse;
pub mod row_bins;
pub mod row_marks;
