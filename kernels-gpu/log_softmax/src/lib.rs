//! LogSoftmax of each row: `y_j = x_j - max - ln(sum over k of exp(x_k - max))`, max the row's greatest element.
//!
//! With the maximum taken off no exponential is above 1, and one of them is 1: nothing overflows, and the logarithm is that of a
//! number from 1 to the number of classes. An element costs its load, an exponential, and its store: the memory
//! decides.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

mod logarithm;
pub mod staged;
pub mod streamed;
pub mod sub_warp;

pub use logarithm::Logarithm;

use cuda_std::prelude::*;
use warprow_kernels_matrix::Operand;

/// An element type of the rows: f32, f64, f16 or bf16. Exponentials are added up in f32, of f64 in f64.
pub trait SoftmaxElement: Operand<Sum: Logarithm> {}

impl<T: Operand<Sum: Logarithm>> SoftmaxElement for T {}

/// The arguments of the kernels: rows, classes, X, Y, and what is done to an element of X first.
#[cfg(not(target_arch = "nvptx64"))]
pub type Arguments<T> = (u32, u32, Global<T>, GlobalMut<T>, Bias<T>);

/// A number for each class that is added to the elements of X, in the type of sums.
#[repr(C)]
#[derive(KernelParam)]
pub struct Bias<T> {
    /// The numbers; address 0 for none.
    pub values: Global<T>,
}

impl<T> Clone for Bias<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Bias<T> {}

impl<T: SoftmaxElement> Bias<T> {
    /// Neighbouring elements of X from class `first` on, the bias added.
    ///
    /// # Safety
    ///
    /// Classes of the bias, if there is one, which is aligned to `WIDTH` elements; `first` is a multiple of `WIDTH`.
    #[inline(always)]
    unsafe fn added<const WIDTH: usize>(self, elements: [T; WIDTH], first: u32) -> [T::Sum; WIDTH] {
        let mut sums = elements.map(T::widen);
        if self.values.address() != 0 {
            // SAFETY: classes of the bias.
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

/// The kernels.
enum Choice {
    SubWarp,
    Staged,
    Streamed,
}

/// The kernel for so many classes.
fn choose<T>(classes: u32) -> Choice {
    if sub_warp::fits(classes) {
        Choice::SubWarp
    } else if staged::fits::<T>(classes) {
        Choice::Staged
    } else {
        Choice::Streamed
    }
}

/// The launch for so many rows and classes.
pub fn launch<T>(rows: u32, classes: u32) -> LaunchConfig {
    let grid = |block, lanes| LaunchConfig::new(rows.div_ceil(block / lanes), block);
    match choose::<T>(classes) {
        Choice::SubWarp => grid(BLOCK, sub_warp::LANES),
        Choice::Staged => {
            let lanes = staged::lanes::<T>();
            // As many as a block may have without asking.
            let bytes = staged::shared_bytes::<T>(classes, lanes) as u32;
            grid(staged::BLOCK, lanes).shared_bytes(bytes)
        }
        Choice::Streamed => grid(BLOCK, cuda_std::warp::WARP_SIZE),
    }
}

/// The handle of the kernel for so many classes.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: SoftmaxElement>(classes: u32) -> Kernel<Arguments<T>> {
    match choose::<T>(classes) {
        Choice::SubWarp => sub_warp::sub_warp::<T>(),
        Choice::Staged if staged::lanes::<T>() == 1 => staged::staged::<T, 1>(),
        Choice::Staged => staged::staged::<T, 8>(),
        Choice::Streamed => streamed::streamed::<T>(),
    }
}

/// Threads in a block.
const BLOCK: u32 = 256;

/// The maximum and the sum of exponentials of some elements of a row.
#[derive(Clone, Copy)]
struct Partial<S> {
    max: S,
    sum: S,
}

impl<S: Logarithm> Partial<S> {
    /// Those of both.
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

    /// The sum with another maximum taken off. Where nothing but negative infinity has been seen there is no sum.
    #[inline(always)]
    fn scaled(self, max: S) -> S {
        if self.max == S::NEG_INFINITY && self.sum == S::ZERO {
            S::ZERO
        } else {
            self.sum * (self.max - max).exp()
        }
    }
}
