//! SpMV, sparse times a vector: `y = A x`, which is SpMM with one feature.

use super::{Spmm, SpmmElement, SpmmError, SpmmOptions};
use crate::csr::DeviceCsr;
use crate::dense::{DenseOperand, DenseOperandMut};
use crate::device::Device;
use ndarray::{Array1, ArrayView1, Axis};
use sprs::CsMatViewI;
use std::fmt;

/// A matrix A on a device, ready for products with vectors: `y = A x`.
///
/// It is an [`Spmm`] that is planned for one feature. `Display` says what the plan is.
///
/// ```
/// use ndarray::array;
/// use sprs::CsMatI;
/// use warprow::device::Device;
/// use warprow::spmm::{SpmmOptions, Spmv};
///
/// # fn main() -> Result<(), warprow::Error> {
/// // [ . 2 ]      [ 3 ]
/// // [ 1 . ]  x   [ 4 ]
/// // [ . . ]
/// let a = CsMatI::<f32, u32, u32>::new((3, 2), vec![0, 1, 2, 2], vec![1, 0], vec![2.0, 1.0]);
///
/// let device = Device::open()?;
/// let spmv = Spmv::plan(&device, a.view(), SpmmOptions::default())?;
/// assert_eq!(spmv.multiply(array![3.0, 4.0].view())?, array![8.0, 3.0, 0.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Spmv<E: SpmmElement>(Spmm<E>);

impl<E: SpmmElement> Spmv<E> {
    /// Uploads A and plans products with vectors, as [`Spmm::plan`] does for matrices. The number of features in the
    /// options is ignored.
    ///
    /// # Errors
    ///
    /// Those of [`Spmm::plan`].
    pub fn plan(
        device: &Device,
        a: CsMatViewI<'_, E, u32, u32>,
        options: SpmmOptions,
    ) -> Result<Self, SpmmError> {
        let options = options.features(1);
        Spmm::plan(device, a, options).map(Self)
    }

    /// As [`plan`](Self::plan), for an A that is already on its device, as [`Spmm::plan_device`] does for matrices.
    ///
    /// # Errors
    ///
    /// Those of [`Spmm::plan_device`].
    pub fn plan_device(a: &DeviceCsr<E::Sum>, options: SpmmOptions) -> Result<Self, SpmmError> {
        let options = options.features(1);
        Spmm::plan_device(a, options).map(Self)
    }

    /// The plan as one for dense matrices: its sizes, its kernel, its time.
    pub fn as_spmm(&self) -> &Spmm<E> {
        &self.0
    }

    /// The plan as one for dense matrices, to be changed: [`Spmm::set_values`] gives it new values.
    ///
    /// ```
    /// use ndarray::array;
    /// use sprs::CsMatI;
    /// use warprow::{Device, SpmmOptions, Spmv};
    ///
    /// # fn main() -> Result<(), warprow::Error> {
    /// // [ . 2 ]
    /// // [ 1 . ]
    /// let a = CsMatI::<f32, u32, u32>::new((2, 2), vec![0, 1, 2], vec![1, 0], vec![2.0, 1.0]);
    /// let device = Device::open()?;
    /// let mut spmv = Spmv::plan(&device, a.view(), SpmmOptions::new().updatable(true))?;
    /// spmv.as_spmm_mut().set_values(&[3.0, 4.0])?;
    /// assert_eq!(spmv.multiply(array![1.0, 10.0].view())?, array![30.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn as_spmm_mut(&mut self) -> &mut Spmm<E> {
        &mut self.0
    }

    /// `y = A x`, with as many elements in `x` as A has columns, and in `y` as it has rows. Else as [`Spmm::run`].
    ///
    /// # Errors
    ///
    /// Those of [`Spmm::run`].
    pub fn run<'x, 'y>(
        &self,
        x: impl Into<DenseOperand<'x, E>>,
        y: impl Into<DenseOperandMut<'y, E>>,
    ) -> Result<(), SpmmError> {
        self.0.run(x, 1, y)
    }

    /// `y = alpha A x + beta y`; else as [`Spmm::run_scaled`].
    ///
    /// # Errors
    ///
    /// Those of [`Spmm::run_scaled`].
    pub fn run_scaled<'x, 'y>(
        &self,
        alpha: E::Sum,
        x: impl Into<DenseOperand<'x, E>>,
        beta: E::Sum,
        y: impl Into<DenseOperandMut<'y, E>>,
    ) -> Result<(), SpmmError> {
        self.0.run_scaled(alpha, x, 1, beta, y)
    }

    /// The product with a vector of the host: uploads x, runs, and downloads y.
    ///
    /// # Errors
    ///
    /// Those of [`Spmm::multiply`].
    pub fn multiply(&self, x: ArrayView1<'_, E>) -> Result<Array1<E>, SpmmError> {
        let y = self.0.multiply(x.insert_axis(Axis(1)))?;
        Ok(y.remove_axis(Axis(1)))
    }
}

impl<E: SpmmElement> fmt::Display for Spmv<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
