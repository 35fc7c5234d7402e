//! Writing safetensors files.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use half::bf16;
use ndarray::ArrayView2;
use serde_json::json;

use crate::output::{Output, WriteError};
use crate::scalar::Scalar;

/// Elements that are converted at a time.
const CHUNK: usize = 1 << 12;

/// Writes a matrix as the only tensor of a safetensors file, row-major and of its own type.
///
/// The file is written under another name in the same directory and renamed when it is complete, as
/// [`write_matrix_market`](crate::matrix_market::write_matrix_market) does.
///
/// # Errors
///
/// If the file cannot be created, written or renamed. The incomplete file is removed.
pub fn write_safetensors<T: Scalar>(
    path: impl AsRef<Path>,
    name: &str,
    matrix: ArrayView2<'_, T>,
) -> Result<(), WriteError> {
    Output::create(path.as_ref())?.write(|file| write_tensor(file, name, matrix))
}

/// Writes a matrix into an open file.
pub(crate) fn write_tensor<T: Scalar>(
    file: &mut dyn Write,
    name: &str,
    matrix: ArrayView2<'_, T>,
) -> io::Result<()> {
    let is_bf16 = T::SIGNIFICAND_BITS == bf16::SIGNIFICAND_BITS;
    let dtype = match size_of::<T>() {
        8 => "F64",
        4 => "F32",
        _ if is_bf16 => "BF16",
        _ => "F16",
    };
    let (rows, columns) = matrix.dim();
    let tensor = json!({
        "dtype": dtype,
        "shape": [rows, columns],
        "data_offsets": [0, matrix.len() * size_of::<T>()],
    });
    let mut header = serde_json::to_vec(&BTreeMap::from([(name, tensor)]))?;
    // The format wants the data to begin at a multiple of 8 bytes.
    header.resize(header.len().next_multiple_of(8), b' ');
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(&header)?;
    let mut bytes = Vec::with_capacity(8 * CHUNK);
    let mut left = CHUNK;
    for number in matrix {
        let number = number.to_f64();
        match dtype {
            "F64" => bytes.extend(number.to_le_bytes()),
            "F32" => bytes.extend((number as f32).to_le_bytes()),
            "BF16" => bytes.extend(<bf16 as Scalar>::from_f64(number).to_le_bytes()),
            _ => bytes.extend(<half::f16 as Scalar>::from_f64(number).to_le_bytes()),
        }
        left -= 1;
        if left == 0 {
            file.write_all(&bytes)?;
            bytes.clear();
            left = CHUNK;
        }
    }
    file.write_all(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::safetensors::Tensors;
    use half::f16;
    use ndarray::{Array2, array};

    fn written<T: Scalar>(matrix: &Array2<T>, name: &str) -> Array2<T> {
        let mut bytes = Vec::new();
        write_tensor(&mut bytes, name, matrix.view()).unwrap();
        let tensors = Tensors::read(&bytes[..]).unwrap();
        assert_eq!(tensors.names(), [name]);
        let values = tensors.values(name).unwrap().ok().unwrap();
        values.into_dimensionality().unwrap()
    }

    #[test]
    fn what_is_written_is_read_in_every_type() {
        let numbers = array![[1.5, -0.0, 3.25], [f64::INFINITY, 1e-3, 7.0]];
        assert_eq!(written(&numbers, "x"), numbers);
        let singles = numbers.mapv(|x| x as f32);
        assert_eq!(written(&singles, "a \"name\""), singles);
        let halves = numbers.mapv(<f16 as Scalar>::from_f64);
        assert_eq!(written(&halves, ""), halves);
        let brains = numbers.mapv(<bf16 as Scalar>::from_f64);
        assert_eq!(written(&brains, "x"), brains);
        let empty = Array2::<f32>::zeros((0, 3));
        assert_eq!(written(&empty, "x").dim(), (0, 3));
    }

    #[test]
    fn the_columns_of_a_view_are_written_row_by_row() {
        let matrix = array![[1.0f32, 2.0], [3.0, 4.0]];
        let mut bytes = Vec::new();
        write_tensor(&mut bytes, "x", matrix.t()).unwrap();
        assert_eq!(bytes[bytes.len() - 12..][..4], 3f32.to_le_bytes());
    }
}
