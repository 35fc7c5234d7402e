//! Reading and writing matrices in the format that the name of a file says.
//!
//! | name | sparse | dense | |
//! |---|---|---|---|
//! | `.mtx`, `.mtx.gz` | yes | | [Matrix Market](crate::matrix_market) |
//! | `.npz` | yes | | [SciPy's `save_npz`](crate::npz) |
//! | `.tsv`, `.csv`, `.tsv.gz`, `.csv.gz` | yes | | [edge list](crate::edge_list) |
//! | `.npy` | | yes | [NumPy](crate::npy) |
//! | `.safetensors` | | yes | [safetensors](crate::safetensors) |

mod error;
mod formats;
mod output;

use std::path::Path;

use ndarray::Array2;
use sprs::CsMatI;

use crate::edge_list::EdgeListOptions;
use crate::matrix_market::read_matrix_market;
use crate::npy::read_npy;
use crate::npz::read_npz;
use crate::safetensors::read_safetensors;
use crate::scalar::Scalar;
pub use error::FileError;
pub use formats::Format;
pub use output::Output;

/// What a file's name does not say.
#[derive(Clone, Debug, Default)]
pub struct FileOptions {
    format: Option<Format>,
    edge_list: EdgeListOptions,
    tensor: Option<String>,
}

impl FileOptions {
    /// The format. Default: what the end of the name says.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// How edge lists are read.
    #[must_use]
    pub fn edge_list(mut self, options: EdgeListOptions) -> Self {
        self.edge_list = options;
        self
    }

    /// The tensor of a safetensors file. Default: the only one. Other formats refuse a name.
    #[must_use]
    pub fn tensor(mut self, name: impl Into<String>) -> Self {
        self.tensor = Some(name.into());
        self
    }

    /// Reads a sparse matrix.
    ///
    /// # Errors
    ///
    /// A name or format that is none of sparse matrices; what the format's own reader refuses.
    pub fn read_sparse<T: Scalar>(
        &self,
        path: impl AsRef<Path>,
    ) -> Result<CsMatI<T, u32, u32>, FileError> {
        let path = path.as_ref();
        Ok(match Format::of_kind(path, self.format, true)?.0 {
            Format::Npz => read_npz(path)?,
            Format::EdgeList => self.edge_list.read(path)?,
            _ => read_matrix_market(path)?,
        })
    }

    /// Reads a dense matrix.
    ///
    /// # Errors
    ///
    /// A name or format that is none of dense matrices; the name of a tensor for an npy file; what the format's own
    /// reader refuses.
    pub fn read_dense<T: Scalar>(&self, path: impl AsRef<Path>) -> Result<Array2<T>, FileError> {
        let path = path.as_ref();
        let tensor = self.tensor.as_deref();
        match (Format::of_kind(path, self.format, false)?.0, tensor) {
            (Format::Safetensors, _) => Ok(read_safetensors(path, tensor)?),
            (_, Some(tensor)) => Err(FileError::Tensor {
                file: path.display().to_string(),
                tensor: tensor.to_owned(),
            }),
            (_, None) => Ok(read_npy(path)?),
        }
    }
}

/// Reads a sparse matrix with the default [`FileOptions`].
///
/// # Errors
///
/// As for [`FileOptions::read_sparse`].
pub fn read_sparse<T: Scalar>(path: impl AsRef<Path>) -> Result<CsMatI<T, u32, u32>, FileError> {
    FileOptions::default().read_sparse(path)
}

/// Reads a dense matrix with the default [`FileOptions`].
///
/// # Errors
///
/// As for [`FileOptions::read_dense`].
pub fn read_dense<T: Scalar>(path: impl AsRef<Path>) -> Result<Array2<T>, FileError> {
    FileOptions::default().read_dense(path)
}
