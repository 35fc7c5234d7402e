//! What all kernel families share: element and matrix types, scans, sorts, and kernels that
//! rearrange CSR matrices.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

mod arguments;
pub mod csr;
pub mod dense_rows;
mod element;
pub mod primitives;
mod reduction;

pub use arguments::{Csr, Dense, DenseMut};
pub use element::{Operand, SumOf};
pub use reduction::Reduction;
