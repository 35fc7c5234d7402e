//! SpMM, sparse times dense: `Y = A X`, planned once and run many times.
//!
//! X and Y are of f32, f64, f16 or bf16; 16-bit elements are multiplied and summed in f32. A plan may be for `A^T X`, and for
//! another [`Reduction`] than the sum; a run may be `Y = alpha A X + beta Y`.
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

mod column_blocks;
mod columns;
mod items;
mod layer;
mod options;
mod order;
mod planner;
mod reuse;
mod slices;
mod tasks;
mod times;

use crate::csr::{DeviceCsr, DevicePattern, extent};
use crate::device::{Device, DeviceBuffer};
use crate::error::Error;
use cuda_std::float::Real;
use cuda_std::launch::LaunchConfig;
use cuda_std::memory::Global;
use items::{Launch, PlannedItems, Product};
use layer::Layer;
pub(crate) use layer::LayerEnd;
use ndarray::{Array2, ArrayView2};
use options::choose_kernel;
pub use options::{SpmmElement, SpmmOptions};
use order::OrderedRows;
pub use order::RowOrder;
use planner::{Choices, Planner};
use sprs::CsMatViewI;
use std::borrow::Cow;
use std::fmt;
use std::time::Instant;
pub use times::PlanTimes;
use warprow_kernels::matrix::{Csr, Dense, DenseMut};
pub use warprow_kernels::spmm::{Capabilities, ItemKind, Operand, Reduction, Shape, SpmmKernel};
use warprow_kernels::spmm::{Epilogue, Handle, epilogue, vector};

/// A matrix A on a device, and the kernel to multiply it with: `Y = A X` for any dense X of elements of type `E`.
///
/// `Display` says what the plan is and why.
#[derive(Debug)]
pub struct Spmm<E: SpmmElement> {
    device: Device,
    /// Its values negated for a minimum, which is then a maximum; its nonzeros and row pointers in the order that the items
    /// want.
    a: DeviceCsr<E::Sum>,
    /// The reciprocals of the rows' lengths, for a mean.
    diagonal: Option<DeviceBuffer<E::Sum>>,
    items: PlannedItems<E>,
    kernel: SpmmKernel,
    options: SpmmOptions,
    choices: Choices,
    rows_in_order: OrderedRows,
    times: PlanTimes,
}

impl<E: SpmmElement> Spmm<E> {
    /// Uploads A and chooses how to multiply it. What the plan makes, it makes on the device: A in CSR from a matrix in column
    /// order (CSC) or for a transposed product, the order of its rows, blocks of columns, the kernel's items. 16-bit values are
    /// widened to f32, exactly, in a copy on the host.
    ///
    /// # Errors
    ///
    /// 2^32 rows or columns or more; a kernel asked for that cannot do what the options say with elements of this type; too
    /// little device memory; the driver's.
    pub fn plan(
        device: &Device,
        a: CsMatViewI<'_, E, u32, u32>,
        options: SpmmOptions,
    ) -> Result<Self, Error> {
        Self::plan_of(device, a, options, E::widen)
    }

    /// As [`plan`](Self::plan), for an A whose values are of the type of sums: f32 with an X of f16 or bf16.
    ///
    /// # Errors
    ///
    /// Those of [`plan`](Self::plan).
    pub fn plan_wide(
        device: &Device,
        a: CsMatViewI<'_, E::Sum, u32, u32>,
        options: SpmmOptions,
    ) -> Result<Self, Error> {
        Self::plan_of(device, a, options, |values| values.into())
    }

    fn plan_of<V: Clone>(
        device: &Device,
        a: CsMatViewI<'_, V, u32, u32>,
        options: SpmmOptions,
        widen: fn(&[V]) -> Cow<'_, [E::Sum]>,
    ) -> Result<Self, Error> {
        let kernel = choose_kernel::<E>(options)?;
        let mut times = PlanTimes::default();
        let started = Instant::now();
        let mut values = widen(a.data());
        if options.reduction == Reduction::Min {
            for value in values.to_mut() {
                *value = -*value;
            }
        }
        let stored = DeviceCsr::upload_outer(device, &a, &values)?;
        device.synchronize()?;
        times.upload = started.elapsed();
        // What is stored by columns is, by rows, the transpose.
        let a = if a.is_csc() == options.transpose {
            stored
        } else {
            stored.transpose()?
        };
        Self::plan_stored(a, kernel, options, times, started)
    }

    /// As [`plan`](Self::plan), of a matrix that is on its device already, for sums and not of its transpose, whatever the options
    /// say.
    pub(crate) fn plan_on_device(
        a: DeviceCsr<E::Sum>,
        options: SpmmOptions,
    ) -> Result<Self, Error> {
        let options = SpmmOptions {
            reduction: Reduction::Sum,
            transpose: false,
            ..options
        };
        let kernel = choose_kernel::<E>(options)?;
        Self::plan_stored(a, kernel, options, PlanTimes::default(), Instant::now())
    }

    fn plan_stored(
        a: DeviceCsr<E::Sum>,
        kernel: SpmmKernel,
        options: SpmmOptions,
        mut times: PlanTimes,
        started: Instant,
    ) -> Result<Self, Error> {
        let device = a.device().clone();
        let mut planner = Planner::of(a.pattern(), kernel)?;
        let order = options.order.or_else(|| order::default(kernel));
        let (a, rows_in_order) = match (order, &mut planner) {
            (None, Some(planner)) => OrderedRows::choose(planner, a)?,
            (order, planner) => OrderedRows::put(order.unwrap_or_default(), planner.as_mut(), a)?,
        };
        let diagonal = (options.reduction == Reduction::Mean)
            .then(|| reciprocal_lengths(a.pattern()))
            .transpose()?;
        let choices = Choices::make::<E>(a.pattern(), planner, kernel, options);
        let mut a = column_blocks::cut(a, choices.blocks)?;
        let original_row = rows_in_order.original();
        let items = PlannedItems::make(kernel.items(), &mut a, original_row, options.task_size)?;
        device.synchronize()?;
        times.ordering = rows_in_order.time();
        times.preprocessing = started.elapsed().saturating_sub(times.upload);
        Ok(Self {
            a,
            diagonal,
            items,
            kernel,
            options,
            choices,
            rows_in_order,
            times,
            device,
        })
    }

    /// Rows of A, or of its transpose if that is planned for, and of Y.
    pub fn rows(&self) -> usize {
        self.a.pattern().rows()
    }

    /// Columns of A, or of its transpose, and rows of X.
    pub fn cols(&self) -> usize {
        self.a.pattern().cols()
    }

    /// Nonzeros of A, stored zeros among them.
    pub fn nnz(&self) -> usize {
        self.a.pattern().nnz()
    }

    /// The kernel that the plan runs.
    pub fn kernel(&self) -> SpmmKernel {
        self.kernel
    }

    /// What becomes of the products of a row's nonzeros.
    pub fn reduction(&self) -> Reduction {
        self.options.reduction
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

    /// The blocks of columns that the plan cuts A into, 1 if it does not.
    pub fn column_blocks(&self) -> u32 {
        self.choices.blocks
    }

    /// The lanes of a sub-warp that takes a row of X of so many features; `None` for a kernel without that choice.
    pub fn lanes(&self, features: u32) -> Option<u32> {
        self.choices.lanes::<E>(features, self.options.reduction)
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
            .map(|shape| self.kernel.launch::<E>(shape, self.options.reduction)))
    }

    /// What the kernel's launch depends on; `None` if nothing is launched, as there is no element of Y or no item.
    fn shape(&self, features: u32) -> Option<Shape> {
        let shape = Shape {
            rows: self.a.pattern().rows,
            items: self.items.count(),
            cols: self.a.pattern().cols,
            features,
            lanes: self.lanes(features).unwrap_or(1),
        };
        (elements(self.a.pattern().rows, features) > 0 && shape.items > 0).then_some(shape)
    }

    /// Floating-point operations of a run: a multiplication and an addition for each nonzero and feature.
    pub fn flops(&self, features: usize) -> u128 {
        2 * self.nnz() as u128 * features as u128
    }

    /// Bytes that a run has to move, wherever from: each nonzero's column, value and row of X, the row pointers, and Y.
    pub fn bytes(&self, features: usize) -> u128 {
        let (element, value) = (size_of::<E>() as u128, size_of::<E::Sum>() as u128);
        let (rows, nnz, features) = (
            self.a.pattern().rows as u128,
            self.nnz() as u128,
            features as u128,
        );
        nnz * (4 + value + features * element) + (rows + 1) * 4 + rows * features * element
    }

    /// `y = A x`, both row-major with `features` columns: `x` of `cols * features` elements, `y` of `rows * features`. It
    /// allocates nothing, and on a GPU it returns before the product is there; `y.download()` waits for it.
    ///
    /// # Errors
    ///
    /// A length that does not fit; a buffer of another device; a row of X of 4 GiB or more; a launch that fails.
    pub fn run(
        &self,
        x: &DeviceBuffer<E>,
        features: usize,
        y: &mut DeviceBuffer<E>,
    ) -> Result<(), Error> {
        self.run_scaled(<E::Sum as Real>::ONE, x, features, E::Sum::ZERO, y)
    }

    /// `y = alpha A x + beta y`, or with the plan's reduction in the place of the sum in `A x`; else as [`run`](Self::run).
    ///
    /// As in BLAS, y is not read if beta is 0, and infinities and NaNs in A and x do not count if alpha is 0.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run); a kernel asked for by its name that has no alpha and beta.
    pub fn run_scaled(
        &self,
        alpha: E::Sum,
        x: &DeviceBuffer<E>,
        features: usize,
        beta: E::Sum,
        y: &mut DeviceBuffer<E>,
    ) -> Result<(), Error> {
        self.run_product(alpha, x, features, beta, y, None)
    }

    /// As [`run_scaled`](Self::run_scaled), or with the end of a layer in the place of alpha and beta.
    fn run_product(
        &self,
        alpha: E::Sum,
        x: &DeviceBuffer<E>,
        features: usize,
        beta: E::Sum,
        y: &mut DeviceBuffer<E>,
        layer: Option<&Layer<E>>,
    ) -> Result<(), Error> {
        let columns = extent("the number of features", features)?;
        let row_bytes = u64::from(columns) * size_of::<E>() as u64;
        if row_bytes > u32::MAX.into() {
            return Err(Error::TooLarge {
                what: "the size of a row of x in bytes",
                found: row_bytes.into(),
                most: u32::MAX.into(),
            });
        }
        self.check("x", x, self.a.pattern().cols, columns)?;
        self.check("y", y, self.a.pattern().rows, columns)?;
        let capabilities = self.kernel.capabilities();
        let scaled = alpha != <E::Sum as Real>::ONE || beta != E::Sum::ZERO;
        if scaled && !capabilities.general {
            return Err(Error::Kernel {
                kernel: self.kernel.name(),
                reason: format!(
                    "wanted are alpha {alpha:?} and beta {beta:?}, it can do {capabilities}"
                ),
            });
        }
        if self.kernel.items().adds_to_y() {
            y.fill_zero()?;
        }
        let Some(shape) = self.shape(columns) else {
            return Ok(());
        };
        let reduction = self.options.reduction;
        let original_row = self.rows_in_order.original();
        let product = Product {
            row_ptr: self.a.pattern().row_ptr.read_only(),
            rows: self.a.pattern().rows,
            original_row: pointer(original_row),
            y: DenseMut {
                rows: self.a.pattern().rows,
                cols: columns,
                data: y.mutable(),
            },
            reduction,
            epilogue: Epilogue {
                alpha: if reduction == Reduction::Min {
                    -alpha
                } else {
                    alpha
                },
                beta,
                diagonal: pointer(self.diagonal.as_ref()),
            },
            group: vector::tasks_of_block::<E>(shape, reduction),
            combine: layer.map(|layer| layer.combine(shape)),
        };
        let x = Dense {
            rows: self.a.pattern().cols,
            cols: columns,
            data: x.read_only(),
        };
        let device = &self.device;
        self.items.run(device, &product, |launch| {
            let Launch {
                row_ptr,
                items,
                epilogue,
            } = launch;
            let a = Csr {
                rows: self.a.pattern().rows,
                cols: self.a.pattern().cols,
                row_ptr,
                col_idx: self.a.pattern().col_idx.read_only(),
                values: self.a.values().read_only(),
            };
            let shape = Shape {
                items: items.count,
                ..shape
            };
            let config = self.kernel.launch::<E>(shape, reduction);
            if let Some(layer) = layer {
                let kernel = (layer.kernel)(shape).expect("the plan can end so");
                let arguments = (a, x, product.y, items, layer.bias);
                // SAFETY: as below; the bias has an element for each column of y.
                return unsafe { device.launch(&kernel, config, arguments) };
            }
            let plain = epilogue.alpha == <E::Sum as Real>::ONE
                && epilogue.beta == E::Sum::ZERO
                && self.diagonal.is_none()
                && original_row.is_none();
            let handle = self.kernel.handle::<E>(shape, reduction, plain);
            // SAFETY: the buffers are this device's and have the matrices' sizes; the columns of A are below `cols`, as sprs
            // guarantees; y is borrowed mutably, so it is apart from the others; the items are the kernel's.
            unsafe {
                match &handle {
                    Handle::General(kernel) => {
                        device.launch(kernel, config, (a, x, product.y, items, epilogue))
                    }
                    Handle::Plain(kernel) => {
                        let (x, y) = (x.of_sums(), product.y.of_sums());
                        device.launch(kernel, config, (a, x, y, items))
                    }
                }
            }
        })
    }

    /// The product with a dense matrix of the host: uploads X, runs, and downloads Y. X may have any memory layout.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run), an X that has not as many rows as A has columns, and too little memory.
    pub fn multiply(&self, x: ArrayView2<'_, E>) -> Result<Array2<E>, Error> {
        let (rows, features) = x.dim();
        if rows != self.cols() {
            return Err(Error::Rows {
                what: "x",
                rows: self.cols(),
                found: x.dim(),
            });
        }
        let len = elements(
            self.a.pattern().rows,
            extent("the number of features", features)?,
        );
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
        buffer: &DeviceBuffer<E>,
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

impl<E: SpmmElement> fmt::Display for Spmm<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SpMM in {} of {}a {} x {} matrix with {} nonzeros on {}: {} ({}), {}, ",
            E::NAME,
            if self.options.transpose {
                "the transpose, "
            } else {
                ""
            },
            self.a.pattern().rows,
            self.a.pattern().cols,
            self.nnz(),
            self.device,
            self.kernel.name(),
            self.kernel.summary(),
            if self.options.kernel.is_some() {
                "as asked for"
            } else {
                "the default"
            },
        )?;
        if self.options.reduction != Reduction::Sum {
            write!(f, "the {} of each row, ", self.options.reduction.name())?;
        }
        write!(
            f,
            "over {}{}{}",
            self.items, self.rows_in_order, self.choices
        )
    }
}

/// The reciprocal of each row's number of nonzeros, 1 for none.
fn reciprocal_lengths<S: Real>(a: &DevicePattern) -> Result<DeviceBuffer<S>, Error> {
    let mut diagonal = a.device().uninitialized(a.rows as usize)?;
    if a.rows > 0 {
        let arguments = (a.rows, a.row_ptr.read_only(), diagonal.mutable());
        let config = epilogue::launch(a.rows);
        // SAFETY: the matrix's own row pointers, and room for a number for each row.
        unsafe {
            a.device()
                .launch(&epilogue::reciprocal_lengths::<S>(), config, arguments)?
        };
    }
    Ok(diagonal)
}

/// A buffer's address, null for none.
fn pointer<T: cuda_std::element::Element>(buffer: Option<&DeviceBuffer<T>>) -> Global<T> {
    buffer.map_or(Global::from_address(0), DeviceBuffer::read_only)
}

/// Two 32-bit extents have a 64-bit product.
fn elements(rows: u32, columns: u32) -> u64 {
    u64::from(rows) * u64::from(columns)
}
