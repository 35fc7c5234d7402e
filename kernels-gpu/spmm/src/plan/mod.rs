//! Kernels that look at the matrix, for a plan to choose by.

pub mod columns;
pub mod distinct;
pub mod hash;
pub mod order;
pub mod row_bins;
pub mod row_marks;
pub mod windows;
