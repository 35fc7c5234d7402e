//! Sparse kernels for NVIDIA GPUs, written in Rust from the first line to the last.

pub mod generate;
pub mod matrix_market;
pub mod reference;
