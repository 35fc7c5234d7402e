//! What a plan is made for: the type of the elements, the options, and the kernel that serves them.

use super::order::RowOrder;
use crate::csr::DevicePattern;
use crate::error::Error;
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

/// Nonzeros of a row, on average, from which on rows are taken in step. On an NVIDIA H200 it was 2 to 15 % faster than tasks on graphs
/// of 490 to 600 nonzeros a row, and slower on graphs of 170 and fewer.
const LONG_ROWS: u64 = 256;

/// Nonzeros of a column, on average, from which on rows are taken in step: so few columns that no row, of which a block has to take all,
/// keeps the device waiting for that block.
const LONG_COLUMNS: u64 = 128;

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

/// The kernel that is asked for, which must be able to do what is wanted.
pub(super) fn kernel_asked_for<E: SpmmElement>(
    options: SpmmOptions,
) -> Result<Option<SpmmKernel>, Error> {
    let Some(kernel) = options.kernel else {
        return Ok(None);
    };
    let capabilities = kernel.capabilities();
    if capabilities.has::<E>(options.reduction)
        && (capabilities.deterministic || !options.deterministic)
    {
        return Ok(Some(kernel));
    }
    let in_every_run = if options.deterministic {
        ", the same bits in every run"
    } else {
        ""
    };
    Err(Error::Kernel {
        kernel: kernel.name(),
        reason: format!(
            "wanted is {} in {}{in_every_run}, it can do {capabilities}",
            options.reduction.name(),
            E::NAME,
        ),
    })
}

/// The kernel for a matrix where none is asked for, on a device whose caches are known.
pub(super) fn kernel_for(a: &DevicePattern, reduction: Reduction) -> SpmmKernel {
    let knows_caches = a.device().properties().l2_bytes.is_some();
    let takes_in_step = knows_caches && !reduction.is_extremum();
    if takes_in_step && are_long(a.rows, a.cols, a.nonzeros()) {
        SpmmKernel::InStep
    } else {
        SpmmKernel::Vector
    }
}

/// Whether rows and columns have so many nonzeros on average that rows are taken in step.
fn are_long(rows: u32, cols: u32, nonzeros: u32) -> bool {
    let at_least = |least, count: u32| u64::from(nonzeros) >= least * u64::from(count.max(1));
    at_least(LONG_ROWS, rows) && at_least(LONG_COLUMNS, cols)
}

#[cfg(test)]
mod tests {
    use super::are_long;

    #[test]
    fn rows_are_taken_in_step_where_rows_and_columns_have_hundreds_of_nonzeros() {
        assert!(are_long(4_267, 4_267, 2_135_822));
        assert!(are_long(132_534, 132_534, 79_122_504));
        assert!(!are_long(1_569_960, 1_569_960, 264_339_468));
        assert!(!are_long(1, 1_000_000, 1_000_000), "one long row");
        assert!(!are_long(1_000_000, 1, 1_000_000), "one long column");
        assert!(!are_long(0, 0, 0));
    }
}
