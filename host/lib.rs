//! Sparse kernels for NVIDIA GPUs, written in Rust from the first line to the last, and an emulator that runs them.
//!
//! ```
//! use warprow::{Device, Spmm, SpmmOptions, matrix_market::read_matrix_market, ndarray};
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
//! Sparse matrices are [`sprs`] matrices with u32 indices, dense ones [`ndarray`] arrays, row-major. An operation has a
//! *plan*, made once for a matrix on a device, and many *runs*, which allocate partial sums at first and then nothing.
//!
//! All features but the conversions `faer` and `nalgebra-sparse` are on by default. They decide what is compiled:
//! devices (`cuda`, `emulator`), operations (`spmm`, `spgemm`, `gemm`, `log-softmax`, `gcn`, and `multi` for several
//! devices), formats of files (`matrix-market`, `edge-list`, `npy`, `safetensors`, and `files` for all), and random
//! matrices (`generate`).

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(
        feature = "files",
        feature = "gcn",
        feature = "generate",
        feature = "spgemm"
    )),
    allow(
        dead_code,
        unused_imports,
        reason = "no operation uses all that they share"
    )
)]
// A public type that may grow says so, and one that will not gives the reason: who matches on it must not be broken.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

pub mod convert;
pub mod csr;
pub mod dense;
pub mod device;
#[cfg(feature = "edge-list")]
pub mod edge_list;
mod error;
#[cfg(feature = "files")]
pub mod files;
#[cfg(feature = "gcn")]
pub mod gcn;
#[cfg(feature = "gemm")]
pub mod gemm;
#[cfg(feature = "generate")]
pub mod generate;
pub mod launch;
#[cfg(feature = "log-softmax")]
pub mod log_softmax;
#[cfg(feature = "matrix-market")]
pub mod matrix_market;
#[cfg(feature = "multi")]
pub mod multi;
#[cfg(feature = "npy")]
pub mod npy;
#[cfg(feature = "npy")]
pub mod npz;
pub mod operand;
#[cfg(any(
    feature = "edge-list",
    feature = "matrix-market",
    feature = "npy",
    feature = "safetensors"
))]
mod output;
pub mod primitives;
mod quote;
pub mod reference;
#[cfg(feature = "safetensors")]
pub mod safetensors;
pub mod scalar;
mod setters;
#[cfg(feature = "spgemm")]
pub mod spgemm;
#[cfg(feature = "spmm")]
pub mod spmm;
#[cfg(any(feature = "edge-list", feature = "matrix-market"))]
mod text;
mod triplets;

pub use csr::{CsrMatrix, DeviceCsr, DevicePattern, ValuesMut};
pub use cuda_std::element::Element;
pub use cuda_std::kernel::Kernel;
pub use cuda_std::launch::{Dim3, LaunchConfig};
pub use cuda_std::memory::{Global, GlobalMut};
pub use dense::{DenseView, DenseViewMut};
pub use device::{Device, DeviceBuffer, DeviceSlice, DeviceSliceMut, Stream};
pub use error::Error;
#[cfg(feature = "gcn")]
pub use gcn::{Gcn, GcnElement, GcnLayer, GcnOptions};
#[cfg(feature = "gemm")]
pub use gemm::{Gemm, GemmElement, GemmKernel, GemmOptions, GemmTuning};
pub use half::{bf16, f16};
/// The crate of dense matrices, in the version of this crate's signatures.
pub use ndarray;
pub use primitives::{scan, sort};
pub use scalar::Scalar;
#[cfg(feature = "spgemm")]
pub use spgemm::{
    Spgemm, SpgemmElement, SpgemmKernel, SpgemmOptions, SpgemmProduct, SpgemmTuning, spgemm,
};
#[cfg(feature = "spmm")]
pub use spmm::{
    Reduction, RowOrder, Spmm, SpmmElement, SpmmKernel, SpmmMeasurement, SpmmOptions, SpmmTuning,
    Spmv,
};
/// The crate of sparse matrices, in the version of this crate's signatures.
pub use sprs;

/// Tests the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Tests the code of the page on writing kernels.
#[cfg(doctest)]
#[doc = include_str!("../docs/writing-kernels.md")]
struct WritingKernels;

/// Tests the code of the page on other libraries.
#[cfg(all(doctest, cuda, feature = "generate", feature = "spmm"))]
#[doc = include_str!("../docs/interoperate.md")]
struct Interoperate;
