//! The product with the end of a network's layer in the place of the epilogue: bias and ReLU, or bias and LogSoftmax.
//!
//! The layer then writes once what it would otherwise write, read and write again. A row's LogSoftmax wants all its features in the
//! sub-warp that ends it.
//!
//! It is no faster, and no default. Measured on an NVIDIA H200, in f32, on a graph of 281903 nodes and 2312497 edges with 16
//! features: with bias and ReLU 0.068 ms, where the product takes 0.060 and a kernel for them 0.008; with LogSoftmax 0.092 ms,
//! where the two take 0.060 and 0.009. While the 8 lanes of a sub-warp are at a row's exponentials and shuffles, those of the warp's
//! other sub-warps wait, and rows are short.

use crate::Shape;
use warprow_kernels_matrix::{Operand, SumOf};
use crate::items::Items;
use crate::product::reduction::{Reduction, Total};
use crate::product::row_end::{Activate, LogSoftmax, passes};
use crate::product::tasks::{COMBINE_TILE, Cuts, join_parts};
use crate::product::vector::{reduce_rows, variant};
use warprow_kernels_log_softmax::Logarithm;
use warprow_kernels_matrix::{Csr, Dense, DenseMut};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

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
    let (lanes, width, passes) = variant::<T>(shape, Reduction::Sum);
    let one_tile = shape.features <= lanes * width * passes;
    if size_of::<T>() < size_of::<f32>() || end == LayerEnd::LogSoftmax && !one_tile {
        return None;
    }
    macro_rules! of_variant {
        ($kernel:ident) => {
            match (lanes, width, passes) {
                (8, 1, _) => $kernel::<T, 8, 1, 2>(),
                (8, 4, _) => $kernel::<T, 8, 4, 1>(),
                (16, 1, 3) => $kernel::<T, 16, 1, 3>(),
                (16, 1, _) => $kernel::<T, 16, 1, 2>(),
                (16, 4, _) => $kernel::<T, 16, 4, 1>(),
                (32, 1, _) => $kernel::<T, 32, 1, 2>(),
                (32, 4, _) => $kernel::<T, 32, 4, 1>(),
                _ => return None,
            }
        };
    }
    Some(match end {
        LayerEnd::Activate => of_variant!(vector_activate),
        LayerEnd::LogSoftmax => of_variant!(vector_log_softmax),
    })
}

/// The arguments for the rows that are cut: the items with their parts, the cut rows, Y, and the bias.
#[cfg(not(target_arch = "nvptx64"))]
pub type CombineArguments<T> = (Items<SumOf<T>>, Cuts, DenseMut<T>, Global<SumOf<T>>);

/// The handle of the kernel that joins the parts of the cut rows of such a product, and the features that it takes at a time: the `tile`
/// of [`launch_combine`](crate::product::tasks::launch_combine). For shapes that [`handle`] has a kernel for.
#[cfg(not(target_arch = "nvptx64"))]
pub fn combine_handle<T: Operand<Sum: Logarithm>>(
    shape: Shape,
    end: LayerEnd,
) -> (Kernel<CombineArguments<T>>, u32) {
    let (_, width, _) = variant::<T>(shape, Reduction::Sum);
    let row = WARP_SIZE * width * passes(shape.features, WARP_SIZE, width);
    match (end, width) {
        (LayerEnd::Activate, _) => (combine_activate::<T>(), COMBINE_TILE),
        (LayerEnd::LogSoftmax, 1) => (combine_log_softmax::<T, 1>(), row),
        (LayerEnd::LogSoftmax, _) => (combine_log_softmax::<T, 4>(), row),
    }
}

/// `Y[row, j] = max(0, bias[j] + sum of A[row, col] * X[col, j])`, with the rows of A in any order: else as
/// [`vector`](crate::product::vector::vector).
///
/// # Safety
///
/// That of [`vector`](crate::product::vector::vector); the bias has n elements.
#[kernel(name = "spmm_vector_activate",
    T = [f32], LANES = [8, 16, 32], WIDTH = [1], PASSES = [2];
    T = [f32], LANES = [16], WIDTH = [1], PASSES = [3];
    T = [f32], LANES = [8, 16, 32], WIDTH = [4], PASSES = [1];
    T = [f64], LANES = [8, 32], WIDTH = [1], PASSES = [2];
    T = [f64], LANES = [8, 32], WIDTH = [4], PASSES = [1])]
pub unsafe fn vector_activate<
    T: Operand,
    const LANES: u32,
    const WIDTH: usize,
    const PASSES: usize,
>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    bias: Global<SumOf<T>>,
) {
    // SAFETY: the kernel's contract.
    unsafe { reduce_rows::<T, Total, _, LANES, WIDTH, PASSES>(a, x, y, items, Activate { bias }) };
}

/// `Y[row, :] = LogSoftmax(bias + sum of A[row, col] * X[col, :])`, with the rows of A in any order: else as
/// [`vector`](crate::product::vector::vector).
///
/// # Safety
///
/// That of [`vector`](crate::product::vector::vector); the bias has n elements; there is one tile of features.
#[kernel(name = "spmm_vector_log_softmax",
    T = [f32], LANES = [8, 16, 32], WIDTH = [1], PASSES = [2];
    T = [f32], LANES = [16], WIDTH = [1], PASSES = [3];
    T = [f32], LANES = [8, 16, 32], WIDTH = [4], PASSES = [1];
    T = [f64], LANES = [8, 32], WIDTH = [1], PASSES = [2];
    T = [f64], LANES = [8, 32], WIDTH = [4], PASSES = [1])]
pub unsafe fn vector_log_softmax<
    T: Operand<Sum: Logarithm>,
    const LANES: u32,
    const WIDTH: usize,
    const PASSES: usize,
>(
    a: Csr<SumOf<T>>,
    x: Dense<T>,
    y: DenseMut<T>,
    items: Items<SumOf<T>>,
    bias: Global<SumOf<T>>,
) {
    // SAFETY: the kernel's contract.
    unsafe {
        reduce_rows::<T, Total, _, LANES, WIDTH, PASSES>(a, x, y, items, LogSoftmax { bias })
    };
}

/// The rows that [`vector_activate`] leaves in parts: else as [`combine`](crate::product::tasks::combine).
///
/// # Safety
///
/// That of [`combine`](crate::product::tasks::combine); the bias has an element for each feature.
#[kernel(name = "spmm_combine_activate", T = [f32, f64])]
pub unsafe fn combine_activate<T: Operand>(
    items: Items<SumOf<T>>,
    cuts: Cuts,
    y: DenseMut<T>,
    bias: Global<SumOf<T>>,
) {
    // SAFETY: the kernel's contract.
    unsafe { join_parts::<T, Total, _, 1, 1>(items, cuts, y, Activate { bias }) };
}

/// The rows that [`vector_log_softmax`] leaves in parts, a warp or a block for all features of a row.
///
/// # Safety
///
/// That of [`combine`](crate::product::tasks::combine); the bias has an element for each feature; there are at most 64 features, or 128
/// and a multiple of four if `WIDTH` is 4.
#[kernel(name = "spmm_combine_log_softmax", T = [f32, f64], WIDTH = [1, 4])]
pub unsafe fn combine_log_softmax<T: Operand<Sum: Logarithm>, const WIDTH: usize>(
    items: Items<SumOf<T>>,
    cuts: Cuts,
    y: DenseMut<T>,
    bias: Global<SumOf<T>>,
) {
    let end = LogSoftmax { bias };
    // SAFETY: the kernel's contract.
    unsafe {
        if WIDTH == 1 {
            join_parts::<T, Total, _, WIDTH, 2>(items, cuts, y, end);
        } else {
            join_parts::<T, Total, _, WIDTH, 1>(items, cuts, y, end);
        }
    }
}
