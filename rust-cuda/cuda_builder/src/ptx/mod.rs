//! From the compiler's PTX, one text with all kernels, to modules that are valid by themselves.

mod collectives;
mod marks;
mod modules;
mod statements;

use crate::Arch;

pub(crate) use modules::modules;

/// Why the compiler's text cannot be cut into modules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PtxError {
    /// A directive that every text has is not there.
    #[error("this is not PTX: it has no `{0}` directive")]
    NoDirective(&'static str),
    /// The last statement is not finished.
    #[error("this is not PTX: the statement that begins with `{0}` does not end")]
    Unfinished(String),
    /// A statement that declares nothing.
    #[error("this is not PTX: the statement that begins with `{0}` has no name")]
    NoName(String),
    /// The compiler has copied a part of a collective operation, or moved it to another branch. Lanes of a warp would
    /// wait for each other at different places.
    #[error(
        "the compiler has torn apart the collective operation of this assembly, or copied it: `{0}`"
    )]
    Collective(String),
    /// A mark of `#[kernel]` that is not known: `cuda_std` and `cuda_builder` are of different versions.
    #[error("kernel `{kernel}` has the mark `{mark}`, which is not known: wanted is {wanted}")]
    Mark {
        /// The entry point.
        kernel: String,
        /// What the mark says.
        mark: String,
        /// What it should say.
        wanted: &'static str,
    },
    /// An architecture of which it is not known how new PTX must be.
    #[error("module `{module}` is for {arch}, and which PTX version brought that is not known")]
    Version {
        /// The module, or its only entry point.
        module: String,
        /// The architecture.
        arch: Arch,
    },
}
