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

mod choices;
mod column_blocks;
mod columns;
mod items;
mod joining;
mod options;
mod order;
mod planner;
mod reuse;
mod row_keys;
mod run;
mod slices;
mod task_size;
mod tasks;
mod teams;
mod times;

use crate::csr::{DeviceCsr, DevicePattern};
use crate::device::{Device, DeviceBuffer};
use crate::error::Error;
use choices::Choices;
use cuda_std::float::Real;
use cuda_std::memory::Global;
use items::{ItemSizes, PlannedItems};
pub use options::{SpmmElement, SpmmOptions};
use options::{kernel_asked_for, kernel_for};
use order::OrderedRows;
pub use order::RowOrder;
use planner::{Planner, RowOfX};
use sprs::CsMatViewI;
use std::borrow::Cow;
use std::fmt;
use std::time::Instant;
pub use times::PlanTimes;
pub use warprow_kernels::matrix::Operand;
use warprow_kernels::spmm::product::epilogue;
pub use warprow_kernels::spmm::{Capabilities, Ending, ItemKind, Reduction, Shape, SpmmKernel};

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
        Self::plan_of(device, a, options, E::to_sums)
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
        let kernel = kernel_asked_for::<E>(options)?;
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
        let kernel = kernel_asked_for::<E>(options)?;
        Self::plan_stored(a, kernel, options, PlanTimes::default(), Instant::now())
    }

    fn plan_stored(
        a: DeviceCsr<E::Sum>,
        kernel: Option<SpmmKernel>,
        options: SpmmOptions,
        mut times: PlanTimes,
        started: Instant,
    ) -> Result<Self, Error> {
        let device = a.device().clone();
        let kernel = kernel.unwrap_or_else(|| kernel_for(a.pattern(), options.reduction));
        let row = options.features.map(|features| {
            // Rows in another order have fewer numbers of lanes for some widths, which makes no difference here.
            RowOfX::of::<E>(features, options.reduction, Ending::Plain)
        });
        let mut planner = Planner::of(a.pattern(), kernel, row)?;
        let order = options.order.or_else(|| order::default(kernel));
        let (a, rows_in_order) = match (order, &mut planner) {
            (None, Some(planner)) => OrderedRows::choose(planner, a)?,
            (order, planner) => OrderedRows::put(order.unwrap_or_default(), planner.as_mut(), a)?,
        };
        let diagonal = (options.reduction == Reduction::Mean)
            .then(|| reciprocal_lengths(a.pattern()))
            .transpose()?;
        let keep_order = kernel.items() == ItemKind::Teams
            && rows_in_order.suits_teams(&planner, a.pattern())?;
        let choices = Choices::make::<E>(a.pattern(), planner, kernel, options);
        let mut a = column_blocks::cut(a, choices.blocks)?;
        let original_row = rows_in_order.original();
        let ending = rows_in_order.ending(diagonal.is_some());
        let sizes = ItemSizes {
            wanted: options.task_size,
            most_of_task: choices.task_size(),
            at_a_time: choices.at_a_time::<E>(a.pattern(), options, ending)?,
        };
        let items = PlannedItems::make(kernel.items(), &mut a, original_row, sizes, keep_order)?;
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

    /// The lanes of a sub-warp that takes a row of X of so many features in a [`run`](Self::run); `None` for a kernel without
    /// that choice.
    pub fn lanes(&self, features: u32) -> Option<u32> {
        self.lanes_for(features, self.ending_of_run())
    }

    /// The PTX entry points of the instances that multiply in a [`run`](Self::run) with so many features: that for A or its
    /// first block of columns, and that for the further blocks if there are any. None if the product is empty.
    pub fn entry_points(&self, features: u32) -> Vec<&'static str> {
        let ending = self.ending_of_run();
        let Some(shape) = self.shape(features, ending) else {
            return Vec::new();
        };
        let further = (self.choices.blocks > 1).then(|| self.ending_of_further_block());
        let name = |ending| {
            let handle = (self.kernel).handle::<E>(shape, self.options.reduction, ending);
            handle.name()
        };
        [Some(ending), further]
            .into_iter()
            .flatten()
            .map(name)
            .collect()
    }

    /// What the plan took.
    pub fn times(&self) -> PlanTimes {
        self.times
    }

    /// The device that it runs on.
    pub fn device(&self) -> &Device {
        &self.device
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
            match (self.options.kernel, self.kernel) {
                (Some(_), _) => "as asked for",
                (None, SpmmKernel::InStep) => "as rows and columns have hundreds of nonzeros",
                (None, _) => "the default",
            },
        )?;
        if self.options.reduction != Reduction::Sum {
            write!(f, "the {} of each row, ", self.options.reduction.name())?;
        }
        write!(
            f,
            "over {}{}{}",
            self.items, self.rows_in_order, self.choices
        )?;
        match self.options.features {
            Some(features) => write!(f, "; planned for {features} features"),
            None => Ok(()),
        }
    }
}

/// Bytes of a row of X of so many features.
fn row_bytes<E>(features: u32) -> u64 {
    u64::from(features) * size_of::<E>() as u64
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
