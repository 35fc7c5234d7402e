//! The error that unites those of all formats.

use crate::edge_list::EdgeListError;
use crate::matrix_market::ReadError;
use crate::npy::NpyError;
use crate::npz::NpzError;
use crate::output::WriteError;
use crate::safetensors::SafetensorsError;

/// Why a matrix could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A name whose end is that of no format, or of one for other matrices.
    #[error("{file}: wanted the name of {kind} matrix to end in {}", listed(.wanted))]
    Format {
        /// The file's path.
        file: String,
        /// `a sparse` or `a dense`.
        kind: &'static str,
        /// The ends that serve.
        wanted: Vec<&'static str>,
    },
    /// The name of a tensor, for a file whose array has no name.
    #[error(
        "{file}: wanted no name of a tensor, as an npy file holds one array without a name; found `{tensor}`"
    )]
    Tensor {
        /// The file's path.
        file: String,
        /// The name.
        tensor: String,
    },
    /// A Matrix Market file cannot be read.
    #[error(transparent)]
    MatrixMarket(#[from] ReadError),
    /// An npz file cannot be read.
    #[error(transparent)]
    Npz(#[from] NpzError),
    /// An edge list cannot be read.
    #[error(transparent)]
    EdgeList(#[from] EdgeListError),
    /// An npy file cannot be read.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// A safetensors file cannot be read.
    #[error(transparent)]
    Safetensors(#[from] SafetensorsError),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// `.npy or .safetensors`.
fn listed(ends: &[&str]) -> String {
    match ends {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
