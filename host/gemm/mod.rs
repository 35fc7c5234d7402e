//! XW: `Y = X W`, a tall dense matrix times a small one, then bias and ReLU if asked for. It is planned once for W, and
//! run as often as needed.
//!
//! ```
//! use ndarray::array;
//! use warprow::device::Device;
//! use warprow::gemm::{Gemm, GemmOptions};
//!
//! # fn main() -> Result<(), warprow::Error> {
//! let w = array![[1.0_f32, 2.0], [3.0, 4.0], [5.0, -6.0]];
//! let bias = array![0.5_f32, 1.0];
//! let x = array![[1.0_f32, 0.0, 0.0], [0.0, 1.0, 1.0]];
//!
//! let device = Device::open()?;
//! let options = GemmOptions::new().relu(true);
//! let gemm = Gemm::plan(&device, w.view(), Some(bias.view()), options)?;
//! assert_eq!(gemm.multiply(x.view())?, array![[1.5, 3.0], [8.5, 0.0]]);
//! # Ok(())
//! # }
//! ```

mod error;
mod kernel_choice;
mod options;

pub use error::GemmError;
pub use options::{GemmOptions, GemmTuning};

use self::kernel_choice::{check_kernel, check_launch, default_kernel};
use crate::dense::{DenseOperand, DenseOperandMut};
use crate::device::{Device, DeviceBuffer};
use crate::operand::{OperandError, buffer_len, check_len, elements, extent, upload_dense};
use crate::scalar::Scalar;
use cuda_std::launch::LaunchConfig;
use cuda_std::memory::Global;
use ndarray::{Array2, ArrayView1, ArrayView2};
use std::fmt;
pub use warprow_kernels::gemm::GemmKernel;
use warprow_kernels::gemm::{BiasRelu, GemmProblem, PlannedLaunch, RowStride};
use warprow_kernels::matrix::{Dense, DenseMut, Operand};

/// An element type of XW: f32, f64, f16 or bf16. 16-bit elements are summed in f32.
pub trait GemmElement: Scalar + Operand {}

impl<T: Scalar + Operand> GemmElement for T {}

/// A plan of `Y = X W`, then bias and ReLU if asked for. It owns W and the bias on a device, and the choice of a
/// kernel.
///
/// `Display` tells the matrix, the kernel, and whether the plan chose it.
#[derive(Debug)]
pub struct Gemm<T: GemmElement> {
    device: Device,
    depth: u32,
    cols: u32,
    weights: DeviceBuffer<T>,
    bias: Option<DeviceBuffer<T>>,
    kernel: GemmKernel,
    options: GemmOptions,
}

impl<T: GemmElement> Gemm<T> {
    /// Uploads W (k x n) and the bias (n), and chooses a kernel.
    ///
    /// # Errors
    ///
    /// - W has 2^32 rows or columns or more, or the bias has not one element for each column.
    /// - The kernel of the options has no instance for `T` or for the number of rows of W, needs another device or more
    ///   shared memory, or rounds f32 to tf32 although the options do not allow it.
    /// - The device has too little memory, or the driver fails.
    pub fn plan(
        device: &Device,
        w: ArrayView2<'_, T>,
        bias: Option<ArrayView1<'_, T>>,
        options: GemmOptions,
    ) -> Result<Self, GemmError> {
        let depth = extent("the number of rows of W", w.nrows())?;
        let cols = extent("the number of columns of W", w.ncols())?;
        if let Some(bias) = bias {
            check_len("the bias", bias.len() as u64, cols.into())?;
        }
        let kernel = options
            .tuning
            .kernel
            .unwrap_or_else(|| default_kernel(device, w, options.tf32));
        check_kernel::<T>(kernel, depth, device, options)?;
        let problem = problem(device, 1, (depth, cols), options.tuning.instance);
        check_launch::<T>(kernel, problem)?;
        let bias = bias.map(|bias| device.upload(&bias.to_vec()));
        Ok(Self {
            weights: device.upload(&kernel.pack(w.iter().copied().collect(), problem))?,
            bias: bias.transpose()?,
            device: device.clone(),
            depth,
            cols,
            kernel,
            options,
        })
    }

    /// Rows of W, columns of X.
    pub fn depth(&self) -> usize {
        self.depth as usize
    }

    /// Columns of W and Y.
    pub fn cols(&self) -> usize {
        self.cols as usize
    }

    /// The kernel that the plan runs.
    pub fn kernel(&self) -> GemmKernel {
        self.kernel
    }

    /// The device on which the plan runs.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The launch of a run with `rows` rows of X; `None` if the product is empty and nothing is launched.
    ///
    /// # Errors
    ///
    /// `rows` is 2^32 or more.
    pub fn launch_config(&self, rows: usize) -> Result<Option<LaunchConfig>, GemmError> {
        Ok(self.run_plan(rows)?.map(|plan| plan.config))
    }

    /// The name of the PTX entry point that a run with `rows` rows of X launches; `None` if the product is empty.
    ///
    /// # Errors
    ///
    /// `rows` is 2^32 or more.
    pub fn entry_point(&self, rows: usize) -> Result<Option<&'static str>, GemmError> {
        Ok(self.run_plan(rows)?.map(|plan| plan.kernel.name()))
    }

    /// The instance and the launch for `rows` rows of X; `None` if Y has no elements.
    fn run_plan(&self, rows: usize) -> Result<Option<PlannedLaunch<T>>, GemmError> {
        let rows = extent("the number of rows of X", rows)?;
        let plan = |problem| {
            self.kernel
                .plan(problem)
                .expect("the plan has checked the kernel")
        };
        Ok(self.problem(rows).map(plan))
    }

    /// The sizes and limits that the launch depends on; `None` if Y has no elements.
    fn problem(&self, rows: u32) -> Option<GemmProblem> {
        let problem = problem(
            &self.device,
            rows,
            (self.depth, self.cols),
            self.options.tuning.instance,
        );
        (elements(rows, self.cols) > 0).then_some(problem)
    }

    /// The number of floating-point operations of a run: a multiplication and an addition for each element of X and
    /// column of W.
    pub fn flops(&self, rows: usize) -> u128 {
        2 * rows as u128 * self.depth as u128 * self.cols as u128
    }

    /// The number of bytes of X, W and Y: what a run moves if it moves each byte once.
    pub fn bytes(&self, rows: usize) -> u128 {
        let (rows, depth, cols) = (rows as u128, self.depth as u128, self.cols as u128);
        (rows * depth + depth * cols + rows * cols) * size_of::<T>() as u128
    }

    /// Computes `y = x w`, then the plan's bias and ReLU. `x` has `rows * depth` elements, `y` has `rows * cols`; both
    /// are row-major. Either may be a view ([`DenseView`], [`DenseViewMut`]) that starts at a multiple of 16 bytes. The
    /// kernels of the product take these leading dimensions:
    ///
    /// - x: any; of an even number of 16-bit elements an even one, except by the kernels `shallow`, `inner_products`,
    ///   `fragments` and `flat_fragments`; for `inner_products` of less than 4 GiB.
    /// - y: a multiple of the greatest power of two, up to 16 bytes, that divides the columns of y; any by the kernels
    ///   `staged`, `shallow`, `inner_products`, `fragments` and `flat_fragments`.
    ///
    /// `warpgroup_fragments` and `warpgroup_split` may read up to 16 bytes of a gap between rows of x, and do not use
    /// them: if rows do not start at multiples of 16 bytes, or have an odd number of 16-bit elements. Initialise these
    /// gaps, since the emulator reports a read of memory that nobody has written. No kernel reads before the first row
    /// of x or after its last one, or writes gaps of y.
    ///
    /// [`DenseView`]: crate::DenseView
    /// [`DenseViewMut`]: crate::DenseViewMut
    ///
    /// A run allocates nothing. On a GPU it returns before the product is computed; `y.download()` waits for it.
    ///
    /// # Errors
    ///
    /// - `rows` is 2^32 or more.
    /// - A buffer has another length or belongs to another device, or a slice is not aligned to 16 bytes.
    /// - The kernel does not take the leading dimension of a view.
    /// - The launch fails.
    pub fn run<'x, 'y>(
        &self,
        x: impl Into<DenseOperand<'x, T>>,
        rows: usize,
        y: impl Into<DenseOperandMut<'y, T>>,
    ) -> Result<(), GemmError> {
        self.run_operands(x.into(), rows, y.into())
    }

    fn run_operands(
        &self,
        x: DenseOperand<'_, T>,
        rows: usize,
        mut y: DenseOperandMut<'_, T>,
    ) -> Result<(), GemmError> {
        let rows = extent("the number of rows of X", rows)?;
        let x_rows = x.check(&self.device, "x", (rows, self.depth))?;
        let y_rows = y.as_operand().check(&self.device, "y", (rows, self.cols))?;
        x_rows.check_alignment("x", x.slice().address())?;
        y_rows.check_alignment("y", y.slice_mut().address())?;
        let strides = [x_rows, y_rows].map(|rows| RowStride {
            cols: rows.cols,
            stride: rows.stride,
        });
        let takes = self.kernel.strides();
        if let Some(reason) = takes.refusal(size_of::<T>(), strides[0], strides[1]) {
            let kernel = self.kernel.name();
            return Err(GemmError::Kernel { kernel, reason });
        }
        let Some(PlannedLaunch { config, kernel }) = self.run_plan(rows as usize)? else {
            return Ok(());
        };
        let x = Dense {
            rows,
            cols: self.depth,
            stride: x_rows.stride,
            data: x.slice().read_only(),
        };
        let w = Dense::packed(self.depth, self.cols, self.weights.read_only());
        let y = DenseMut {
            rows,
            cols: self.cols,
            stride: y_rows.stride,
            data: y.slice_mut().mutable(),
        };
        let epilogue = BiasRelu {
            bias: (self.bias.as_ref()).map_or(Global::from_address(0), DeviceBuffer::read_only),
            has_bias: self.bias.is_some().into(),
            relu: self.options.relu.into(),
        };
        // SAFETY: the buffers belong to this device and have the sizes of the matrices, checked above. `y` is borrowed
        // mutably, so it does not overlap the others. `plan` checked the bias. The kernel has planned the launch and
        // packed W.
        unsafe { self.device.launch(&kernel, config, (x, w, y, epilogue))? };
        Ok(())
    }

    /// Uploads X, runs, and downloads Y. X may have any memory layout.
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run); also if X has not as many columns as W has rows, or if memory does not suffice.
    pub fn multiply(&self, x: ArrayView2<'_, T>) -> Result<Array2<T>, GemmError> {
        let (rows, depth) = x.dim();
        if depth != self.depth() {
            return Err(GemmError::Operand(OperandError::Columns {
                what: "x",
                columns: self.depth(),
                found: x.dim(),
            }));
        }
        let len = elements(extent("the number of rows of X", rows)?, self.cols);
        let len = buffer_len("the number of elements of y", len)?;
        let x = upload_dense(&self.device, x)?;
        let mut y = self.device.uninitialized(len)?;
        self.run(&x, rows, &mut y)?;
        let y = Array2::from_shape_vec((rows, self.cols()), y.download()?);
        Ok(y.expect("y has rows * cols elements"))
    }
}

/// The sizes of a product by a W of `depth` rows and `cols` columns, and the limits of the device.
fn problem(
    device: &Device,
    rows: u32,
    (depth, cols): (u32, u32),
    instance: Option<&'static str>,
) -> GemmProblem {
    GemmProblem {
        rows,
        depth,
        cols,
        multiprocessors: device.properties().multiprocessors,
        shared_bytes: device.properties().max_shared_bytes_per_block,
        instance,
    }
}

impl<T: GemmElement> fmt::Display for Gemm<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "XW in {} with a {} x {} matrix{}{} on {}: {} ({}), {}",
            T::NAME,
            self.depth,
            self.cols,
            if self.bias.is_some() { ", bias" } else { "" },
            if self.options.relu { ", ReLU" } else { "" },
            self.device,
            self.kernel.name(),
            self.kernel.summary(),
            if self.options.tuning.kernel.is_some() {
                "as asked for"
            } else {
                "the default"
            },
        )
    }
}
