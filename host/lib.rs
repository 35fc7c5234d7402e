//! Sparse kernels for NVIDIA GPUs, written in Rust from the first line to the last.

pub mod device;
pub mod error;
pub mod generate;
pub mod launch;
pub mod matrix_market;
pub mod reference;
pub mod spmm;

pub use device::Device;
pub use error::Error;
pub use spmm::{Spmm, SpmmElement, SpmmKernel, SpmmOptions};
