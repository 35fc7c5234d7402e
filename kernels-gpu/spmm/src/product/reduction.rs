//! Reductions of the products `A[i, k] * X[k, j]` of a row's nonzeros: sum, mean, maximum, minimum.

use cuda_std::prelude::*;
pub use warprow_kernels_matrix::Reduction;

/// A reduction as a kernel is compiled for it.
pub trait Reducer {
    /// Whether empty rows are a case of their own, because their result is not the start of the reduction.
    const MINDS_EMPTY_ROWS: bool;

    /// The value at which the reduction starts.
    fn start<S: Real>() -> S;

    /// The reduction of the products so far and of `value * element`.
    fn take<S: Real>(value: S, element: S, so_far: S) -> S;

    /// The reduction of two parts of a row.
    fn join<S: Real>(one: S, other: S) -> S;
}

/// [`Reduction::Sum`], and `Mean` before the division.
pub struct Total;

impl Reducer for Total {
    const MINDS_EMPTY_ROWS: bool = false;

    #[inline(always)]
    fn start<S: Real>() -> S {
        // The neutral element of addition. With 0 the compiler treats the first addition after a row's end separately,
        // for a sixth more registers.
        -S::ZERO
    }

    #[inline(always)]
    fn take<S: Real>(value: S, element: S, so_far: S) -> S {
        value.mul_add(element, so_far)
    }

    #[inline(always)]
    fn join<S: Real>(one: S, other: S) -> S {
        one + other
    }
}

/// [`Reduction::Max`], and `Min` of negated products.
pub struct Greatest;

impl Reducer for Greatest {
    const MINDS_EMPTY_ROWS: bool = true;

    #[inline(always)]
    fn start<S: Real>() -> S {
        S::NEG_INFINITY
    }

    #[inline(always)]
    fn take<S: Real>(value: S, element: S, so_far: S) -> S {
        (value * element).maximum(so_far)
    }

    #[inline(always)]
    fn join<S: Real>(one: S, other: S) -> S {
        one.maximum(other)
    }
}
