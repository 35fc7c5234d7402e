//! Reading and writing matrices in safetensors files (<https://huggingface.co/docs/safetensors>).
//!
//! Numbers of type f16, bf16, f32 and f64 are read, and rounded to the nearest of the element type. What a header
//! declares is compared with the file's length.

mod tensors;
mod write;

use std::fs::File;
use std::io;
use std::path::Path;

use ndarray::Array2;

use crate::quote::{excerpt, quote};
use crate::scalar::Scalar;
use tensors::no_values;
pub(crate) use tensors::{Tensors, TensorsError, ValuesError};
pub use write::write_safetensors;
pub(crate) use write::write_tensor;

/// Why a matrix could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
#[non_exhaustive]
pub struct SafetensorsError {
    /// The file's path.
    pub file: String,
    /// What is wrong with it.
    pub problem: SafetensorsProblem,
}

/// What is wrong with a safetensors file. Messages quote at most 80 characters of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SafetensorsProblem {
    /// The system failed to open or read the file.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// It is no safetensors file, or a part of one.
    #[error("no safetensors file: {0}")]
    Format(String),
    /// There is no such tensor, or it is not clear which one is wanted.
    #[error("wanted {wanted}, found {found}")]
    Tensor {
        /// The name, or that there is one tensor.
        wanted: String,
        /// The names that are there, quoted.
        found: String,
    },
    /// The tensor is of another type or shape.
    #[error("tensor {name}: wanted {wanted}, found {found}")]
    Values {
        /// The tensor's name, quoted.
        name: String,
        /// What is wanted.
        wanted: &'static str,
        /// What it is.
        found: String,
    },
}

/// Reads a matrix from a safetensors file: the tensor `name`, or the only one if `name` is `None`.
///
/// # Errors
///
/// A file that cannot be read or is no safetensors file; no such tensor, or several without a name; a tensor without
/// exactly two axes, or whose elements are no floats.
pub fn read_safetensors<T: Scalar>(
    path: impl AsRef<Path>,
    name: Option<&str>,
) -> Result<Array2<T>, SafetensorsError> {
    let path = path.as_ref();
    read(path, name).map_err(|problem| SafetensorsError {
        file: path.display().to_string(),
        problem,
    })
}

fn read<T: Scalar>(path: &Path, name: Option<&str>) -> Result<Array2<T>, SafetensorsProblem> {
    let tensors = Tensors::read(File::open(path)?).map_err(|error| match error {
        TensorsError::Io(error) => error.into(),
        error => SafetensorsProblem::Format(error.to_string()),
    })?;
    let names = tensors.names();
    let name = match (name, &names[..]) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, _) => {
            return Err(SafetensorsProblem::Tensor {
                wanted: "one tensor, or the name of one".to_owned(),
                found: names_found(&names),
            });
        }
    };
    let values = tensors.values(name);
    let values = values.ok_or_else(|| SafetensorsProblem::Tensor {
        wanted: format!("a tensor {}", quote(name.as_bytes())),
        found: names_found(&names),
    })?;
    let wrong = |wanted, found| SafetensorsProblem::Values {
        name: quote(name.as_bytes()),
        wanted,
        found,
    };
    let array = values.map_err(|error| no_values(error, wrong))?;
    let shape = excerpt(format!("shape {:?}", array.shape()).as_bytes());
    (array.into_dimensionality()).map_err(|_| wrong("two axes", shape))
}

/// The names in a file, as far as a quotation goes.
fn names_found(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => quote(names.join(", ").as_bytes()),
    }
}
