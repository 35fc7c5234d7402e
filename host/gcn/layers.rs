//! The weights of a network, from a `.safetensors` file or a folder of `.npy` files, by the names that PyTorch
//! Geometric gives them: `conv1.lin.weight`, `conv1.bias`, `conv2.lin.weight` and so on.

use super::GcnLayer;
use crate::scalar::Scalar;
use half::{bf16, f16};
use ndarray::{Array1, Array2, ArrayD};
use ndarray_npy::ReadNpyExt;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
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
    /// A file that is no safetensors file.
    #[error("{}: no safetensors file: {reason}", .path.display())]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that is no array of floats in npy format.
    #[error("{}: no npy file of f32 or f64: {reason}", .path.display())]
    Npy {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A tensor that is not there.
    #[error("{}: wanted is a tensor `{name}`{}", .path.display(), names_found(.found))]
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
/// are read from `conv1` until a weight is missing. Numbers are converted to `T`, from f16, bf16, f32 or f64.
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
            entries
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect()
        };
        layers(path, read, names)
    } else {
        let bytes = std::fs::read(path).map_err(|error| LayersError::Io {
            path: path.to_owned(),
            error,
        })?;
        let wrong = |error: safetensors::SafeTensorError| LayersError::Safetensors {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let tensors = SafeTensors::deserialize(&bytes).map_err(wrong)?;
        let read = |name: &str| match tensors.tensor(name) {
            Ok(tensor) => tensor_values(path, name, &tensor).map(Some),
            Err(_) => Ok(None),
        };
        let names = || tensors.names().into_iter().map(str::to_owned).collect();
        layers(path, read, names)
    }
}

/// A matrix from an npy file of f32 or f64, such as the features of nodes; converted to `T`.
///
/// # Errors
///
/// A file that cannot be read or is no npy file of f32 or f64; an array without exactly two dimensions.
pub fn read_matrix<T: Scalar>(path: impl AsRef<Path>) -> Result<Array2<T>, LayersError> {
    let path = path.as_ref();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    match read_array(path)? {
        Some(array) => matrix(path, &name, array),
        None => Err(LayersError::Io {
            path: path.to_owned(),
            error: std::io::ErrorKind::NotFound.into(),
        }),
    }
}

fn layers<T: Scalar>(
    path: &Path,
    read: impl Fn(&str) -> Result<Option<ArrayD<f64>>, LayersError>,
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
            weights: matrix::<T>(path, &name, weights)?.reversed_axes(),
            bias,
        });
    }
}

fn matrix<T: Scalar>(
    path: &Path,
    name: &str,
    array: ArrayD<f64>,
) -> Result<Array2<T>, LayersError> {
    let shape = array.shape().to_vec();
    let matrix = array.into_dimensionality::<ndarray::Ix2>();
    let matrix = matrix.map_err(|_| of_shape(path, name, "two dimensions", &shape))?;
    Ok(matrix.mapv(T::from_f64))
}

fn vector<T: Scalar>(
    path: &Path,
    name: &str,
    array: ArrayD<f64>,
) -> Result<Array1<T>, LayersError> {
    let shape = array.shape().to_vec();
    let vector = array.into_dimensionality::<ndarray::Ix1>();
    let vector = vector.map_err(|_| of_shape(path, name, "one dimension", &shape))?;
    Ok(vector.mapv(T::from_f64))
}

fn of_shape(path: &Path, name: &str, wanted: &'static str, shape: &[usize]) -> LayersError {
    LayersError::Tensor {
        path: path.to_owned(),
        name: name.to_owned(),
        wanted,
        found: format!("of shape {shape:?}"),
    }
}

/// The numbers of a tensor, in f64, in which all are exact.
fn tensor_values(
    path: &Path,
    name: &str,
    tensor: &TensorView<'_>,
) -> Result<ArrayD<f64>, LayersError> {
    let data = tensor.data();
    let values: Vec<f64> = match tensor.dtype() {
        Dtype::F64 => data
            .as_chunks()
            .0
            .iter()
            .map(|b| f64::from_le_bytes(*b))
            .collect(),
        Dtype::F32 => data
            .as_chunks()
            .0
            .iter()
            .map(|b| f32::from_le_bytes(*b).into())
            .collect(),
        Dtype::F16 => data
            .as_chunks()
            .0
            .iter()
            .map(|b| f16::from_le_bytes(*b).into())
            .collect(),
        Dtype::BF16 => data
            .as_chunks()
            .0
            .iter()
            .map(|b| bf16::from_le_bytes(*b).into())
            .collect(),
        other => {
            return Err(LayersError::Tensor {
                path: path.to_owned(),
                name: name.to_owned(),
                wanted: "f16, bf16, f32 or f64",
                found: format!("{other:?}"),
            });
        }
    };
    let array = ArrayD::from_shape_vec(tensor.shape(), values);
    Ok(array.expect("the format checks shapes against lengths"))
}

/// An npy file's array of f32 or f64; `None` if there is no such file.
fn read_array(path: &Path) -> Result<Option<ArrayD<f64>>, LayersError> {
    let open = || match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LayersError::Io {
            path: path.to_owned(),
            error,
        }),
    };
    let Some(file) = open()? else {
        return Ok(None);
    };
    if let Ok(array) = ArrayD::<f32>::read_npy(file) {
        return Ok(Some(array.mapv(f64::from)));
    }
    let Some(file) = open()? else {
        return Ok(None);
    };
    let array = ArrayD::<f64>::read_npy(file).map_err(|error| LayersError::Npy {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(Some(array))
}

fn names_found(names: &[String]) -> String {
    if names.is_empty() {
        return ", found are none".to_owned();
    }
    format!(", found are {}", names.join(", "))
}
