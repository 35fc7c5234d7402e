//! SpMM, sparse times dense: `Y = A X`, planned once and run many times.
//!
//! ```
//! use ndarray::array;
//! use sprs::CsMatI;
//! use warprow::device::Device;
//! use warprow::spmm::{Spmm, SpmmOptions};
//!
//! # fn main() -> Result<(), warprow::Error> {
//! // [ . 2 ]         [ 1 2 3 ]
//! // [ 1 . ]    x    [ 4 5 6 ]
//! // [ . . ]
//! let a = CsMatI::<f32, u32, u32>::new((3, 2), vec![0, 1, 2, 2], vec![1, 0], vec![2.0, 1.0]);
//! let x = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
//!
//! let device = Device::open()?;
//! let spmm = Spmm::plan(&device, a.view(), SpmmOptions::default())?;
//! assert_eq!(spmm.multiply(x.view())?, array![[8.0, 10.0, 12.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]);
//! # Ok(())
//! # }
//! ```

mod items;
mod order;
mod slices;
mod times;

use crate::csr::DeviceCsr;
use crate::device::{Device, DeviceBuffer};
use crate::error::Error;
use crate::scalar::Scalar;
use cuda_std::float::Real;
use cuda_std::launch::LaunchConfig;
use items::PlannedItems;
use ndarray::{Array2, ArrayView2};
use order::OrderedRows;
pub use order::RowOrder;
use sprs::CsMatViewI;
use std::fmt;
use std::time::Instant;
pub use times::PlanTimes;
use warprow_kernels::matrix::{Csr, Dense, DenseMut};
pub use warprow_kernels::spmm::{ItemKind, Shape, SpmmKernel};

/// An element type that SpMM has kernels for.
pub trait SpmmElement: Scalar + Real + Default {}

impl SpmmElement for f32 {}
impl SpmmElement for f64 {}

/// How a product is to be planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpmmOptions {
    /// The kernel; the plan chooses if it is not said.
    pub kernel: Option<SpmmKernel>,
    /// Rows and nonzeros of a task, for the kernels that work on [tasks](warprow_kernels::spmm::tasks), and the most nonzeros of
    /// a [slice](warprow_kernels::spmm::slices); the plan chooses if it is not said.
    pub task_size: Option<u32>,
    /// The order in which the plan keeps the rows of A; the given one if it is not said, but by their first column for
    /// [`SpmmKernel::Reordered`].
    pub order: Option<RowOrder>,
}

/// A matrix A on a device, and the kernel to multiply it with: `Y = A X` for any dense X.
///
/// `Display` says what the plan is and why.
#[derive(Debug)]
pub struct Spmm<T: SpmmElement> {
    device: Device,
    rows: u32,
    cols: u32,
    row_ptr: DeviceBuffer<u32>,
    col_idx: DeviceBuffer<u32>,
    values: DeviceBuffer<T>,
    items: PlannedItems<T>,
    kernel: SpmmKernel,
    asked_for: bool,
    rows_in_order: OrderedRows,
    times: PlanTimes,
}

impl<T: SpmmElement> Spmm<T> {
    /// Uploads A and chooses a kernel. What else the plan makes, it makes on the device: A in CSR from a matrix in column order
    /// (CSC), the order of its rows, the kernel's items.
    ///
    /// # Errors
    ///
    /// 2^32 rows or columns or more; too little device memory; the driver's.
    pub fn plan(
        device: &Device,
        a: CsMatViewI<'_, T, u32, u32>,
        options: SpmmOptions,
    ) -> Result<Self, Error> {
        let mut times = PlanTimes::default();
        let started = Instant::now();
        let stored = DeviceCsr::upload_outer(device, a)?;
        times.upload = started.elapsed();
        let a = if a.is_csc() {
            stored.transpose()?
        } else {
            stored
        };
        Self::plan_stored(a, options, times, started)
    }

    /// As [`plan`](Self::plan), of a matrix that is on its device already.
    ///
    /// # Errors
    ///
    /// Too little device memory; the driver's.
    pub fn plan_on_device(a: DeviceCsr<T>, options: SpmmOptions) -> Result<Self, Error> {
        Self::plan_stored(a, options, PlanTimes::default(), Instant::now())
    }

    fn plan_stored(
        a: DeviceCsr<T>,
        options: SpmmOptions,
        mut times: PlanTimes,
        started: Instant,
    ) -> Result<Self, Error> {
        let device = a.device().clone();
        let kernel = options.kernel.unwrap_or_else(default_kernel);
        let order = options.order.unwrap_or_else(|| default_order(kernel));
        let (mut a, rows_in_order) = OrderedRows::put(order, a)?;
        let items = PlannedItems::make(
            kernel.items(),
            &mut a,
            rows_in_order.original(),
            options.task_size,
        )?;
        device.synchronize()?;
        times.preprocessing = started.elapsed().saturating_sub(times.upload);
        Ok(Self {
            rows: a.rows,
            cols: a.cols,
            row_ptr: a.row_ptr,
            col_idx: a.col_idx,
            values: a.values,
            items,
            kernel,
            times,
            asked_for: options.kernel.is_some(),
            rows_in_order,
            device,
        })
    }

    /// Rows of A and Y.
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Columns of A, rows of X.
    pub fn cols(&self) -> usize {
        self.cols as usize
    }

    /// Nonzeros of A, stored zeros among them.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// The kernel that the plan runs.
    pub fn kernel(&self) -> SpmmKernel {
        self.kernel
    }

    /// The order in which the plan keeps the rows of A.
    pub fn order(&self) -> RowOrder {
        self.rows_in_order.order()
    }

    /// A's rows in the plan's order, by their numbers in the caller's; `None` if it is that.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn row_permutation(&self) -> Result<Option<Vec<u32>>, Error> {
        let original = self.rows_in_order.original();
        original.map(DeviceBuffer::download).transpose()
    }

    /// What the plan took.
    pub fn times(&self) -> PlanTimes {
        self.times
    }

    /// The device that it runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Grid and block of a run with that many columns of X; `None` if the product is empty and nothing is launched.
    ///
    /// # Errors
    ///
    /// 2^32 features or more.
    pub fn launch(&self, features: usize) -> Result<Option<LaunchConfig>, Error> {
        let features = extent("the number of features", features)?;
        Ok(self
            .shape(features)
            .map(|shape| self.kernel.launch::<T>(shape)))
    }

    /// What the kernel's launch depends on; `None` if nothing is launched, as there is no element of Y or no item.
    fn shape(&self, features: u32) -> Option<Shape> {
        let shape = Shape {
            rows: self.rows,
            items: self.items.count(),
            cols: self.cols,
            features,
            cache_bytes: self.device.properties().l2_bytes.unwrap_or(0),
        };
        (elements(self.rows, features) > 0 && shape.items > 0).then_some(shape)
    }

    /// Floating-point operations of a run: a multiplication and an addition for each nonzero and feature.
    pub fn flops(&self, features: usize) -> u128 {
        2 * self.nnz() as u128 * features as u128
    }

    /// Bytes that a run has to move, wherever from: each nonzero's column, value and row of X, the row pointers, and Y.
    pub fn bytes(&self, features: usize) -> u128 {
        let element = size_of::<T>() as u128;
        let (rows, nnz, features) = (self.rows as u128, self.nnz() as u128, features as u128);
        nnz * (4 + element + features * element) + (rows + 1) * 4 + rows * features * element
    }

    /// `y = A x`, both row-major with `features` columns: `x` of `cols * features` elements, `y` of `rows * features`. It
    /// allocates nothing, and on a GPU it returns before the product is there; `y.download()` waits for it.
    ///
    /// # Errors
    ///
    /// A length that does not fit; a buffer of another device; a row of X of 4 GiB or more; a launch that fails.
    pub fn run(
        &self,
        x: &DeviceBuffer<T>,
        features: usize,
        y: &mut DeviceBuffer<T>,
    ) -> Result<(), Error> {
        let columns = extent("the number of features", features)?;
        let row_bytes = u64::from(columns) * size_of::<T>() as u64;
        if row_bytes > u32::MAX.into() {
            return Err(Error::TooLarge {
                what: "the size of a row of x in bytes",
                found: row_bytes.into(),
                most: u32::MAX.into(),
            });
        }
        self.check("x", x, self.cols, columns)?;
        self.check("y", y, self.rows, columns)?;
        if self.items.adds_to_y() {
            y.fill_zero()?;
        }
        let Some(shape) = self.shape(columns) else {
            return Ok(());
        };
        let a = Csr {
            rows: self.rows,
            cols: self.cols,
            row_ptr: self.row_ptr.read_only(),
            col_idx: self.col_idx.read_only(),
            values: self.values.read_only(),
        };
        let x = Dense {
            rows: self.cols,
            cols: columns,
            data: x.read_only(),
        };
        let y = DenseMut {
            rows: self.rows,
            cols: columns,
            data: y.mutable(),
        };
        let config = self.kernel.launch::<T>(shape);
        let handle = self.kernel.handle::<T>(shape);
        let original_row = self.rows_in_order.original();
        self.items
            .run(&self.device, a.row_ptr, original_row, y, |items| {
                // SAFETY: the buffers are this device's and have the matrices' sizes; the columns of A are below `cols`, as
                // sprs guarantees; y is borrowed mutably, so it is apart from the others; the items are the kernel's.
                unsafe { self.device.launch(&handle, config, (a, x, y, items)) }
            })
    }

    /// The product with a dense matrix of the host: uploads X, runs, and downloads Y. X may have any memory layout.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), an X that has not as many rows as A has columns, and too little memory.
    pub fn multiply(&self, x: ArrayView2<'_, T>) -> Result<Array2<T>, Error> {
        let (rows, features) = x.dim();
        if rows != self.cols() {
            return Err(Error::Rows {
                what: "x",
                rows: self.cols(),
                found: x.dim(),
            });
        }
        let len = elements(self.rows, extent("the number of features", features)?);
        let len = usize::try_from(len).map_err(|_| Error::TooLarge {
            what: "the number of elements of y",
            found: len.into(),
            most: usize::MAX as u64,
        })?;
        let row_major = x.as_standard_layout();
        let x = match row_major.as_slice() {
            Some(elements) => self.device.upload(elements)?,
            None => unreachable!("the standard layout is contiguous"),
        };
        let mut y = self.device.uninitialized(len)?;
        self.run(&x, features, &mut y)?;
        let y = Array2::from_shape_vec((self.rows(), features), y.download()?);
        Ok(y.expect("y has rows * features elements"))
    }

    fn check(
        &self,
        what: &'static str,
        buffer: &DeviceBuffer<T>,
        rows: u32,
        columns: u32,
    ) -> Result<(), Error> {
        if *buffer.device() != self.device {
            return Err(Error::OtherDevice {
                what,
                wanted: self.device.to_string(),
                found: buffer.device().to_string(),
            });
        }
        let (wanted, found) = (elements(rows, columns), buffer.len() as u64);
        if found != wanted {
            return Err(Error::Length {
                what,
                wanted,
                found,
            });
        }
        Ok(())
    }
}

impl<T: SpmmElement> fmt::Display for Spmm<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SpMM in {} of a {} x {} matrix with {} nonzeros on {}: {} ({}), {}, over {}",
            T::NAME,
            self.rows,
            self.cols,
            self.nnz(),
            self.device,
            self.kernel.name(),
            self.kernel.summary(),
            if self.asked_for {
                "as asked for"
            } else {
                "the default"
            },
            self.items
        )?;
        self.rows_in_order.fmt(f)
    }
}

fn default_order(kernel: SpmmKernel) -> RowOrder {
    if kernel == SpmmKernel::Reordered {
        RowOrder::FirstColumn
    } else {
        RowOrder::Given
    }
}

fn default_kernel() -> SpmmKernel {
    *SpmmKernel::ALL
        .last()
        .expect("the table of kernels is not empty")
}

/// Kernels count rows and columns with 32 bits.
fn extent(what: &'static str, found: usize) -> Result<u32, Error> {
    u32::try_from(found).map_err(|_| Error::TooLarge {
        what,
        found: found as u128,
        most: u32::MAX.into(),
    })
}

/// Two 32-bit extents have a 64-bit product.
fn elements(rows: u32, columns: u32) -> u64 {
    u64::from(rows) * u64::from(columns)
}
