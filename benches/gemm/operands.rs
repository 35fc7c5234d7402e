//! X, W and Y of a product, random or of small whole numbers.

use ndarray::{Array2, ArrayView2, s};
use warprow::device::{Device, DeviceBuffer, DeviceError};
use warprow::gemm::GemmElement;
use warprow::generate::{self, GenerateError};
use warprow::reference::{Arithmetic, DenseEpilogue, gemm};
use warprow::{Error, Gemm, GemmKernel, GemmOptions};

/// Random rows of X; the rows after them repeat them.
const RANDOM_ROWS: usize = 1 << 15;

/// Rows of a product of whole numbers, at most: an odd number, so that the last tile is not full.
const WHOLE_ROWS: usize = 40_007;

/// How a kernel of this crate computes, or cuBLAS, which may use tensor cores wherever they lose nothing.
pub fn arithmetic<T: GemmElement>(kernel: Option<GemmKernel>) -> Arithmetic {
    let rounds_f32 = kernel.is_some_and(GemmKernel::rounds_f32);
    match (rounds_f32, T::NAME) {
        (true, "f32") => Arithmetic::tf32(),
        (_, "f16" | "bf16") => Arithmetic::tensor_cores(),
        _ => Arithmetic::of::<T>(),
    }
}

/// A matrix of random rows, repeated.
///
/// # Errors
///
/// Too little memory.
pub fn repeated<T: GemmElement>(rows: usize, cols: usize, seed: u64) -> Result<Array2<T>, Error> {
    let out_of_memory = GenerateError::OutOfMemory {
        rows,
        columns: cols,
        wanted: rows as u128 * cols as u128 * size_of::<T>() as u128,
    };
    let mut values = Vec::new();
    let length = rows.checked_mul(cols);
    let reserved = length.filter(|&length| values.try_reserve_exact(length).is_ok());
    let length = reserved.ok_or(out_of_memory)?;
    let random = generate::dense::<T>(rows.min(RANDOM_ROWS), cols, seed)?;
    while values.len() < length {
        let missing = (length - values.len()).min(random.len());
        values.extend_from_slice(&elements(&random)[..missing]);
    }
    Ok(Array2::from_shape_vec((rows, cols), values).expect("there are as many values"))
}

/// The rows of X that differ. The rows after them repeat them.
pub fn distinct_rows<T>(x: &Array2<T>) -> ArrayView2<'_, T> {
    x.slice(s![..x.nrows().min(RANDOM_ROWS), ..])
}

/// Operands with as many columns and small whole numbers, whose sums are exact in any order and in tf32.
#[derive(Debug)]
pub struct WholeOperands<T: GemmElement> {
    x: DeviceBuffer<T>,
    w: Array2<T>,
    /// Their product, rounded once to the type.
    wanted: Array2<T>,
}

impl<T: GemmElement> WholeOperands<T> {
    /// For X and W of elements from -1 to 1. It has the first 40,007 rows of X.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn new(device: &Device, x: &Array2<T>, w: &Array2<T>) -> Result<Self, DeviceError> {
        let whole =
            |matrix: ArrayView2<'_, T>| matrix.mapv(|a| T::from_f64((3.0 * a.to_f64()).round()));
        let rows = x.nrows().min(WHOLE_ROWS);
        let (x, w) = (whole(x.slice(s![..rows, ..])), whole(w.view()));
        let product = gemm(x.view(), w.view(), DenseEpilogue::default());
        Ok(Self {
            x: device.upload(elements(&x))?,
            wanted: product.mapv(T::from_f64),
            w,
        })
    }

    /// Whether the product by a plan with these options is exact.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn is_exact(&self, device: &Device, options: GemmOptions) -> Result<bool, Error> {
        let gemm = Gemm::plan(device, self.w.view(), None, options)?;
        let mut y = device.uninitialized(self.wanted.len())?;
        poison(&mut y)?;
        gemm.run(&self.x, self.wanted.nrows(), &mut y)?;
        let is_exact = y.download()? == elements(&self.wanted);
        if !is_exact {
            eprintln!("wrong with small whole numbers: {gemm}");
        }
        Ok(is_exact)
    }
}

/// The elements of a generated matrix, row by row.
///
/// # Panics
///
/// If the matrix is not contiguous.
pub fn elements<T>(matrix: &Array2<T>) -> &[T] {
    matrix.as_slice().expect("a generated matrix is contiguous")
}

/// Fills Y with NaN, so that what an implementation does not write is wrong.
///
/// # Errors
///
/// The device's.
pub fn poison<T: GemmElement>(y: &mut DeviceBuffer<T>) -> Result<(), DeviceError> {
    let nan = vec![T::from_f64(f64::NAN); y.len()];
    y.copy_from_slice(&nan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_repeated_and_sizes_beyond_all_memory_are_errors() {
        let x = repeated::<f32>(RANDOM_ROWS + 3, 2, 1).unwrap();
        assert_eq!(x.row(RANDOM_ROWS + 2), x.row(2));
        assert_eq!(distinct_rows(&x).nrows(), RANDOM_ROWS);
        let most = u32::MAX as usize;
        for (rows, cols) in [(most, most), (1 << 26, 1 << 22)] {
            let error = repeated::<f64>(rows, cols, 1).unwrap_err();
            assert!(matches!(
                error,
                Error::Generate(GenerateError::OutOfMemory { .. })
            ));
        }
    }
}
