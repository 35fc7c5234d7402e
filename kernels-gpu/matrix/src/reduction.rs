//! How the products of a row become one element.

/// How the products of a row's nonzeros become an element of Y. An empty row gives 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
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
    pub const ALL: &[Self] = &[Self::Sum, Self::Mean, Self::Max, Self::Min];

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
        match self {
            Self::Sum | Self::Mean => false,
            Self::Max | Self::Min => true,
        }
    }
}
