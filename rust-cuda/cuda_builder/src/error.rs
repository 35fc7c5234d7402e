//! What can go wrong when a kernel crate is built.

use std::fmt;
use std::path::PathBuf;

use crate::files::FileError;
use crate::{Arch, ArchiveError, PtxError, SourcesError, StampError, ToolchainError};

/// Why a kernel crate was not built.
///
/// `Debug` prints the same text as `Display`: a build script that returns this error from `main` has it printed
/// with `Debug`, and the compiler's message must reach the user with its line breaks.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No toolchain that can compile for the device, and no archive checked in to take its place.
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    /// The kernel crate's manifest or sources could not be read.
    #[error(transparent)]
    Sources(#[from] SourcesError),
    /// The compiler does not know the architecture.
    #[error("{arch} is no architecture that {compiler} compiles for; it knows {known}")]
    UnknownArch {
        /// The architecture asked for.
        arch: Arch,
        /// The compiler's version.
        compiler: String,
        /// The architectures it knows, separated by spaces.
        known: String,
    },
    /// The kernels do not compile; the compiler's messages as it wrote them.
    #[error("the kernel crate `{package}` does not compile for the device:\n\n{messages}")]
    Compile {
        /// The kernel crate.
        package: String,
        /// What `cargo` and `rustc` wrote.
        messages: String,
    },
    /// `cargo` failed before it came to compile the kernels: most often a crate that is not downloaded.
    #[error("cargo could not build the kernel crate `{package}` for the device:\n\n{messages}")]
    Cargo {
        /// The kernel crate.
        package: String,
        /// What `cargo` wrote.
        messages: String,
    },
    /// A program could not be started.
    #[error("cannot run {}: {source}", program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The compiler's output cannot be cut into modules.
    #[error("the PTX of the kernel crate `{package}`: {source}")]
    Ptx {
        /// The kernel crate.
        package: String,
        /// What is wrong with it.
        source: PtxError,
    },
    /// What is checked in is no archive.
    #[error("{}: {source}", path.display())]
    CheckedIn {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: StampError,
    },
    /// The archive just made cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The kernel crate compiles, but no kernel is in it.
    #[error(
        "the kernel crate `{package}` has no kernel: no `extern \"ptx-kernel\"` function with an unmangled name"
    )]
    NoKernels {
        /// The kernel crate.
        package: String,
    },
    /// `WARPROW_UPDATE_PTX=1` without a toolchain that makes PTX.
    #[error("WARPROW_UPDATE_PTX=1 asks for the checked-in archives to be made anew: {0}")]
    CannotUpdate(ToolchainError),
    /// Outside of a build script the caller has to say where to build.
    #[error(
        "no directory to build in: OUT_DIR is not set (not in a build script) and no target_dir was given"
    )]
    NoTargetDir,
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
