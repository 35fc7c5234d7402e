//! LogSoftmax of the rows of a dense matrix, planned once for a number of classes.
//!
//! ```
//! use ndarray::array;
//! use warprow::device::Device;
//! use warprow::log_softmax::LogSoftmax;
//!
//! # fn main() -> Result<(), warprow::Error> {
//! let device = Device::open()?;
//! let x = array![[0.0_f64, 0.0, 0.0, 0.0], [1000.0, 1000.0, 1000.0, 1000.0]];
//! let y = LogSoftmax::plan(&device, 4, None)?.apply(x.view())?;
//! assert!(y.iter().all(|y| (y + 4.0_f64.ln()).abs() < 1e-12));
//! # Ok(())
//! # }
//! ```

use crate::dense::{DenseOperand, DenseOperandMut};
use crate::device::{Device, DeviceBuffer};
use crate::operand::{OperandError, check_len, elements, extent, upload_dense};
use cuda_std::memory::Global;
use ndarray::{Array2, ArrayView1, ArrayView2};
use warprow_kernels::log_softmax::Bias;
pub use warprow_kernels::log_softmax::SoftmaxElement;
#[doc(hidden)]
pub use warprow_kernels::log_softmax::SoftmaxKernel;
use warprow_kernels::matrix::{Dense, DenseMut};

/// A plan of LogSoftmax on a device: `y_j = z_j - ln(sum over k of exp(z_k))` for each row, with `z = x + bias`.
#[derive(Debug)]
pub struct LogSoftmax<T: SoftmaxElement> {
    device: Device,
    classes: u32,
    bias: Option<DeviceBuffer<T>>,
    kernel: SoftmaxKernel,
}

impl<T: SoftmaxElement> LogSoftmax<T> {
    /// Plans for rows of `classes` classes, and uploads the bias if there is one.
    ///
    /// # Errors
    ///
    /// - `classes` is 2^31 or more, or the bias has another length.
    /// - The device has too little memory, or the driver fails.
    pub fn plan(
        device: &Device,
        classes: usize,
        bias: Option<ArrayView1<'_, T>>,
    ) -> Result<Self, OperandError> {
        // A lane counts its columns in a u32 and passes the last class by a stride, so 2^32 is too near.
        let count = i32::try_from(classes).map_err(|_| OperandError::TooLarge {
            what: "the number of classes",
            found: classes as u128,
            most: i32::MAX as u64,
        })?;
        if let Some(bias) = bias {
            check_len("the bias", bias.len() as u64, classes as u64)?;
        }
        let bias = bias.map(|bias| device.upload(&bias.to_vec()));
        Ok(Self {
            device: device.clone(),
            classes: count as u32,
            bias: bias.transpose()?,
            kernel: SoftmaxKernel::for_rows::<T>(count as u32),
        })
    }

    /// The same plan by that kernel; `None` if it does not take rows of so many classes. For benches and tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_kernel(self, kernel: SoftmaxKernel) -> Option<Self> {
        (kernel.takes::<T>(self.classes)).then_some(Self { kernel, ..self })
    }

    /// The name of the PTX entry point that a run launches.
    pub fn entry_point(&self) -> &'static str {
        self.kernel.handle::<T>().name()
    }

    /// The number of classes, which is the length of a row.
    pub fn classes(&self) -> usize {
        self.classes as usize
    }

    /// The number of bytes of X and Y: what a run moves if it moves each byte once.
    pub fn bytes(&self, rows: usize) -> u128 {
        2 * rows as u128 * u128::from(self.classes) * size_of::<T>() as u128
    }

    /// Computes `y = LogSoftmax(x + bias)` for each row. `x` and `y` have `rows * classes` elements and are row-major.
    /// Either may be a [`DenseView`](crate::DenseView) with any leading dimension. If rows do not start at multiples of
    /// four elements, or have gaps and are no multiple of four, a slower kernel runs.
    ///
    /// A run allocates nothing. On a GPU it returns before the result is computed; `y.download()` waits for it.
    ///
    /// # Errors
    ///
    /// - `rows` is 2^32 or more.
    /// - A buffer has another length or belongs to another device, or a slice is not aligned to 16 bytes.
    /// - The launch fails.
    pub fn run<'x, 'y>(
        &self,
        x: impl Into<DenseOperand<'x, T>>,
        rows: usize,
        y: impl Into<DenseOperandMut<'y, T>>,
    ) -> Result<(), OperandError> {
        self.run_operands(x.into(), rows, y.into())
    }

    fn run_operands(
        &self,
        x: DenseOperand<'_, T>,
        rows: usize,
        mut y: DenseOperandMut<'_, T>,
    ) -> Result<(), OperandError> {
        let rows = extent("the number of rows of X", rows)?;
        let x_rows = x.check(&self.device, "x", (rows, self.classes))?;
        let y_rows = y
            .as_operand()
            .check(&self.device, "y", (rows, self.classes))?;
        if elements(rows, self.classes) == 0 {
            return Ok(());
        }
        let no_bias = Global::from_address(0);
        let bias = Bias {
            values: self.bias.as_ref().map_or(no_bias, DeviceBuffer::read_only),
        };
        let multiple = x_rows.multiple() | y_rows.multiple();
        let is_packed = x_rows.is_packed() && y_rows.is_packed();
        let kernel = if self.kernel.takes_starts(multiple, is_packed) {
            self.kernel
        } else {
            SoftmaxKernel::Streamed
        };
        let (handle, config) = (kernel.handle::<T>(), kernel.launch::<T>(rows, self.classes));
        let x = Dense {
            rows,
            cols: self.classes,
            stride: x_rows.stride,
            data: x.slice().read_only(),
        };
        let y = DenseMut {
            rows,
            cols: self.classes,
            stride: y_rows.stride,
            data: y.slice_mut().mutable(),
        };
        // SAFETY: the matrices are on this device, have `rows` rows of `classes` elements, and start as the kernel
        // wants it, checked above. `y` is borrowed mutably, so it does not overlap `x`. `plan` checked the bias. The
        // launch is the kernel's own.
        unsafe { self.device.launch(&handle, config, (x, y, bias))? };
        Ok(())
    }

    /// Uploads X, runs, and downloads Y. X may have any memory layout.
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run); also if X has not `classes` columns, or if memory does not suffice.
    pub fn apply(&self, x: ArrayView2<'_, T>) -> Result<Array2<T>, OperandError> {
        if x.ncols() != self.classes() {
            return Err(OperandError::Columns {
                what: "x",
                columns: self.classes(),
                found: x.dim(),
            });
        }
        let x_device = upload_dense(&self.device, x)?;
        let mut y = self.device.uninitialized(x.len())?;
        self.run(&x_device, x.nrows(), &mut y)?;
        let y = Array2::from_shape_vec(x.dim(), y.download()?);
        Ok(y.expect("y has as many elements as x"))
    }
}
