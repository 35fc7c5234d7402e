//! SpMM, sparse times dense: `Y = A X`, planned once and run many times.
//!
//! X and Y are of f32, f64, f16 or bf16; 16-bit elements are multiplied and summed in f32. A plan may be for `A^T X`,
//! and for another [`Reduction`] than the sum; a run may be `Y = alpha A X + beta Y`.

mod building;
mod error;
mod items;
mod ladder;
mod measurements;
mod measuring;
mod options;
mod plan;
mod planning;
mod product;
mod run;
mod spmv;
mod values;

use crate::csr::DeviceCsr;
use crate::device::{Device, DeviceBuffer};
pub use error::SpmmError;
use items::PlannedItems;
use measurements::Measurements;
pub use measurements::SpmmMeasurement;
pub use options::{RowOrder, SpmmElement, SpmmOptions, SpmmTuning};
use plan::Choices;
use plan::order::OrderedRows;
#[cfg(feature = "multi")]
pub(crate) use plan::order::rows_in as rows_in_order;
pub use spmv::Spmv;
use std::fmt;
use std::time::Duration;
use values::ValueOrder;
pub use warprow_kernels::matrix::Operand;
pub use warprow_kernels::spmm::{Capabilities, Reduction, SpmmKernel};

/// Time spent on planning, by the host's clock. The first plan on a device includes the driver's compilation of
/// kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanTimes {
    /// Copying row pointers, columns and values to the device.
    pub upload: Duration,
    /// Everything else, until the device has finished: what a product pays whose A is already on the device.
    pub preprocessing: Duration,
    /// The part of `preprocessing` for a row order, made or found not to pay, by the device's clock; `None` if there
    /// was no search, and on the emulator.
    pub ordering: Option<Duration>,
    /// The part of `preprocessing` for counting the statistics that the cost model predicts times from; `None` if the
    /// plan needs none, or if the expected [`runs`](SpmmOptions::runs) do not pay for them.
    pub statistics: Option<Duration>,
    /// The part of `preprocessing` for making and timing candidates; `None` without
    /// [`measure`](SpmmOptions::measure).
    pub measuring: Option<Duration>,
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
    /// For runs with few features, if their number was not planned for.
    few_features: Option<FewFeatures<E>>,
    options: SpmmOptions,
    choices: Choices,
    /// Which of the caller's nonzeros each one is, if the plan takes new values.
    value_order: Option<ValueOrder<E>>,
    rows_in_order: OrderedRows,
    measurements: Measurements,
    times: PlanTimes,
}

/// What the kernels for few features work on.
#[derive(Debug)]
struct FewFeatures<E: SpmmElement> {
    /// For [`SpmmKernel::RowGroups`].
    rows: PlannedItems<E>,
    /// For [`SpmmKernel::RowBins`].
    bins: PlannedItems<E>,
}

impl<E: SpmmElement> Spmm<E> {
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

    /// The lanes of a sub-warp, or of a row for [`SpmmKernel::RowGroups`], in a [`run`](Self::run) with so many
    /// features; `None` for a kernel without that choice, and for [`SpmmKernel::InStep`] where nobody has chosen any.
    pub fn lanes(&self, features: u32) -> Option<u32> {
        self.lanes_for(features, self.epilogue_of_run())
    }

    /// The PTX entry points that multiply in a [`run`](Self::run) with so many features: for A or its first block of
    /// columns, and for further blocks if there are any. Empty if the product is.
    pub fn entry_points(&self, features: u32) -> Vec<&'static str> {
        let epilogue = self.epilogue_of_run();
        let Some(shape) = self.shape(features, 0, epilogue) else {
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

    /// The time that the cost model predicts for a [`run`](Self::run) with so many features, and what bounds it in
    /// words; `None` for a kernel that the model does not have, on an emulator of no certain GPU, and if a rate of
    /// the device is so small, 0 say, that no [`Duration`] has the time.
    pub fn prediction(&self, features: u32) -> Option<(Duration, &'static str)> {
        let (kernel, epilogue) = (self.kernel_for(features), self.epilogue_of_run());
        let reduction = self.options.reduction;
        let found = self
            .choices
            .predict::<E>(kernel, features, reduction, epilogue)?;
        let time = Duration::try_from_secs_f64(found.seconds).ok()?;
        Some((time, found.bound.name()))
    }

    /// The candidates that the plan has timed, the fastest first: the plan is that one. Empty without
    /// [`measure`](SpmmOptions::measure), and if the plan keeps to its prediction.
    ///
    /// A plan with the [`tuning`](SpmmOptions::tuning) of a candidate and otherwise the same options is that candidate,
    /// and times nothing. With other options, the same tuning can have other tasks. For example, a plan that need not
    /// measure does not count the matrix's statistics for few [`runs`](SpmmOptions::runs), and sizes of tasks depend on
    /// them.
    pub fn measurements(&self) -> &[SpmmMeasurement] {
        self.measurements.all()
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
            match (self.options.tuning.kernel, self.choices.search()) {
                _ if !self.measurements.all().is_empty() => "as measured",
                (Some(_), _) => "as asked for",
                (None, Some(search)) if !search.has_counted() =>
                    "by the cost model without statistics",
                (None, Some(_)) => "by the cost model",
                (None, None) => "the default",
            },
        )?;
        if self.options.reduction != Reduction::Sum {
            write!(f, "the {} of each row, ", self.options.reduction.name())?;
        }
        write!(f, "over {}{}", self.items, self.rows_in_order)?;
        let features = self.options.features.filter(|&features| features > 0);
        if features.is_some_and(|features| self.shared_x_blocks(features) > 0) {
            write!(f, ", X in shared memory")?;
        }
        write!(f, "{}{}", self.choices, self.measurements)?;
        match self.options.features {
            Some(features) => write!(f, "; planned for {features} features"),
            None => Ok(()),
        }
    }
}
