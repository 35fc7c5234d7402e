//! The traits by which a kernel describes itself to the table: summary, parent, GPUs, and plans by element type.

use crate::GemmKernel;
#[cfg(not(target_arch = "nvptx64"))]
pub use of_types::{GemmArguments, Multiplies, PlannedLaunch};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use of_types::{pack, plan};

/// The properties of a kernel that are the same for all element types.
pub trait Rung {
    /// What the kernel does, in one line.
    const SUMMARY: &'static str;

    /// The rung that it improves; none for the root. The ladder is a tree.
    const PARENT: Option<GemmKernel>;

    /// The GPUs that have its instructions.
    const REQUIRED_ARCH: RequiredArch = RequiredArch::Sm80;

    /// Whether it rounds f32 to tf32, whose significand has 11 bits.
    const ROUNDS_F32: bool = false;

    /// Which leading dimensions of X and Y the kernel takes.
    const STRIDES: Strides = Strides::Packed;

    /// Why the kernel refuses rows of X with `depth` elements of `size` bytes; `None` if it takes them.
    fn refusal(_depth: u32, _size: usize) -> Option<&'static str> {
        None
    }
}

/// The leading dimensions of X and Y that a kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strides {
    /// Those of packed matrices.
    Packed,
    /// Any.
    Any,
    /// Any, if rows of X are less than 4 GiB apart.
    Below4GiB,
    /// Those that keep what the columns guarantee. If the columns of X are a multiple of 4 bytes, its leading dimension
    /// is one. That of Y is a multiple of the greatest power of two, up to 16 bytes, that divides the columns of Y.
    Aligned,
}

impl Strides {
    /// Why these strides of X and Y are refused, for elements of `size` bytes; `None` if they are taken.
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn refusal(self, size: usize, x: RowStride, y: RowStride) -> Option<String> {
        let bytes = |elements: u32| u64::from(elements) * size as u64;
        match self {
            Self::Any => None,
            Self::Below4GiB => (bytes(x.stride) > u32::MAX.into()).then(|| {
                let found = bytes(x.stride);
                format!(
                    "wanted is a leading dimension of x of less than 4 GiB, found are {found} bytes"
                )
            }),
            Self::Packed if x.is_packed() && y.is_packed() => None,
            Self::Packed => Some("it takes packed matrices only".to_owned()),
            Self::Aligned
                if bytes(x.cols).is_multiple_of(4) && !bytes(x.stride).is_multiple_of(4) =>
            {
                let found = x.stride;
                Some(format!(
                    "wanted is an even leading dimension of x, found is {found}"
                ))
            }
            Self::Aligned => {
                let vector = 1_u64 << bytes(y.cols).trailing_zeros().min(4);
                let (wanted, found) = (vector / size as u64, y.stride);
                let is_taken = bytes(found).is_multiple_of(vector);
                (!is_taken).then(|| {
                    let cols = y.cols;
                    format!(
                        "with {cols} columns the leading dimension of y must be a multiple of {wanted}, it is {found}"
                    )
                })
            }
        }
    }
}

/// The columns of a matrix, and its leading dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowStride {
    /// The columns.
    pub cols: u32,
    /// Elements from the start of a row to the start of the next one.
    pub stride: u32,
}

impl RowStride {
    /// Whether rows follow each other without a gap.
    pub fn is_packed(self) -> bool {
        self.cols == self.stride
    }
}

/// The GPUs that have the instructions of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequiredArch {
    /// Compute capability 8.0 and newer.
    Sm80,
    /// Compute capability 9.0 and newer.
    Sm90,
    /// Compute capability 9.0 and no other.
    Sm90a,
}

impl RequiredArch {
    /// The lowest compute capability, major and minor.
    pub const fn min_compute_capability(self) -> (u32, u32) {
        match self {
            Self::Sm80 => (8, 0),
            Self::Sm90 | Self::Sm90a => (9, 0),
        }
    }

    /// Whether a device of that compute capability, major and minor, is one of these GPUs.
    pub fn includes(self, capability: (u32, u32)) -> bool {
        let least = self.min_compute_capability();
        match self {
            Self::Sm80 | Self::Sm90 => capability >= least,
            Self::Sm90a => capability == least,
        }
    }
}

/// The properties of a kernel that depend on the element type; the host uses them.
#[cfg(not(target_arch = "nvptx64"))]
mod of_types {
    use super::Rung;
    use crate::{BiasRelu, GemmProblem};
    use cuda_std::prelude::*;
    use std::any::Any;
    use warprow_kernels_matrix::{Dense, DenseMut, Operand};

    /// The arguments of every kernel of this family: X, W, Y, and the epilogue.
    pub type GemmArguments<T> = (Dense<T>, Dense<T>, DenseMut<T>, BiasRelu<T>);

    /// The instance that a product runs, and its launch.
    #[derive(Clone, Copy)]
    pub struct PlannedLaunch<T: Operand> {
        /// Grid, block and shared memory.
        pub config: LaunchConfig,
        /// The instance.
        pub kernel: Kernel<GemmArguments<T>>,
    }

    /// A kernel that has instances for elements of type `T`.
    pub trait Multiplies<T: Operand>: Rung {
        /// The instance and the launch for a product.
        fn plan(problem: GemmProblem) -> PlannedLaunch<T>;

        /// W in the order in which the kernel reads it. It does not depend on the number of rows of X.
        fn pack(w: Vec<T>, _problem: GemmProblem) -> Vec<T> {
            w
        }
    }

    /// The plan of kernel `K` for elements of type `E`, if `T` is that type.
    pub(crate) fn plan<T: Operand, E: Operand, K: Multiplies<E>>(
        problem: GemmProblem,
    ) -> Option<PlannedLaunch<T>> {
        (T::NAME == E::NAME).then(|| as_same(K::plan(problem)))
    }

    /// W as kernel `K` packs it for elements of type `E`. If `T` is another type, W is returned as the error.
    pub(crate) fn pack<T: Operand, E: Operand, K: Multiplies<E>>(
        w: Vec<T>,
        problem: GemmProblem,
    ) -> Result<Vec<T>, Vec<T>> {
        if T::NAME != E::NAME {
            return Err(w);
        }
        Ok(as_same(K::pack(as_same(w), problem)))
    }

    /// Converts a value to its own type, for generic code in which the compiler cannot see that `A` is `B`.
    fn as_same<A: 'static, B: 'static>(value: A) -> B {
        let mut value = Some(value);
        let value: &mut dyn Any = &mut value;
        let same = value.downcast_mut::<Option<B>>().and_then(Option::take);
        same.expect("the caller has compared the types' names")
    }
}
