//! Reductions of the products `A[i, k] * X[k, j]` of a row's nonzeros: sum, mean, maximum, minimum.

use cuda_std::prelude::*;

/// How the products of a row's nonzeros become an element of Y. An empty row gives 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their sum: `A X`.
    #[default]
    Sum,
    /// Their sum divided by their number; stored zeros count.
    Mean,
    /// The greatest of them, NaN if one is NaN.
    Max,
    /// The least of them, NaN if one is NaN.
    Min,
}

impl Reduction {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Sum, Self::Mean, Self::Max, Self::Min];

    /// Its name: `sum`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Max => "max",
            Self::Min => "min",
        }
    }

    /// Whether it is the greatest or least of the products. A minimum is the negated maximum of the negated products:
    /// the plan negates A's values and alpha.
    pub const fn is_extremum(self) -> bool {
        matches!(self, Self::Max | Self::Min)
    }
}

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
