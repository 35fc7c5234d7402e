//! What a plan is made for: the type of the elements, the options, and the kernel that serves them.

use super::order::RowOrder;
use crate::error::Error;
use crate::scalar::Scalar;
use half::{bf16, f16};
use std::borrow::Cow;
use warprow_kernels::spmm::{Operand, Reduction, SpmmKernel};

/// An element type of X and Y that SpMM has kernels for. A is of the same type or, with [`Spmm::plan_wide`](super::Spmm::plan_wide), of the type
/// [`Sum`](Operand::Sum), in which the device keeps it and which is f32 for f16 and bf16.
pub trait SpmmElement: Scalar + Operand<Sum: Scalar + Default> + Default {
    /// The same numbers in the type of sums.
    fn widen(numbers: &[Self]) -> Cow<'_, [Self::Sum]>;
}

macro_rules! own_sum {
    ($($element:ident)*) => {$(
        impl SpmmElement for $element {
            fn widen(numbers: &[Self]) -> Cow<'_, [Self]> {
                numbers.into()
            }
        }
    )*};
}
own_sum!(f32 f64);

macro_rules! summed_in_f32 {
    ($($element:ident)*) => {$(
        impl SpmmElement for $element {
            fn widen(numbers: &[Self]) -> Cow<'_, [f32]> {
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
    /// Rows and nonzeros of a task, for the kernels that work on [tasks](warprow_kernels::spmm::tasks), and the most nonzeros of
    /// a [slice](warprow_kernels::spmm::slices); the plan chooses if it is not said.
    pub task_size: Option<u32>,
    /// Lanes of a sub-warp, for the kernels that have the choice: 8, 16 or 32, or the next fewer that there are for the type
    /// and the number of features. The plan chooses if it is not said.
    pub lanes: Option<u32>,
    /// [Blocks of columns](warprow_kernels::spmm::column_blocks) for the kernels that work on tasks; the plan chooses if it is
    /// not said. Only sums and means in f32 and f64 are computed in blocks.
    pub column_blocks: Option<u32>,
    /// The order in which the plan keeps the rows of A; the plan chooses between the given one and clusters if it is not said, for the
    /// kernels that work on tasks. For the others it is the given one, but by their first column for [`SpmmKernel::Reordered`].
    pub order: Option<RowOrder>,
    /// What becomes of the products of a row's nonzeros with the rows of X: their sum, unless it is said.
    pub reduction: Reduction,
    /// Whether the product is with A's transpose: `Y = A^T X`, for the matrix A that the plan is given.
    pub transpose: bool,
    /// Whether every run must give the same bits. The plan's own choice does so anyway; a kernel that adds by atomics is
    /// then an error.
    pub deterministic: bool,
}

/// The kernel that is asked for if it can do what is wanted, or the last of the table that can.
pub(super) fn choose_kernel<E: SpmmElement>(options: SpmmOptions) -> Result<SpmmKernel, Error> {
    let serves = |kernel: SpmmKernel| {
        let capabilities = kernel.capabilities();
        capabilities.has::<E>(options.reduction)
            && (capabilities.deterministic || !options.deterministic)
    };
    let Some(kernel) = options.kernel else {
        let mut kernels = SpmmKernel::ALL.iter().rev().copied();
        return Ok(kernels
            .find(|&kernel| kernel.capabilities().general && serves(kernel))
            .expect("the table has a deterministic kernel that does everything"));
    };
    if serves(kernel) {
        return Ok(kernel);
    }
    let in_every_run = if options.deterministic {
        ", the same bits in every run"
    } else {
        ""
    };
    Err(Error::Kernel {
        kernel: kernel.name(),
        reason: format!(
            "wanted is {} in {}{in_every_run}, it can do {}",
            options.reduction.name(),
            E::NAME,
            kernel.capabilities()
        ),
    })
}
