//! Builds a kernel crate to PTX with a stock `rustc`, from a build script. [`CudaBuilder`] has an example.
//!
//! The NVPTX back end of `rustc` makes the PTX; no CUDA toolkit, LLVM or plug-in is needed. The compiler is a stable
//! one with the sources of `core` ([`Toolchain::find`]): the builder sets `RUSTC_BOOTSTRAP=1` for the unstable features
//! that kernels need, and compiles `core` with `-Zbuild-std`. Link-time optimisation makes one text of the crate and
//! its dependencies. The builder divides it into *modules*: one kernel each, with exactly the functions and variables
//! that it uses, for the target that its attribute names.
//!
//! The modules become an [`Archive`], a zip file. Its [`Stamp`] says what it was made from. An archive that is checked
//! in ([`CudaBuilder::checked_in`]) is used as long as its [`Inputs`] are those of the sources, whatever compiler made
//! it.
//!
//! | variable | meaning |
//! |---|---|
//! | `WARPROW_DEVICE_RUSTC` | path of the `rustc` that compiles kernels; it is an error if it cannot |
//! | `WARPROW_UPDATE_PTX` | `1`: make the checked-in archives anew if sources or compiler differ |
//! | `PTXAS` | path of the `ptxas` to use ([`Ptxas::find`]) |

mod builder;
mod checked_in;
mod error;
mod files;
mod nested_cargo;
mod ptx;
mod ptxas;
mod sources;
mod stamp;
mod toolchain;

pub use builder::CudaBuilder;
pub use error::BuildError;
pub use files::FileError;
pub use ptx::PtxError;
pub use ptx_archive::{Arch, Archive, ArchiveError, Module};
pub use ptxas::{KernelResources, Ptxas, PtxasError};
pub use sources::{Sources, SourcesError};
pub use stamp::{Inputs, Stamp, StampError};
pub use toolchain::{Toolchain, ToolchainError};

/// Whether this build script runs for the device, inside the build that [`CudaBuilder::build`] started.
///
/// A kernel crate whose build script builds the crate itself to PTX must do nothing then: it would start itself
/// for ever.
pub fn is_device_build() -> bool {
    std::env::var_os("CARGO_CFG_TARGET_ARCH").is_some_and(|arch| arch == "nvptx64")
}
