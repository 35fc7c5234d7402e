//! X, W and Y of a product, random or of small whole numbers.

use ndarray::Array2;
use warprow::device::{Device, DeviceBuffer, DeviceError};
use warprow::gemm::GemmElement;
use warprow::reference::{Arithmetic, DenseEpilogue, gemm};
use warprow::{Error, Gemm, GemmKernel, GemmOptions, generate};

/// Random rows of X; the rows after them repeat them.
const RANDOM_ROWS: usize = 1 << 15;

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
pub fn repeated<T: GemmElement>(rows: usize, cols: usize, seed: u64) -> Array2<T> {
    let random = generate::dense::<T>(rows.min(RANDOM_ROWS), cols, seed);
    let mut values = Vec::with_capacity(rows * cols);
    while values.len() < rows * cols {
        let missing = (rows * cols - values.len()).min(random.len());
        values.extend_from_slice(&elements(&random)[..missing]);
    }
    Array2::from_shape_vec((rows, cols), values).expect("there are as many values")
}

/// Operands of the same shapes with small whole numbers, whose sums are exact in any order and in tf32.
#[derive(Debug)]
pub struct WholeOperands<T: GemmElement> {
    x: DeviceBuffer<T>,
    w: Array2<T>,
    /// Their product, rounded once to the type.
    wanted: Array2<T>,
}

impl<T: GemmElement> WholeOperands<T> {
    /// For X and W of elements from -1 to 1.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn new(device: &Device, x: &Array2<T>, w: &Array2<T>) -> Result<Self, DeviceError> {
        let whole = |matrix: &Array2<T>| matrix.mapv(|a| T::from_f64((3.0 * a.to_f64()).round()));
        let (x, w) = (whole(x), whole(w));
        let product = gemm(x.view(), w.view(), DenseEpilogue::default());
        Ok(Self {
            x: device.upload(elements(&x))?,
            wanted: product.mapv(T::from_f64),
            w,
        })
    }

    /// Whether the product by a plan with these options is exact, in all rows. It leaves it in `y`.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn is_exact(
        &self,
        device: &Device,
        options: GemmOptions,
        y: &mut DeviceBuffer<T>,
    ) -> Result<bool, Error> {
        let gemm = Gemm::plan(device, self.w.view(), None, options)?;
        poison(y)?;
        gemm.run(&self.x, self.wanted.nrows(), y)?;
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
