//! The weights of a network, from a `.safetensors` file or a folder of `.npy` files, by the names that PyTorch
//! Geometric gives them: `conv1.lin.weight`, `conv1.bias`, `conv2.lin.weight` and so on.

use super::GcnLayer;
use crate::npy::{self, NpyProblem};
use crate::quote::{excerpt, quote};
use crate::safetensors::{Tensors, TensorsError, ValuesError};
use crate::scalar::Scalar;
use ndarray::{Array1, Array2, ArrayD};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Why the weights of a network cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayersError {
    /// A file that cannot be opened or read.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        error: std::io::Error,
    },
    /// A file that is no safetensors file, or only a part of one.
    #[error("{}: no safetensors file: {reason}", .path.display())]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that is no array of floats in npy format, or only a part of one.
    #[error("{}: no npy file: {reason}", .path.display())]
    Npy {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A tensor that is not there.
    #[error("{}: wanted is a tensor `{name}`, {}", .path.display(), names_found(.found))]
    Missing {
        /// The file or folder.
        path: PathBuf,
        /// The tensor's name.
        name: String,
        /// The names that are there.
        found: Vec<String>,
    },
    /// A tensor of another shape or type.
    #[error("{}: tensor `{name}` is {found}, wanted is {wanted}", .path.display())]
    Tensor {
        /// The file or folder.
        path: PathBuf,
        /// The tensor's name.
        name: String,
        /// What is wanted.
        wanted: &'static str,
        /// What it is.
        found: String,
    },
}

/// The layers of a network: from a `.safetensors` file, or from a folder with a file `NAME.npy` for each tensor.
///
/// Layer i is `conv<i>.lin.weight`, a row for each output feature, and `conv<i>.bias`, which may be missing. Layers
/// are read from `conv1` until a weight is missing. Numbers are converted to `T`: from f16, bf16, f32 or f64 in a
/// safetensors file, from any floats, integers or booleans in an npy file.
///
/// # Errors
///
/// A file that cannot be read or is no such file; no tensor `conv1.lin.weight`; a tensor that has other
/// dimensions or holds no floats.
pub fn read_layers<T: Scalar>(path: impl AsRef<Path>) -> Result<Vec<GcnLayer<T>>, LayersError> {
    let path = path.as_ref();
    if path.is_dir() {
        let read = |name: &str| read_array(&path.join(format!("{name}.npy")));
        let names = || {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let mut names: Vec<String> = names.collect();
            names.sort_unstable();
            names
        };
        layers(path, read, names)
    } else {
        let file = File::open(path).map_err(|error| failed(path, error))?;
        let tensors = Tensors::read(file).map_err(|error| match error {
            TensorsError::Io(error) => failed(path, error),
            error => LayersError::Safetensors {
                path: path.to_owned(),
                reason: error.to_string(),
            },
        })?;
        let read = |name: &str| match tensors.values(name) {
            Some(Ok(array)) => Ok(Some(array)),
            Some(Err(error)) => Err(no_values(path, name, error)),
            None => Ok(None),
        };
        layers(path, read, || tensors.names())
    }
}

/// A matrix from an npy file of numbers, such as the features of nodes; converted to `T`.
///
/// # Errors
///
/// A file that cannot be read or is no npy file of numbers; an array without exactly two dimensions.
pub fn read_matrix<T: Scalar>(path: impl AsRef<Path>) -> Result<Array2<T>, LayersError> {
    let path = path.as_ref();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    match read_array(path)? {
        Some(array) => matrix(path, &name, array),
        None => Err(failed(path, std::io::ErrorKind::NotFound.into())),
    }
}

fn layers<T: Scalar>(
    path: &Path,
    read: impl Fn(&str) -> Result<Option<ArrayD<T>>, LayersError>,
    names: impl Fn() -> Vec<String>,
) -> Result<Vec<GcnLayer<T>>, LayersError> {
    let mut layers = Vec::new();
    loop {
        let number = layers.len() + 1;
        let name = format!("conv{number}.lin.weight");
        let Some(weights) = read(&name)? else {
            if layers.is_empty() {
                return Err(LayersError::Missing {
                    path: path.to_owned(),
                    name,
                    found: names(),
                });
            }
            return Ok(layers);
        };
        let bias_name = format!("conv{number}.bias");
        let bias = match read(&bias_name)? {
            Some(bias) => Some(vector(path, &bias_name, bias)?),
            None => None,
        };
        layers.push(GcnLayer {
            weights: matrix(path, &name, weights)?.reversed_axes(),
            bias,
        });
    }
}

fn matrix<T>(path: &Path, name: &str, array: ArrayD<T>) -> Result<Array2<T>, LayersError> {
    let shape = array.shape().to_vec();
    let matrix = array.into_dimensionality();
    matrix.map_err(|_| of_shape(path, name, "two dimensions", &shape))
}

fn vector<T>(path: &Path, name: &str, array: ArrayD<T>) -> Result<Array1<T>, LayersError> {
    let shape = array.shape().to_vec();
    let vector = array.into_dimensionality();
    vector.map_err(|_| of_shape(path, name, "one dimension", &shape))
}

fn of_shape(path: &Path, name: &str, wanted: &'static str, shape: &[usize]) -> LayersError {
    LayersError::Tensor {
        path: path.to_owned(),
        name: name.to_owned(),
        wanted,
        found: format!("of shape {}", excerpt(format!("{shape:?}").as_bytes())),
    }
}

/// A tensor of a safetensors file that is no array of floats.
fn no_values(path: &Path, name: &str, error: ValuesError) -> LayersError {
    match error {
        ValuesError::Type(found) => LayersError::Tensor {
            path: path.to_owned(),
            name: name.to_owned(),
            wanted: "f16, bf16, f32 or f64",
            found: format!("{found:?}"),
        },
        ValuesError::Shape(shape) => of_shape(path, name, "a shape that fits into memory", &shape),
        ValuesError::OutOfMemory(error) => LayersError::Safetensors {
            path: path.to_owned(),
            reason: format!("not enough memory for the tensor `{name}`: {error}"),
        },
    }
}

/// An npy file's array; `None` if there is no such file.
fn read_array<T: Scalar>(path: &Path) -> Result<Option<ArrayD<T>>, LayersError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, error)),
    };
    let array = npy::read(file).map_err(|error| match error {
        NpyProblem::Io(error) => failed(path, error),
        error => LayersError::Npy {
            path: path.to_owned(),
            reason: error.to_string(),
        },
    })?;
    Ok(Some(array))
}

fn failed(path: &Path, error: std::io::Error) -> LayersError {
    LayersError::Io {
        path: path.to_owned(),
        error,
    }
}

/// The names in a file or folder, as far as a quotation goes.
fn names_found(names: &[String]) -> String {
    match names {
        [] => "found are none".to_owned(),
        names => format!("found are {}", quote(names.join(", ").as_bytes())),
    }
}
