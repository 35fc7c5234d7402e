//! What the kernels of the product work on, made once for a matrix: tasks, teams, and blocks of columns.

pub mod column_blocks;
pub mod joining;
pub mod task_size;
pub mod tasks;
pub mod teams;
