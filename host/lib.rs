//! Sparse kernels for NVIDIA GPUs, written in Rust from the first line to the last.

pub mod device;
pub mod error;
pub mod launch;
pub mod generate;
pub mod matrix_market;
pub mod reference;
pub mod spmm;

pub use error::Error;
