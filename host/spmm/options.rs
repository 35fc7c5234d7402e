//! What a plan is made for: the type of the elements, the options, and the kernel that serves them.

use crate::scalar::Scalar;
use half::{bf16, f16};
use std::borrow::Cow;
use warprow_kernels::matrix::Operand;
use warprow_kernels::spmm::{Reduction, SpmmKernel};

/// An element type of X and Y that SpMM has kernels for. A is of the same type or, with [`Spmm::plan_wide`](super::Spmm::plan_wide), of the type
/// [`Sum`](Operand::Sum), in which the device keeps it and which is f32 for f16 and bf16.
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

/// How a product is to be planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpmmOptions {
    /// The kernel; the plan chooses if it is not said.
    pub kernel: Option<SpmmKernel>,
    /// The number of features, the columns of X, that the plan is for, if it is known: whether an order of the rows is worth its cost depends on
    /// it, and on a GPU the size of the tasks of a matrix so small that all can run at once. Runs may have any other number.
    pub features: Option<u32>,
    /// Steps of a task, its nonzeros and twice its rows, for the kernels that work on [tasks](warprow_kernels::spmm::product::tasks), and the most nonzeros of
    /// a [slice](warprow_kernels::spmm::ladder::slices), or of a row that has one warp in a [team](warprow_kernels::spmm::product::teams); the plan chooses
    /// if it is not said.
    pub task_size: Option<u32>,
    /// Whether a sub-warp of 16 or 32 lanes takes several [tasks](warprow_kernels::spmm::product::tasks) that follow each other as if they were one, but
    /// for the last ones; the plan chooses if it is not said, and takes tasks of a size that is said one by one.
    pub join_tasks: Option<bool>,
    /// Lanes of a sub-warp, for the kernels that have the choice: 8, 16 or 32, or the next fewer that there are for the type
    /// and the number of features. The plan chooses if it is not said.
    pub lanes: Option<u32>,
    /// [Blocks of columns](warprow_kernels::spmm::product::column_blocks) for the kernels that work on tasks; the plan chooses if it is
    /// not said. Only sums and means in f32 and f64 are computed in blocks.
    pub column_blocks: Option<u32>,
    /// The order in which the plan keeps the rows of A; the plan chooses between the given one and clusters if it is not said, for the
    /// kernels that work on tasks or teams. For the others it is the given one, but by their first column for [`SpmmKernel::Reordered`].
    pub order: Option<RowOrder>,
    /// What becomes of the products of a row's nonzeros with the rows of X: their sum, unless it is said.
    pub reduction: Reduction,
    /// Whether the product is with A's transpose: `Y = A^T X`, for the matrix A that the plan is given.
    pub transpose: bool,
    /// Whether every run must give the same bits. The plan's own choice does so anyway; a kernel that adds by atomics is
    /// then an error.
    pub deterministic: bool,
}

/// The order in which a plan keeps the rows of A. X and Y are in the caller's order whatever it is.
///
/// What an order is good for: rows that run at the same time should read the same rows of X, which are then in a cache.
/// As a measure, take the distinct columns of 64 neighbouring rows, as a part of their nonzeros. On shuffled graphs of 20,000
/// rows with 85 % of the nonzeros in communities of 60 to 600 rows it is
///
/// | nonzeros a row | `Given` | `FirstColumn` | `Clustered` | by the communities planted |
/// |---|---|---|---|---|
/// | 5 | .99 | .88 | .78 | .77 |
/// | 10 | .99 | .89 | .60 | .63 |
/// | 30 | .96 | .76 | .38 | .38 |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RowOrder {
    /// The caller's.
    #[default]
    Given,
    /// By the first column of each row.
    FirstColumn,
    /// By the most frequent column of each row: columns numbered by their nonzeros, most first, rows sorted by their first
    /// column then, and the columns' numbers put back.
    FrequentColumn,
    /// By communities, which label propagation finds, and by the first column in each. It helps where the matrix has
    /// communities.
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
