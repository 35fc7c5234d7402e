//! The product with the end of a network's layer in the place of the epilogue: bias and ReLU, or bias and LogSoftmax.
//!
//! The layer then writes once what it would otherwise write, read and write again. A row's LogSoftmax wants all its features in the
//! sub-warp that ends it.

use super::super::Shape;
use super::super::element::{Operand, SumOf};
use super::super::items::Items;
use super::super::reduction::{Reduction, Total};
use super::row_end::{Activate, LogSoftmax};
use super::{groups_and_tiles, reduce_rows, variant};
use crate::log_softmax::Logarithm;
use crate::matrix::{Csr, Dense, DenseMut};
use cuda_std::prelude::*;

/// How a layer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerEnd {
    /// The bias is added, and negative results become 0.
    Activate,
    /// The bias is added, and of each row the LogSoftmax taken.
    LogSoftmax,
}

/// The arguments: A, X, Y, the items, and the bias.
#[cfg(not(target_arch = "nvptx64"))]
pub type LayerArguments<T> = (
    Csr<SumOf<T>>,
    Dense<T>,
    DenseMut<T>,
    Items<SumOf<T>>,
    Global<SumOf<T>>,
);

/// The handle of the kernel for a product of that shape, whose launch is `vector`'s; `None` if there is no instance, or a row's LogSoftmax
/// is wanted and a sub-warp does not have all features.
#[cfg(not(target_arch = "nvptx64"))]
pub fn handle<T: Operand<Sum: Logarithm>>(
    shape: Shape,
    end: LayerEnd,
) -> Option<Kernel<LayerArguments<T>>> {
    let (_, tiles) = groups_and_tiles::<T>(shape, Reduction::Sum);
    if size_of::<T>() < size_of::<f32>() || end == LayerEnd::LogSoftmax && tiles > 1 {
        return None;
    }
    macro_rules! of_variant {
        ($kernel:ident) => {
            match variant::<T>(shape, Reduction::Sum) {
                (8, 1) => $kernel::<T, 8, 1>(),
                (8, 4) => $kernel::<T, 8, 4>(),
                (16, 1) => $kernel::<T, 16, 1>(),
                (16, 4) => $kernel::<T, 16, 4>(),
                (32, 1) => $kernel::<T, 32, 1>(),
                (32, 4) => $kernel::<T, 32, 4>(),
                _ => return None,
            }
        };
    }
    Some(match end {
        LayerEnd::Activate => of_variant!(vector_activate),
        LayerEnd::LogSoftmax => of_variant!(vector_log_softmax),
    })
}

/// `Y[row, j] = max(0, bias[j] + sum of A[row, col] * X[col, j])`, with the rows of A in any order: else as
/// [`vector`](super::vector).
///
/// # Safety
///
/// That of [`vector`](super::vector); the bias has n elements.
#[kernel(name = "spmm_vector_activate",
    T = [f32], LANES = [8, 16, 32], WIDTH = [1, 4];
    T = [f64], LANES = [8, 32], WIDTH = [1, 4])]
pub unsafe fn vector_activate<T: Operand, const LANES: u32, const WIDTH: usize>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    bias: Global<SumOf<T>>,
) {
    // SAFETY: the kernel's contract.
    unsafe { reduce_rows::<T, Total, _, LANES, WIDTH>(a, x, y, items, Activate { bias }) };
}

/// `Y[row, :] = LogSoftmax(bias + sum of A[row, col] * X[col, :])`, with the rows of A in any order: else as
/// [`vector`](super::vector).
///
/// # Safety
///
/// That of [`vector`](super::vector); the bias has n elements; there is one tile of features.
#[kernel(name = "spmm_vector_log_softmax",
    T = [f32], LANES = [8, 16, 32], WIDTH = [1, 4];
    T = [f64], LANES = [8, 32], WIDTH = [1, 4])]
pub unsafe fn vector_log_softmax<
    T: Operand<Sum: Logarithm>,
    const LANES: u32,
    const WIDTH: usize,
>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    bias: Global<SumOf<T>>,
) {
    // SAFETY: the kernel's contract.
    unsafe { reduce_rows::<T, Total, _, LANES, WIDTH>(a, x, y, items, LogSoftmax { bias }) };
}

#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn entry_points() -> Vec<&'static str> {
    let activate = vector_activate::<f32, 8, 1>().entry_points();
    [activate, vector_log_softmax::<f32, 8, 1>().entry_points()].concat()
}
