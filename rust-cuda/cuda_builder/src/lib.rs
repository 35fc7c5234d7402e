//! Builds a kernel crate to PTX with a stock `rustc`, from a build script.
//!
//! ```no_run
//! // build.rs
//! use cuda_builder::{Arch, CudaBuilder};
//!
//! fn main() -> Result<(), cuda_builder::BuildError> {
//!     let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
//!     CudaBuilder::new("kernels-gpu")
//!         .arch(Arch::SM80)
//!         .fallback("host/kernels.ptx")
//!         .copy_to(std::path::Path::new(&out).join("kernels.ptx"))
//!         .build()?;
//!     Ok(())
//! }
//! ```
//!
//! The compiler's own NVPTX back end makes the PTX: no CUDA toolkit, no LLVM and no codegen plug-in is needed, only a
//! `rustc` with the sources of `core` (see [`Toolchain::find`]). Where there is none, the PTX that is checked in
//! ([`CudaBuilder::fallback`]) is used. Every PTX file carries a [`Stamp`]: the hash of the sources and the compiler
//! that made it.
//!
//! Environment variables:
//!
//! | variable | meaning |
//! |---|---|
//! | `WARPROW_DEVICE_RUSTC` | the `rustc` to use, a path; it is an error if it does not serve |
//! | `WARPROW_UPDATE_PTX` | `1`: also write the new PTX over the one that is checked in |
//! | `PTXAS` | the `ptxas` to use ([`Ptxas::find`]), a path |

mod arch;
mod builder;
mod checked_in;
mod error;
mod files;
mod nested_cargo;
mod ptx;
mod ptxas;
mod sources;
mod toolchain;

pub use arch::Arch;
pub use builder::CudaBuilder;
pub use error::BuildError;
pub use files::FileError;
pub use ptx::{Ptx, PtxError, Stamp};
pub use ptxas::{KernelResources, Ptxas, PtxasError};
pub use sources::{Sources, SourcesError, sources_hash};
pub use toolchain::{Toolchain, ToolchainError};

/// Whether this build script runs for the device, inside the build that [`CudaBuilder::build`] started.
///
/// A kernel crate whose build script builds the crate itself to PTX must do nothing then: it would start itself
/// for ever.
pub fn is_device_build() -> bool {
    std::env::var_os("CARGO_CFG_TARGET_ARCH").is_some_and(|arch| arch == "nvptx64")
}
