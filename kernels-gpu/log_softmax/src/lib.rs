//! LogSoftmax of each row of a matrix: `y_j = x_j - max - ln(sum over k of exp(x_k - max))`.
//!
//! `max` is the greatest element of the row. After its subtraction, no exponential is above 1 and one of them is 1. So
//! nothing overflows, and the argument of the logarithm is between 1 and the number of classes.
//!
//! An element costs one load, one exponential and one store, so the kernels are memory bound. There are three:
//!
//! | kernel | rows that it takes | who computes a row |
//! |---|---|---|
//! | [`sub_warp`](mod@sub_warp) | up to 64 classes, a multiple of 4 | 4 lanes, in registers |
//! | [`staged`](mod@staged) | those that fit shared memory | 1 lane, or 8 for f64 |
//! | [`streamed`](mod@streamed) | any | a warp, which reads the row twice |

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

mod exp_ln;
pub mod staged;
pub mod streamed;
pub mod sub_warp;

pub use exp_ln::ExpLn;

use cuda_std::prelude::*;
use warprow_kernels_matrix::Operand;
#[cfg(not(target_arch = "nvptx64"))]
use warprow_kernels_matrix::{Dense, DenseMut};

/// An element type of the rows: f32, f64, f16 or bf16. Exponentials are summed in f32, those of f64 in f64.
pub trait SoftmaxElement: Operand<Sum: ExpLn> {}

impl<T: Operand<Sum: ExpLn>> SoftmaxElement for T {}

/// The arguments of the kernels: X, Y, and the bias.
#[cfg(not(target_arch = "nvptx64"))]
pub type LogSoftmaxArguments<T> = (Dense<T>, DenseMut<T>, Bias<T>);

/// A bias that is added to each row of X first, in the type of sums.
#[repr(C)]
#[derive(KernelParam)]
pub struct Bias<T> {
    /// One element for each class; address 0 if there is no bias.
    pub values: Global<T>,
}

impl<T> Clone for Bias<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Bias<T> {}

impl<T: SoftmaxElement> Bias<T> {
    /// Adds the bias of classes `first` to `first + WIDTH - 1` to elements of X.
    ///
    /// # Safety
    ///
    /// The bias, if there is one, has these classes and is aligned to `WIDTH` elements. `first` is a multiple of
    /// `WIDTH`.
    #[inline(always)]
    unsafe fn added<const WIDTH: usize>(self, elements: [T; WIDTH], first: u32) -> [T::Sum; WIDTH] {
        let mut sums = elements.map(T::widen);
        if self.values.address() != 0 {
            // SAFETY: the bias has the classes and the alignment, by the contract.
            let bias = unsafe { self.values.load_array::<WIDTH>(first as usize) };
            let mut k = 0;
            while k < WIDTH {
                sums[k] += bias[k].widen();
                k += 1;
            }
        }
        sums
    }
}

/// The kernels of this family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoftmaxKernel {
    /// See [`sub_warp`](mod@sub_warp).
    SubWarp,
    /// See [`staged`](mod@staged).
    Staged,
    /// See [`streamed`](mod@streamed).
    Streamed,
}

impl SoftmaxKernel {
    /// All kernels, the fastest first.
    pub const ALL: [Self; 3] = [Self::SubWarp, Self::Staged, Self::Streamed];

    /// The fastest kernel that takes rows of `classes` classes.
    pub fn for_rows<T>(classes: u32) -> Self {
        let fastest = Self::ALL
            .into_iter()
            .find(|kernel| kernel.takes::<T>(classes));
        fastest.unwrap_or(Self::Streamed)
    }

    /// Whether the kernel takes rows of `classes` classes.
    pub fn takes<T>(self, classes: u32) -> bool {
        match self {
            Self::SubWarp => sub_warp::fits(classes),
            Self::Staged => staged::fits::<T>(classes),
            Self::Streamed => true,
        }
    }

    /// Whether the kernel takes rows that start at multiples of `multiple` elements, if they are not `packed`. X and Y
    /// start at a multiple of 16 bytes or of their elements; `multiple` includes that.
    pub fn takes_starts(self, multiple: u32, packed: bool) -> bool {
        match self {
            Self::SubWarp => multiple.is_multiple_of(sub_warp::WIDTH as u32),
            Self::Staged => packed,
            Self::Streamed => true,
        }
    }

    /// The launch for `rows` rows of `classes` classes, which the kernel [takes](Self::takes).
    pub fn launch<T>(self, rows: u32, classes: u32) -> LaunchConfig {
        let grid = |block, lanes| LaunchConfig::new(rows.div_ceil(block / lanes), block);
        match self {
            Self::SubWarp => grid(BLOCK, sub_warp::LANES),
            Self::Staged => {
                let lanes = staged::lanes::<T>();
                // The cast is exact: at most `staged::SHARED_BYTES`, or the kernel would not take the rows.
                let bytes = staged::shared_bytes::<T>(classes, lanes) as u32;
                grid(staged::BLOCK, lanes).shared_bytes(bytes)
            }
            Self::Streamed => grid(BLOCK, cuda_std::warp::WARP_SIZE),
        }
    }

    /// The kernel's instance for elements of type `T`.
    #[cfg(not(target_arch = "nvptx64"))]
    pub fn handle<T: SoftmaxElement>(self) -> Kernel<LogSoftmaxArguments<T>> {
        match self {
            Self::SubWarp => sub_warp::sub_warp::<T>(),
            Self::Staged if staged::lanes::<T>() == 1 => staged::staged::<T, 1>(),
            Self::Staged => staged::staged::<T, 8>(),
            Self::Streamed => streamed::streamed::<T>(),
        }
    }
}

/// Threads in a block of `sub_warp` and `streamed`.
const BLOCK: u32 = 256;

/// The maximum of some elements of a row, and the sum of their exponentials relative to it.
#[derive(Clone, Copy)]
struct PartialSoftmax<S> {
    max: S,
    sum: S,
}

impl<S: ExpLn> PartialSoftmax<S> {
    /// Maximum and sum of the elements of both.
    #[inline(always)]
    fn join(self, other: Self) -> Self {
        let max = if other.max > self.max {
            other.max
        } else {
            self.max
        };
        Self {
            max,
            sum: self.scaled(max) + other.scaled(max),
        }
    }

    /// The sum relative to another maximum; 0 if all elements so far are negative infinity.
    #[inline(always)]
    fn scaled(self, max: S) -> S {
        if self.max == S::NEG_INFINITY && self.sum == S::ZERO {
            S::ZERO
        } else {
            self.sum * (self.max - max).exp()
        }
    }
}
