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

use crate::device::{Device, DeviceBuffer, DeviceSlice, DeviceSliceMut};
use crate::operand::{OperandError, check_len, check_operand, elements, extent, upload_dense};
use cuda_std::memory::Global;
use ndarray::{Array2, ArrayView1, ArrayView2};
use warprow_kernels::log_softmax::Bias;
pub use warprow_kernels::log_softmax::SoftmaxElement;
#[doc(hidden)]
pub use warprow_kernels::log_softmax::SoftmaxKernel;

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
        x: impl Into<DeviceSlice<'x, T>>,
        rows: usize,
        y: impl Into<DeviceSliceMut<'y, T>>,
    ) -> Result<(), OperandError> {
        self.run_slices(x.into(), rows, y.into())
    }

    fn run_slices(
        &self,
        x: DeviceSlice<'_, T>,
        rows: usize,
        mut y: DeviceSliceMut<'_, T>,
    ) -> Result<(), OperandError> {
        let rows = extent("the number of rows of X", rows)?;
        let count = elements(rows, self.classes);
        check_operand(&self.device, "x", x, count)?;
        check_operand(&self.device, "y", &y, count)?;
        if count == 0 {
            return Ok(());
        }
        let no_bias = Global::from_address(0);
        let bias = Bias {
            values: self.bias.as_ref().map_or(no_bias, DeviceBuffer::read_only),
        };
        let handle = self.kernel.handle::<T>();
        let config = self.kernel.launch::<T>(rows, self.classes);
        let arguments = (rows, self.classes, x.read_only(), y.mutable(), bias);
        // SAFETY: the buffers belong to this device and have `rows * classes` elements, checked above. `y` is borrowed
        // mutably, so it does not overlap `x`. `plan` checked the bias. The launch is the kernel's own.
        unsafe { self.device.launch(&handle, config, arguments)? };
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
