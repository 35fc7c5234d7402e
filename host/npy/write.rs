//! Writing npy files.

use std::io::{self, Write};
use std::path::Path;

use half::f16;
use ndarray::ArrayView2;

use crate::output::{Output, WriteError};
use crate::scalar::Scalar;

/// The header's length, with everything before it, is a multiple of this: NumPy maps files into memory.
const ALIGNMENT: usize = 64;

/// Elements that are converted at a time.
const CHUNK: usize = 1 << 12;

/// Writes a matrix as an npy file of version 1, row-major: `<f8` for f64, `<f4` for f32, `<f2` for f16, and `<f4` for
/// bf16, which NumPy does not have.
///
/// The file is written under another name in the same directory and renamed when it is complete, as
/// [`write_matrix_market`](crate::matrix_market::write_matrix_market) does.
///
/// # Errors
///
/// If the file cannot be created, written or renamed. The incomplete file is removed.
pub fn write_npy<T: Scalar>(
    path: impl AsRef<Path>,
    matrix: ArrayView2<'_, T>,
) -> Result<(), WriteError> {
    Output::create(path.as_ref())?.write(|file| write_array(file, matrix))
}

/// Writes a matrix into an open file.
pub(crate) fn write_array<T: Scalar>(
    file: &mut dyn Write,
    matrix: ArrayView2<'_, T>,
) -> io::Result<()> {
    let kind = Kind::of::<T>();
    let (rows, columns) = matrix.dim();
    write_header(file, kind.descr(), &format!("({rows}, {columns})"))?;
    write_numbers(file, kind, matrix.iter())
}

/// Writes what comes before the elements: `shape` is a tuple in the syntax of Python.
pub(crate) fn write_header(file: &mut dyn Write, descr: &str, shape: &str) -> io::Result<()> {
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let start = b"\x93NUMPY\x01\x00".len() + 2;
    let unpadded = start + text.len() + 1;
    text.extend(std::iter::repeat_n(
        ' ',
        unpadded.next_multiple_of(ALIGNMENT) - unpadded,
    ));
    text.push('\n');
    file.write_all(b"\x93NUMPY\x01\x00")?;
    // Two axes, of 20 digits at most, leave the length far below 2^16.
    file.write_all(&(text.len() as u16).to_le_bytes())?;
    file.write_all(text.as_bytes())
}

/// The type that numbers are stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    F16,
    F32,
    F64,
}

impl Kind {
    /// The narrowest that holds every number of `T`.
    pub(crate) fn of<T: Scalar>() -> Self {
        match size_of::<T>() {
            8 => Self::F64,
            2 if T::SIGNIFICAND_BITS == f16::SIGNIFICAND_BITS => Self::F16,
            _ => Self::F32,
        }
    }

    /// NumPy's description.
    pub(crate) fn descr(self) -> &'static str {
        match self {
            Self::F16 => "<f2",
            Self::F32 => "<f4",
            Self::F64 => "<f8",
        }
    }
}

/// Writes numbers one after the other, little-endian.
pub(crate) fn write_numbers<'a, T: Scalar>(
    file: &mut dyn Write,
    kind: Kind,
    numbers: impl Iterator<Item = &'a T>,
) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(8 * CHUNK);
    let mut left = CHUNK;
    for number in numbers {
        let number = number.to_f64();
        match kind {
            Kind::F16 => bytes.extend(<f16 as Scalar>::from_f64(number).to_le_bytes()),
            Kind::F32 => bytes.extend((number as f32).to_le_bytes()),
            Kind::F64 => bytes.extend(number.to_le_bytes()),
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
    use crate::npy::parse;
    use half::bf16;
    use ndarray::{Array2, array};

    fn written<T: Scalar>(matrix: &Array2<T>) -> (Vec<u8>, Array2<T>) {
        let mut bytes = Vec::new();
        write_array(&mut bytes, matrix.view()).unwrap();
        let read = parse(&bytes[..], Some(bytes.len() as u64)).unwrap();
        (bytes, read.into_dimensionality().unwrap())
    }

    #[test]
    fn what_is_written_is_read_in_every_type() {
        let numbers = array![[1.5, -0.0, 3.25], [f64::INFINITY, 1e-3, 7.0]];
        assert_eq!(written(&numbers).1, numbers);
        let singles = numbers.mapv(|x| x as f32);
        assert_eq!(written(&singles).1, singles);
        let halves = numbers.mapv(<f16 as Scalar>::from_f64);
        assert_eq!(written(&halves).1, halves);
        let brains = numbers.mapv(<bf16 as Scalar>::from_f64);
        assert_eq!(written(&brains).1, brains);
    }

    #[test]
    fn the_numbers_begin_at_a_multiple_of_64_bytes_and_are_row_major() {
        let matrix = array![[1.0f32, 2.0], [3.0, 4.0]];
        let (bytes, _) = written(&matrix.t().to_owned());
        assert_eq!(bytes.len(), 128 + 16);
        assert_eq!(bytes[127], b'\n');
        assert_eq!(bytes[132..136], 3f32.to_le_bytes());
    }

    #[test]
    fn a_matrix_without_elements_keeps_its_shape() {
        for shape in [(0, 0), (0, 3), (3, 0)] {
            assert_eq!(written(&Array2::<f32>::zeros(shape)).1.dim(), shape);
        }
    }

    #[test]
    fn more_numbers_than_a_chunk_are_all_written() {
        let matrix = Array2::from_shape_fn((3, CHUNK), |(i, j)| (i * CHUNK + j) as f32);
        assert_eq!(written(&matrix).1, matrix);
    }
}
