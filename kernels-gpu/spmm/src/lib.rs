//! SpMM, sparse times dense: `Y = A X`, A in CSR (m x k), X and Y dense and row-major (k x n, m x n).
//!
//! n is the number of *features*: in a graph network a row of X is what is known of a node, and row i of Y the sum over
//! the neighbours of node i. A nonzero costs its 4-byte column, its value, and n elements of X, read wherever the
//! column points; it does 2n floating-point operations. So the memory decides, and the ladder is about reading X well.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

mod bins;
mod items;
pub mod plan;

pub use bins::RowBins;
pub use items::{ItemKind, Items, LargeItems, LaunchShape, RowMarks};
pub use product::reduction::{Reducer, Reduction};
pub use product::scaling::Scaling;

use cuda_std::prelude::*;
use warprow_kernels_matrix::{Operand, SumOf};

/// The table of the kernels: one line each, and the file of the same name. Each file has its `SUMMARY`, its `PARENT`,
/// the `ITEMS` that it wants, its `launch`, and the `handle` of its kernel for an element type. A kernel of the product
/// is general (see [`Capabilities`]): its `launch` and `handle` take the reduction and the epilogue too, and it says
/// whether it `HAS_EXTREMA`.
macro_rules! kernels {
    (
        ladder { $($rung:ident = $rung_file:ident,)* }
        product { $($product:ident = $product_file:ident,)* }
    ) => {
        /// The ladder: what one reads to learn, naive first, one new idea a file. Sums in f32.
        pub mod ladder {
            $(pub mod $rung_file;)*
            pub mod slices;
        }

        /// What runs by default: all element types, reductions, alpha and beta.
        pub mod product {
            $(pub mod $product_file;)*
            pub mod column_blocks;
            pub mod scaling;
            pub mod group_sum;
            mod lane_columns;
            mod lane_groups;
            pub mod reduction;
            mod row_epilogue;
            mod row_parts;
            mod split_rows;
            pub mod tasks;
            pub mod teams;
        }

        /// A kernel of this family.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum SpmmKernel {
            $(
                #[doc = concat!("See [`ladder::", stringify!($rung_file), "`].")]
                $rung,
            )*
            $(
                #[doc = concat!("See [`product::", stringify!($product_file), "`].")]
                $product,
            )*
        }

        impl SpmmKernel {
            /// All kernels, in the order of the ladder.
            pub const ALL: &[Self] = &[$(Self::$rung,)* $(Self::$product,)*];

            /// The name by which a user selects it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$rung => stringify!($rung_file),)*
                    $(Self::$product => stringify!($product_file),)*
                }
            }

            /// What it does, in one line.
            pub const fn summary(self) -> &'static str {
                match self {
                    $(Self::$rung => ladder::$rung_file::SUMMARY,)*
                    $(Self::$product => product::$product_file::SUMMARY,)*
                }
            }

            /// The rung that it continues; none for the root. The ladder is a tree.
            pub const fn parent(self) -> Option<Self> {
                match self {
                    $(Self::$rung => ladder::$rung_file::PARENT,)*
                    $(Self::$product => product::$product_file::PARENT,)*
                }
            }

            /// What its units of work are.
            pub const fn items(self) -> ItemKind {
                match self {
                    $(Self::$rung => ladder::$rung_file::ITEMS,)*
                    $(Self::$product => product::$product_file::ITEMS,)*
                }
            }

            /// What it can do beside sums in f32.
            pub const fn capabilities(self) -> Capabilities {
                let (general, extrema) = match self {
                    $(Self::$rung => (false, false),)*
                    $(Self::$product => (true, product::$product_file::HAS_EXTREMA),)*
                };
                Capabilities {
                    general,
                    extrema,
                    deterministic: !self.items().wants_atomics(),
                }
            }

            /// The launch for a product of that shape.
            pub fn launch<T: Operand>(
                self,
                shape: LaunchShape,
                reduction: Reduction,
                epilogue: EpilogueKind,
            ) -> LaunchConfig {
                match self {
                    $(Self::$rung => ladder::$rung_file::launch::<T::Sum>(shape),)*
                    $(Self::$product => {
                        product::$product_file::launch::<T>(shape, reduction, epilogue)
                    })*
                }
            }

            /// The handle of the kernel for a product of that shape.
            ///
            /// # Panics
            ///
            /// If the kernel [cannot](Capabilities::has) do that.
            #[cfg(not(target_arch = "nvptx64"))]
            pub fn handle<T: Operand>(
                self,
                shape: LaunchShape,
                reduction: Reduction,
                epilogue: EpilogueKind,
            ) -> Handle<T> {
                assert!(
                    self.capabilities().has::<T>(reduction),
                    "{} has no {} in {}",
                    self.name(),
                    reduction.name(),
                    T::NAME
                );
                match self {
                    $(Self::$rung => Handle::Plain(ladder::$rung_file::handle::<T::Sum>(shape)),)*
                    $(Self::$product => {
                        Handle::General(product::$product_file::handle::<T>(shape, reduction, epilogue))
                    })*
                }
            }
        }
    };
}

kernels! {
    ladder {
        ThreadPerRow = thread_per_row,
        ThreadPerNonzero = thread_per_nonzero,
        WarpPerNonzero = warp_per_nonzero,
        ColumnMajor = column_major,
        WarpPerRowCached = warp_per_row_cached,
        BlockPerRow = block_per_row,
        WarpPerRow = warp_per_row,
        Coarsened = coarsened,
        Sliced = sliced,
        SlicedTwoPass = sliced_two_pass,
        Reordered = reordered,
    }
    product {
        Vector = vector,
        InStep = in_step,
        RowGroups = row_groups,
        RowBins = row_bins,
        Spmv = spmv,
    }
}

/// What a kernel can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Whether it computes sums and means for all types of [`Operand`], with any alpha and beta. A plain kernel
    /// computes `Y = A X` in f32.
    pub general: bool,
    /// Whether it takes maxima and minima, too.
    pub extrema: bool,
    /// Whether it gives the same bits in every run: it has no atomic additions.
    pub deterministic: bool,
}

impl Capabilities {
    /// Whether it reduces in that way elements of that type.
    pub fn has<T: Operand>(self, reduction: Reduction) -> bool {
        if reduction.is_extremum() {
            self.extrema
        } else {
            self.general || (reduction == Reduction::Sum && T::NAME == "f32")
        }
    }
}

impl core::fmt::Display for Capabilities {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match (self.general, self.extrema) {
            (true, true) => {
                "sum, mean, max and min in f32, f64, f16 and bf16, with any alpha and beta"
            }
            (true, false) => "sum and mean in f32, f64, f16 and bf16, with any alpha and beta",
            (false, _) => "sums in f32, with alpha 1 and beta 0",
        })?;
        f.write_str(if self.deterministic {
            ", the same bits in every run"
        } else {
            ", added in an order that varies from run to run"
        })
    }
}

/// How a kernel writes the result of a row to Y. If a kernel has no instance for one of these, its instance for
/// [`Scaled`](Self::Scaled) does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpilogueKind {
    /// Stores it; the rows of A are in the order of Y's.
    Plain,
    /// Stores it; the rows of A are in any order.
    AnyOrder,
    /// Adds it to what Y holds; the rows of A are in any order.
    Added,
    /// Does all that a [`Scaling`] says; the rows of A are in any order.
    Scaled,
}

/// The arguments of a plain kernel: A, X, Y, and the items.
#[cfg(not(target_arch = "nvptx64"))]
pub type PlainArguments<T> = (
    warprow_kernels_matrix::Csr<T>,
    warprow_kernels_matrix::Dense<T>,
    warprow_kernels_matrix::DenseMut<T>,
    Items<T>,
);

/// The arguments of a general kernel: A, X, Y, the items, alpha and beta.
#[cfg(not(target_arch = "nvptx64"))]
pub type GeneralArguments<T> = (
    warprow_kernels_matrix::Csr<SumOf<T>>,
    warprow_kernels_matrix::Dense<T>,
    warprow_kernels_matrix::DenseMut<T>,
    Items<SumOf<T>>,
    Scaling<SumOf<T>>,
);

/// A kernel of this family, by its arguments.
#[cfg(not(target_arch = "nvptx64"))]
pub enum Handle<T: Operand> {
    /// A plain kernel: `T` is `T::Sum`.
    Plain(Kernel<PlainArguments<T::Sum>>),
    /// A general one.
    General(Kernel<GeneralArguments<T>>),
}

#[cfg(not(target_arch = "nvptx64"))]
impl<T: Operand> Handle<T> {
    /// The PTX entry point.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Plain(kernel) => kernel.name(),
            Self::General(kernel) => kernel.name(),
        }
    }
}

/// The largest extent of a grid along y.
const MAX_GRID_Y: u32 = 65_535;
