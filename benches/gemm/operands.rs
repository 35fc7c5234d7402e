//! X, W and Y of a product, random or of small whole numbers.

use ndarray::{Array2, ArrayView2, s};
use std::ops::Range;
use warprow::device::{Device, DeviceBuffer, DeviceError};
use warprow::gemm::GemmElement;
use warprow::generate::{self, GenerateError};
use warprow::reference::{Arithmetic, DenseEpilogue, gemm};
use warprow::{Error, Gemm, GemmKernel, GemmOptions};

/// Random rows of X; the rows after them repeat them.
const RANDOM_ROWS: usize = 1 << 15;

/// Rows of X that differ if only a sample of the rows is compared: an odd number, so that tiles begin anywhere.
const SAMPLED_ROWS: usize = 4099;

/// Rows of a product of whole numbers, at most: an odd number, so that the last tile is not full.
const WHOLE_ROWS: usize = 40_007;

/// The rows of a product, and which of them are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    all: usize,
    /// Rows of X that the host has; the others repeat them.
    on_host: usize,
}

impl Rows {
    /// All rows are compared.
    pub fn all(rows: u32) -> Self {
        let all = rows as usize;
        Self { all, on_host: all }
    }

    /// The first and the last rows are compared.
    pub fn sampled(rows: u32) -> Self {
        let all = rows as usize;
        let on_host = all.min(SAMPLED_ROWS);
        Self { all, on_host }
    }

    /// How many there are.
    pub fn count(self) -> u32 {
        // `all` was one.
        self.all as u32
    }

    /// How many rows the host has to have.
    pub fn on_host(self) -> usize {
        self.on_host
    }

    /// How many are compared.
    pub fn compared(self) -> usize {
        self.ranges().iter().map(ExactSizeIterator::len).sum()
    }

    /// The compared rows. The second range begins where rows of X repeat the first one.
    fn ranges(self) -> [Range<usize>; 2] {
        let last = self.all.saturating_sub(1) / self.on_host.max(1) * self.on_host;
        [0..self.on_host, last.max(self.on_host)..self.all]
    }

    /// Downloads the compared rows of Y, of `cols` columns.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn download<T: GemmElement>(
        self,
        y: &DeviceBuffer<T>,
        cols: usize,
    ) -> anyhow::Result<Array2<T>> {
        let mut elements = Vec::new();
        for rows in self.ranges() {
            elements.extend(y.slice(rows.start * cols..rows.end * cols)?.download()?);
        }
        Ok(Array2::from_shape_vec((self.compared(), cols), elements)?)
    }

    /// Uploads X: the rows that the host has, repeated.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn upload<T: GemmElement>(
        self,
        device: &Device,
        x: &Array2<T>,
    ) -> Result<DeviceBuffer<T>, DeviceError> {
        if x.nrows() == self.all {
            return device.upload(elements(x));
        }
        let mut uploaded = device.uninitialized(self.all * x.ncols())?;
        let mut filled = x.len();
        uploaded.slice_mut(..filled)?.copy_from_slice(elements(x))?;
        while filled < uploaded.len() {
            let (from, to) = uploaded.as_mut_slice().split_at(filled)?;
            let more = filled.min(to.len());
            to.slice(..more)?
                .copy_from(from.into_slice().slice(..more)?)?;
            filled += more;
        }
        Ok(uploaded)
    }
}

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
    // All bits are set in a NaN of each type.
    y.fill_bytes(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_first_and_the_last_rows() {
        let device = Device::emulator(Default::default());
        let x = repeated::<f32>(SAMPLED_ROWS, 3, 1).unwrap();
        for rows in [1, 4098, 4099, 4100, 8197, 8198, 8199, 30_000] {
            let sample = Rows::sampled(rows);
            let on_host = sample.on_host();
            assert_eq!(on_host, SAMPLED_ROWS.min(rows as usize));
            let x = x.slice(s![..on_host, ..]).to_owned();
            let uploaded = sample.upload(&device, &x).unwrap();
            let compared = sample.download(&uploaded, 3).unwrap();
            let wanted = |row: usize| x.row(row % on_host);
            assert!((0..compared.nrows()).all(|row| compared.row(row) == wanted(row)));
            let last = compared.nrows() - 1;
            assert_eq!(compared.row(last), wanted(rows as usize - 1));
            assert_eq!(uploaded.len(), rows as usize * 3);
        }
        assert_eq!(Rows::all(8198).compared(), 8198);
        assert_eq!(Rows::sampled(8198).compared(), 8198);
        assert_eq!(Rows::sampled(8199).compared(), 4099 + 1);
    }

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
