//! What a product is planned for: the type of the elements, and the options.

use crate::scalar::Scalar;
use crate::setters::setters;
use half::{bf16, f16};
use std::borrow::Cow;
use warprow_kernels::matrix::Operand;
use warprow_kernels::spmm::{Reduction, SpmmKernel};

/// An element type of X and Y that SpMM has kernels for. The device keeps A in the type [`Sum`](Operand::Sum), which
/// is f32 for f16 and bf16; [`Spmm::plan_wide`](super::Spmm::plan_wide) takes an A of that type.
pub trait SpmmElement: Scalar + Operand<Sum: Scalar + Default> + Default {
    /// The same numbers in the type of sums.
    fn to_sums(numbers: &[Self]) -> Cow<'_, [Self::Sum]>;
}

macro_rules! own_sum {
    ($($element:ident)*) => {$(
        impl SpmmElement for $element {
            fn to_sums(numbers: &[Self]) -> Cow<'_, [Self]> {
                numbers.into()
            }
        }
    )*};
}
own_sum!(f32 f64);

macro_rules! summed_in_f32 {
    ($($element:ident)*) => {$(
        impl SpmmElement for $element {
            fn to_sums(numbers: &[Self]) -> Cow<'_, [f32]> {
                numbers.iter().map(|number| number.to_f32()).collect()
            }
        }
    )*};
}
summed_in_f32!(f16 bf16);

/// What a plan of SpMM computes.
///
/// ```
/// use warprow::{Reduction, SpmmKernel, SpmmOptions, SpmmTuning};
///
/// let options = SpmmOptions::new().features(32).reduction(Reduction::Mean);
/// let by_hand = options.tuning(SpmmTuning::new().kernel(SpmmKernel::Vector).task_size(128));
/// # assert_eq!((by_hand.features, by_hand.tuning.task_size), (Some(32), Some(128)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpmmOptions {
    /// How the products of a row's nonzeros with the rows of X are combined. Default: the sum.
    pub reduction: Reduction,
    /// Whether the product is with the transpose of the matrix that the plan is given: `Y = A^T X`.
    pub transpose: bool,
    /// Whether all runs of this plan must give the same bits. Default kernels always do. A request for a kernel that
    /// adds by atomics is then an error.
    pub deterministic: bool,
    /// Whether [`Spmm::set_values`](super::Spmm::set_values) may be called. The plan then copies the values. If it
    /// reorders nonzeros, it also stores the caller's position of each nonzero: 4 bytes of device memory for each.
    pub updatable: bool,
    /// The number of features (columns of X) to plan for. Default: unknown; the plan then assumes 64. Kernel, row order
    /// and task size depend on it. Runs may have any other number.
    pub features: Option<u32>,
    /// The number of runs in which the plan must pay for itself. Default: 20, or 1000 with `measure(true)`.
    ///
    /// By its prediction, the plan searches for a row order, or makes blocks of columns, only if these runs gain more
    /// than that costs. If you set the number, the same holds for counting the statistics that it predicts by, and for
    /// [measuring](Self::measure). Else it always counts the statistics.
    pub runs: Option<u32>,
    /// Whether the plan times its best predicted candidates on the device and keeps the fastest, as FFTW does with
    /// `FFTW_MEASURE`. Default: only if you set the number of [`runs`](Self::runs), and these gain more than measuring
    /// costs, by the prediction. That takes some thousand runs.
    ///
    /// Measuring takes as long as a hundred runs or more. Device memory holds the plan, one candidate, and an X and a Y
    /// of zeros. Two measured plans of one matrix can differ, and so can the rounding of their sums. To repeat a plan,
    /// pass its tuning from [`measurements`](super::Spmm::measurements). A plan that does not measure is the same each
    /// time: use `measure(false)`, or set neither `measure` nor `runs`.
    ///
    /// Even with `measure(true)`, a plan keeps to its prediction in four cases, and its `Display` says so:
    /// [`features`](Self::features) is unknown; there are fewer than two candidates; the device has no clock (the
    /// emulator); memory does not suffice.
    pub measure: Option<bool>,
    /// How it is computed. Default: the plan chooses.
    pub tuning: SpmmTuning,
}

impl SpmmOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        fields {
            reduction: Reduction,
            transpose: bool,
            deterministic: bool,
            updatable: bool,
            tuning: SpmmTuning,
        }
        optional { features: u32, runs: u32, measure: bool }
    }

    /// The same options, tuned in another way.
    ///
    /// ```
    /// # use warprow::SpmmOptions;
    /// let options = SpmmOptions::new().map_tuning(|tuning| tuning);
    /// # assert_eq!(options, SpmmOptions::new());
    /// ```
    #[must_use]
    pub fn map_tuning(self, change: impl FnOnce(SpmmTuning) -> SpmmTuning) -> Self {
        self.tuning(change(self.tuning))
    }
}

/// How a plan of SpMM computes. `None` leaves the choice to the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpmmTuning {
    /// The kernel.
    pub kernel: Option<SpmmKernel>,
    /// The order in which the plan keeps the rows of A. Default for kernels on tasks or teams, and for
    /// [`SpmmKernel::RowGroups`]: clusters or rows by their first column if that pays, else the caller's order (teams
    /// may start with the longest rows); for [`SpmmKernel::Reordered`] by the first column; for the other kernels the
    /// caller's order.
    pub order: Option<RowOrder>,
    /// Lanes of a sub-warp, for kernels on tasks: 8, 16 or 32, or the next lower number that the type and the number of
    /// features have a kernel for. For [`SpmmKernel::RowGroups`] lanes of a row: 2, 4, 8, 16 or 32, or the next lower
    /// number; more if a row of X needs more. For [`SpmmKernel::InStep`] lanes that load a row of X together, in f32
    /// with a multiple of 4 features: 4, 8, 16 or 32. With another number, and in other rows of X, the number of
    /// features decides.
    pub lanes: Option<u32>,
    /// The number of [blocks of columns](warprow_kernels::spmm::product::column_blocks), for kernels on tasks. Only
    /// sums and means in f32 and f64 are computed in blocks.
    pub column_blocks: Option<u32>,
    /// The size of the units of work. For kernels on [tasks](warprow_kernels::spmm::product::tasks) the steps of a
    /// task: its nonzeros and twice its rows. For [slices](warprow_kernels::spmm::ladder::slices) the maximum number of
    /// nonzeros. For [rows in bins](warprow_kernels::spmm::product::row_bins) the nonzeros of the longest row that is
    /// not cut, rounded down to a power of two. For [teams](warprow_kernels::spmm::product::teams) the maximum number
    /// of nonzeros of a row that one warp takes. It does not turn off the teams of shorter rows: those of a last wave
    /// of blocks that would be at most half full, all of them if that takes no longer, and up to three rows that are
    /// left over.
    pub task_size: Option<u32>,
    /// Whether a sub-warp of 16 or 32 lanes takes several consecutive [tasks](warprow_kernels::spmm::product::tasks)
    /// as one, except for the last tasks. Default: if it pays, and never with a `task_size`.
    pub join_tasks: Option<bool>,
    /// Whether [`SpmmKernel::RowBins`] copies X to shared memory. It does not select that kernel. A run ignores it, and
    /// loads X from global memory, if X does not fit, if X or Y has gaps between its rows, and for maxima and minima.
    /// Default: if the cost model predicts a clear gain, or measuring finds one.
    pub shared_x: Option<bool>,
}

impl SpmmTuning {
    /// All choices are the plan's.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        fields {}
        optional {
            kernel: SpmmKernel,
            order: RowOrder,
            lanes: u32,
            column_blocks: u32,
            task_size: u32,
            join_tasks: bool,
            shared_x: bool,
        }
    }
}

/// The order in which a plan keeps the rows of A. X and Y stay in the caller's order.
///
/// Rows that run at the same time should read the same rows of X, which the cache then holds. An example: rows of 10
/// nonzeros, 85 % of them inside a community. In 64 consecutive rows, distinct columns divided by nonzeros are 0.99 in
/// random order, 0.89 by the first column, and 0.60 in clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RowOrder {
    /// The caller's.
    #[default]
    Given,
    /// By the first column of each row, empty rows last.
    FirstColumn,
    /// By the column of each row that has the most nonzeros in the whole matrix.
    FrequentColumn,
    /// By communities, which label propagation finds, and by the first column within each.
    Clustered,
}

impl RowOrder {
    /// All orders.
    pub const ALL: &[Self] = &[
        Self::Given,
        Self::FirstColumn,
        Self::FrequentColumn,
        Self::Clustered,
    ];

    /// The name by which a user selects it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::FirstColumn => "first_column",
            Self::FrequentColumn => "frequent_column",
            Self::Clustered => "clustered",
        }
    }
}
