//! The exercises, in the order of the course. Each is a folder of this package.

/// The names of the exercises' folders.
pub const EXERCISES: &[&str] = &["01_hello", "02_grid_stride", "03_coalescing"];
