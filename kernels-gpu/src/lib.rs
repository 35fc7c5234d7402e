//! The kernels of warprow, a crate for each family.
//!
//! | family | what it computes |
//! |---|---|
//! | [`matrix`] | element and matrix types, scans, sorts, CSR matrices rearranged: what the others share |
//! | [`spmm`] | `Y = A X`, sparse times dense |
//! | [`spgemm`] | `C = A B`, sparse times sparse |
//! | [`gemm`] | `Y = X W`, tall and skinny times small |
//! | [`log_softmax`] | the LogSoftmax of each row |
//! | [`gcn`] | what a graph convolutional network needs beside these |
//!
//! Each family but `matrix` has a feature of its name, `log-softmax` for `log_softmax`. All are on by default.
//!
//! Within a family, `ladder` is what one reads to learn, `product` is what runs by default, and `plan` looks at the
//! matrix. Each crate is `no_std`. Compiled for `nvptx64-nvidia-cuda` it becomes PTX; compiled for the host, the same
//! source runs on the emulator, and each kernel's name is a typed handle for its launch.

#![no_std]

#[cfg(feature = "gcn")]
pub use warprow_kernels_gcn as gcn;
#[cfg(feature = "gemm")]
pub use warprow_kernels_gemm as gemm;
#[cfg(feature = "log-softmax")]
pub use warprow_kernels_log_softmax as log_softmax;
pub use warprow_kernels_matrix as matrix;
#[cfg(feature = "spgemm")]
pub use warprow_kernels_spgemm as spgemm;
#[cfg(feature = "spmm")]
pub use warprow_kernels_spmm as spmm;
