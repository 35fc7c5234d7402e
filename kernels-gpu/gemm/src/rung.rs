//! What each kernel says of itself for the table: in words, for which GPUs, and for each element type its plan.

use crate::GemmKernel;
#[cfg(not(target_arch = "nvptx64"))]
pub use of_types::{Arguments, Multiplies, Plan};
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) use of_types::{pack, plan};

/// What is the same for all element types.
pub trait Rung {
    /// What it does, in one line.
    const SUMMARY: &'static str;

    /// The rung that it continues; none for the root. The ladder is a tree.
    const PARENT: Option<GemmKernel>;

    /// The GPUs that have its instructions.
    const TARGET: Target = Target::Sm80;

    /// Whether it multiplies f32 as tf32, of which 11 bits are left.
    const ROUNDS_F32: bool = false;

    /// Why it does not take rows of X of `depth` elements of `size` bytes, if it does not.
    fn refusal(_depth: u32, _size: usize) -> Option<&'static str> {
        None
    }
}

/// The GPUs that have the instructions of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Compute capability 8.0 and newer.
    Sm80,
    /// Compute capability 9.0 and newer.
    Sm90,
    /// Compute capability 9.0 and no other.
    Sm90a,
}

impl Target {
    /// The compute capability, major and minor, that it wants at least.
    pub const fn least_compute_capability(self) -> (u32, u32) {
        match self {
            Self::Sm80 => (8, 0),
            Self::Sm90 | Self::Sm90a => (9, 0),
        }
    }

    /// Whether a device of that compute capability, major and minor, is one of these GPUs.
    pub fn includes(self, capability: (u32, u32)) -> bool {
        let least = self.least_compute_capability();
        match self {
            Self::Sm80 | Self::Sm90 => capability >= least,
            Self::Sm90a => capability == least,
        }
    }
}

/// What the host asks of a kernel for an element type.
#[cfg(not(target_arch = "nvptx64"))]
mod of_types {
    use super::Rung;
    use crate::{Epilogue, Shape};
    use cuda_std::prelude::*;
    use std::any::Any;
    use warprow_kernels_matrix::{Dense, DenseMut, Operand};

    /// The arguments of every kernel of this family: X, W, Y, and what is done to a sum.
    pub type Arguments<T> = (Dense<T>, Dense<T>, DenseMut<T>, Epilogue<T>);

    /// The instance that a product takes, and its launch.
    #[derive(Clone, Copy)]
    pub struct Plan<T: Operand> {
        /// Grid, block and shared memory.
        pub config: LaunchConfig,
        /// The instance.
        pub kernel: Kernel<Arguments<T>>,
    }

    /// A kernel that has instances for elements of type `T`.
    pub trait Multiplies<T: Operand>: Rung {
        /// The instance and the launch for a product of that shape.
        fn plan(shape: Shape) -> Plan<T>;

        /// W in the order in which the kernel reads it; the number of rows of X and Y makes no difference.
        fn pack(w: Vec<T>, _shape: Shape) -> Vec<T> {
            w
        }
    }

    /// The plan of kernel `K` for elements of type `E`, if `T` is that type.
    pub(crate) fn plan<T: Operand, E: Operand, K: Multiplies<E>>(shape: Shape) -> Option<Plan<T>> {
        (T::NAME == E::NAME).then(|| as_same(K::plan(shape)))
    }

    /// W as kernel `K` packs elements of type `E`, if `T` is that type; else W.
    pub(crate) fn pack<T: Operand, E: Operand, K: Multiplies<E>>(
        w: Vec<T>,
        shape: Shape,
    ) -> Result<Vec<T>, Vec<T>> {
        if T::NAME != E::NAME {
            return Err(w);
        }
        Ok(as_same(K::pack(as_same(w), shape)))
    }

    /// A value whose type the compiler does not know to be the other one.
    fn as_same<A: 'static, B: 'static>(value: A) -> B {
        let mut value = Some(value);
        let value: &mut dyn Any = &mut value;
        let same = value.downcast_mut::<Option<B>>().and_then(Option::take);
        same.expect("the caller has compared the types' names")
    }
}
