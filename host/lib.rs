//! Sparse kernels for NVIDIA GPUs, written in Rust from the first line to the last, and an emulator that runs them.
//!
//! ```
//! use warprow::{Device, Spmm, SpmmOptions, matrix_market::read_matrix_market};
//!
//! # fn main() -> Result<(), warprow::Error> {
//! let a = read_matrix_market::<f32>("data/small.mtx")?;
//! let x = ndarray::Array2::<f32>::ones((a.cols(), 3));
//! let device = Device::open()?;
//! let spmm = Spmm::plan(&device, a.view(), SpmmOptions::default())?;
//! let y = spmm.multiply(x.view())?;
//! println!("{spmm}: row 0 of the product is {}", y.row(0));
//! # let checked = warprow::reference::verify_spmm(a.view(), x.view(), y.view());
//! # assert!(checked.ok(), "{checked}");
//! # Ok(())
//! # }
//! ```
//!
//! Sparse matrices are `sprs` matrices with u32 indices, dense ones `ndarray` arrays, row-major. An operation has a
//! *plan*, made once for a matrix on a device, and *runs*, many of them, which allocate nothing.

pub mod convert;
pub mod csr;
pub mod device;
mod error;
pub mod gcn;
pub mod gemm;
pub mod generate;
pub mod launch;
pub mod log_softmax;
pub mod matrix_market;
mod npy;
pub mod operand;
pub mod primitives;
mod quote;
pub mod reference;
pub mod scalar;
mod setters;
pub mod spgemm;
pub mod spmm;

pub use csr::{CsrMatrix, DeviceCsr, DevicePattern, ValuesMut};
pub use cuda_std::element::Element;
pub use cuda_std::kernel::Kernel;
pub use cuda_std::launch::{Dim3, LaunchConfig};
pub use cuda_std::memory::{Global, GlobalMut};
pub use device::{Device, DeviceBuffer, DeviceSlice, DeviceSliceMut};
pub use error::Error;
pub use gcn::{Gcn, GcnElement, GcnLayer, GcnOptions};
pub use gemm::{Gemm, GemmElement, GemmKernel, GemmOptions, GemmTuning};
pub use half::{bf16, f16};
pub use primitives::{scan, sort};
pub use scalar::Scalar;
pub use spgemm::{
    Spgemm, SpgemmElement, SpgemmKernel, SpgemmOptions, SpgemmProduct, SpgemmTuning, spgemm,
};
pub use spmm::{Reduction, RowOrder, Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning};

/// Tests the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Tests the code of the page on writing kernels.
#[cfg(doctest)]
#[doc = include_str!("../docs/writing-kernels.md")]
struct WritingKernels;
