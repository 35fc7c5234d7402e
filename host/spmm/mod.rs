//! SpMM, sparse times dense: `Y = A X`, planned once and run many times.
//!
//! X and Y are of f32, f64, f16 or bf16; 16-bit elements are multiplied and summed in f32. A plan may be for `A^T X`,
//! and for another [`Reduction`] than the sum; a run may be `Y = alpha A X + beta Y`.

mod error;
mod items;
mod ladder;
mod options;
mod plan;
mod product;
mod run;

use crate::csr::{DeviceCsr, DevicePattern};
use crate::device::{Device, DeviceBuffer};
use cuda_std::float::Real;
pub use error::SpmmError;
use items::PlannedItems;
pub use options::{RowOrder, SpmmElement, SpmmOptions};
use plan::cost_model::{CostModel, FeatureRow};
use plan::order::{self, OrderedRows};
use plan::{Choices, default_kernel, requested_kernel};
use product::task_sizes::ItemSizes;
use product::tasks::divide_into_column_blocks;
use sprs::CsMatViewI;
use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, Instant};
pub use warprow_kernels::matrix::Operand;
use warprow_kernels::spmm::product::{narrow, scaling};
pub use warprow_kernels::spmm::{
    Capabilities, EpilogueKind, ItemKind, LaunchShape, Reduction, SpmmKernel,
};

/// The number of features that tasks for few features are made for, if it is unknown.
const TYPICAL_FEW_FEATURES: u32 = 4;

/// Time spent on planning, by the host's clock. The first plan on a device includes the driver's compilation of
/// kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanTimes {
    /// Copying row pointers, columns and values to the device.
    pub upload: Duration,
    /// Everything else, until the device has finished: what a product pays whose A is already on the device.
    pub preprocessing: Duration,
    /// The part of `preprocessing` for a row order, made or found not to pay, by the device's clock; `None` if there
    /// was no search, and on the emulator.
    pub ordering: Option<Duration>,
}

/// A matrix A on a device, and the kernel to multiply it with: `Y = A X` for any dense X of elements of type `E`.
///
/// `Display` says what the plan is and why.
///
/// ```
/// use ndarray::array;
/// use sprs::CsMatI;
/// use warprow::device::Device;
/// use warprow::spmm::{Spmm, SpmmOptions};
///
/// # fn main() -> Result<(), warprow::Error> {
/// // [ . 2 ]         [ 1 2 3 ]
/// // [ 1 . ]    x    [ 4 5 6 ]
/// // [ . . ]
/// let a = CsMatI::<f32, u32, u32>::new((3, 2), vec![0, 1, 2, 2], vec![1, 0], vec![2.0, 1.0]);
/// let x = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
///
/// let device = Device::open()?;
/// let spmm = Spmm::plan(&device, a.view(), SpmmOptions::default())?;
/// assert_eq!(spmm.multiply(x.view())?, array![[8.0, 10.0, 12.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Spmm<E: SpmmElement> {
    device: Device,
    /// For a minimum its values are negated, and the kernel takes the maximum. Rows and nonzeros are in the plan's
    /// order.
    a: DeviceCsr<E::Sum>,
    /// The reciprocals of the rows' lengths, for a mean.
    diagonal: Option<DeviceBuffer<E::Sum>>,
    items: PlannedItems<E>,
    kernel: SpmmKernel,
    /// The items of [`SpmmKernel::Narrow`], for runs with few features if their number was not planned for.
    narrow: Option<PlannedItems<E>>,
    options: SpmmOptions,
    choices: Choices,
    rows_in_order: OrderedRows,
    times: PlanTimes,
}

impl<E: SpmmElement> Spmm<E> {
    /// Uploads A and chooses how to multiply it. The device does the rest: it transposes A if it is stored by columns
    /// (CSC), puts rows and columns into the plan's order, and makes the kernel's items. 16-bit values are converted
    /// to f32, exactly, on the host.
    ///
    /// # Errors
    ///
    /// 2^32 rows or columns or more; lists that are no matrix; a requested kernel that cannot do what the options say
    /// with elements of this type; too little device memory; the driver's.
    pub fn plan(
        device: &Device,
        a: CsMatViewI<'_, E, u32, u32>,
        options: SpmmOptions,
    ) -> Result<Self, SpmmError> {
        Self::upload_and_plan(device, a, options, E::to_sums)
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
    ) -> Result<Self, SpmmError> {
        Self::upload_and_plan(device, a, options, |values| values.into())
    }

    fn upload_and_plan<V: Clone>(
        device: &Device,
        a: CsMatViewI<'_, V, u32, u32>,
        options: SpmmOptions,
        to_sums: fn(&[V]) -> Cow<'_, [E::Sum]>,
    ) -> Result<Self, SpmmError> {
        let kernel = requested_kernel::<E>(options)?;
        let mut times = PlanTimes::default();
        let started = Instant::now();
        let mut values = to_sums(a.data());
        if options.reduction == Reduction::Min {
            for value in values.to_mut() {
                *value = -*value;
            }
        }
        let stored = DeviceCsr::upload_outer(device, &a, &values)?;
        device.synchronize_stream()?;
        times.upload = started.elapsed();
        // A matrix that is stored by columns is its transpose by rows.
        let a = if a.is_csc() == options.transpose {
            stored
        } else {
            stored.transpose()?
        };
        Self::plan_uploaded(a, kernel, options, times, started)
    }

    /// As [`plan`](Self::plan), for a matrix that is already on its device. The options' reduction and transpose are
    /// ignored.
    pub(crate) fn plan_on_device(
        a: DeviceCsr<E::Sum>,
        options: SpmmOptions,
    ) -> Result<Self, SpmmError> {
        let options = SpmmOptions {
            reduction: Reduction::Sum,
            transpose: false,
            ..options
        };
        let kernel = requested_kernel::<E>(options)?;
        Self::plan_uploaded(a, kernel, options, PlanTimes::default(), Instant::now())
    }

    fn plan_uploaded(
        a: DeviceCsr<E::Sum>,
        kernel: Option<SpmmKernel>,
        options: SpmmOptions,
        mut times: PlanTimes,
        started: Instant,
    ) -> Result<Self, SpmmError> {
        let device = a.device().clone();
        let kernel = kernel.unwrap_or_else(|| default_kernel(a.pattern(), options));
        let row = options.features.map(|features| {
            // The epilogue changes which lanes there are, and these do not count here.
            FeatureRow::new::<E>(features, options.reduction, EpilogueKind::Plain)
        });
        let mut model = CostModel::for_kernel(a.pattern(), kernel, row)?;
        let order = options.order.or_else(|| order::default(kernel));
        let (a, rows_in_order) = match (order, &mut model) {
            (None, Some(model)) => OrderedRows::choose(model, a)?,
            (order, model) => OrderedRows::reorder(order.unwrap_or_default(), model.as_mut(), a)?,
        };
        let diagonal = (options.reduction == Reduction::Mean)
            .then(|| reciprocal_lengths(a.pattern()))
            .transpose()?;
        let keep_order = kernel.items() == ItemKind::Teams
            && rows_in_order.keeps_for_teams(&model, a.pattern())?;
        let choices = Choices::new::<E>(a.pattern(), model, kernel, options);
        let mut a = divide_into_column_blocks(a, choices.column_blocks)?;
        let original_row = rows_in_order.original();
        let epilogue = rows_in_order.epilogue_kind(diagonal.is_some());
        let sizes = ItemSizes {
            requested: options.task_size,
            max_task_size: choices.max_task_size(),
            resident: choices.resident_tasks::<E>(a.pattern(), options, epilogue)?,
            chunk: narrow::nonzeros_of_chunk::<E>(
                options.features.unwrap_or(TYPICAL_FEW_FEATURES),
                options.reduction,
            ),
        };
        let narrow = choices
            .has_narrow_runs(options)
            .then(|| PlannedItems::new(ItemKind::WarpTasks, &mut a, original_row, sizes, false))
            .transpose()?;
        let items = PlannedItems::new(kernel.items(), &mut a, original_row, sizes, keep_order)?;
        device.synchronize_stream()?;
        times.ordering = rows_in_order.time();
        times.preprocessing = started.elapsed().saturating_sub(times.upload);
        Ok(Self {
            a,
            diagonal,
            items,
            kernel,
            narrow,
            options,
            choices,
            rows_in_order,
            times,
            device,
        })
    }

    /// Rows of Y, and of A or the transpose that is planned for.
    pub fn rows(&self) -> usize {
        self.a.pattern().rows()
    }

    /// Rows of X, and columns of A or the transpose that is planned for.
    pub fn cols(&self) -> usize {
        self.a.pattern().cols()
    }

    /// Nonzeros of A, stored zeros among them.
    pub fn nnz(&self) -> usize {
        self.a.pattern().nnz()
    }

    /// The kernel that the plan runs: with the number of features that it was planned for, or with many.
    pub fn kernel(&self) -> SpmmKernel {
        self.kernel
    }

    /// The kernel of a [`run`](Self::run) with so many features.
    pub fn kernel_for(&self, features: u32) -> SpmmKernel {
        self.multiplier(features).0
    }

    /// How the products of a row's nonzeros are combined.
    pub fn reduction(&self) -> Reduction {
        self.options.reduction
    }

    /// The order in which the plan keeps the rows of A.
    pub fn order(&self) -> RowOrder {
        self.rows_in_order.order()
    }

    /// The number in the caller's order of each row in the plan's order; `None` if the orders are the same.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn row_permutation(&self) -> Result<Option<Vec<u32>>, SpmmError> {
        let original = self.rows_in_order.original();
        Ok(original.map(DeviceBuffer::download).transpose()?)
    }

    /// The number of blocks of columns that A is divided into.
    pub fn column_blocks(&self) -> u32 {
        self.choices.column_blocks
    }

    /// The lanes of a sub-warp in a [`run`](Self::run) with so many features; `None` for a kernel without that choice.
    pub fn lanes(&self, features: u32) -> Option<u32> {
        self.lanes_for(features, self.epilogue_of_run())
    }

    /// The PTX entry points that multiply in a [`run`](Self::run) with so many features: for A or its first block of
    /// columns, and for further blocks if there are any. Empty if the product is.
    pub fn entry_points(&self, features: u32) -> Vec<&'static str> {
        let epilogue = self.epilogue_of_run();
        let Some(shape) = self.shape(features, epilogue) else {
            return Vec::new();
        };
        let further = (self.choices.column_blocks > 1).then(|| self.epilogue_of_further_block());
        let name = |epilogue| {
            let kernel = self.kernel_for(features);
            let handle = kernel.handle::<E>(shape, self.options.reduction, epilogue);
            handle.name()
        };
        [Some(epilogue), further]
            .into_iter()
            .flatten()
            .map(name)
            .collect()
    }

    /// Time spent on planning.
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

    /// Bytes that a run moves without any reuse: the column, value and row of X of each nonzero, the row pointers,
    /// and Y.
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
                (None, SpmmKernel::Narrow) => "as features are few",
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

/// The reciprocal of each row's number of nonzeros, 1 for none.
fn reciprocal_lengths<S: Real>(a: &DevicePattern) -> Result<DeviceBuffer<S>, SpmmError> {
    let mut diagonal = a.device().uninitialized(a.rows as usize)?;
    if a.rows > 0 {
        let arguments = (a.rows, a.row_ptr.read_only(), diagonal.mutable());
        let config = scaling::launch(a.rows);
        // SAFETY: the matrix has `rows + 1` row pointers, `diagonal` an element for each row.
        unsafe {
            a.device()
                .launch(&scaling::reciprocal_lengths::<S>(), config, arguments)?
        };
    }
    Ok(diagonal)
}
