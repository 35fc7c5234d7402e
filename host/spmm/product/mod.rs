//! What the kernels of the product work on, made once for a matrix: tasks and teams.

pub mod task_sizes;
pub mod tasks;
pub mod teams;
