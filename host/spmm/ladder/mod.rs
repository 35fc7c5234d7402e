//! What the kernels of the ladder work on, where it is more than a row or a nonzero.

pub mod slices;
