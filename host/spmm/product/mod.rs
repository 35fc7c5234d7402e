//! What the kernels of the product work on, made once for a matrix: tasks and teams.

pub mod bin_sizes;
pub mod block_tasks;
pub mod row_bins;
pub mod shared_x;
pub mod task_sizes;
pub mod task_starts;
pub mod tasks;
pub mod teams;
