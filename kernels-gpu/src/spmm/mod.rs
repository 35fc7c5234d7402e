//! SpMM, sparse times dense: `Y = A X`, A in CSR (m x k), X and Y dense and row-major (k x n, m x n).
//!
//! n is the number of *features*: in a graph network a row of X is what is known of a node, and row i of Y the sum over
//! the neighbours of node i. A nonzero costs its 4-byte column, its value, and n elements of X, read wherever the column
//! points; it does 2n floating-point operations. So the memory decides, and the ladder is about reading X well.

pub mod gather_limit;
mod items;
pub mod slices;
pub mod tasks;

pub use items::{ItemKind, Items, Shape};

use cuda_std::prelude::*;

/// The table of the kernels: one line each, naive first, and the file of the same name. Each file has its `SUMMARY`, the
/// `ITEMS` that it wants, its `launch`, and the `handle` of its kernel for an element type.
macro_rules! kernels {
    ($($variant:ident = $module:ident,)*) => {
        $(pub mod $module;)*

        /// A kernel of this family.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum SpmmKernel {
            $(
                #[doc = concat!("See [`", stringify!($module), "`].")]
                $variant,
            )*
        }

        impl SpmmKernel {
            /// All kernels, in the order of the ladder.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name by which a user selects it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($module),)*
                }
            }

            /// What it does, in one line.
            pub const fn summary(self) -> &'static str {
                match self {
                    $(Self::$variant => $module::SUMMARY,)*
                }
            }

            /// What its units of work are.
            pub const fn items(self) -> ItemKind {
                match self {
                    $(Self::$variant => $module::ITEMS,)*
                }
            }

            /// The launch for a product of that shape.
            pub fn launch<T: Real>(self, shape: Shape) -> LaunchConfig {
                match self {
                    $(Self::$variant => $module::launch::<T>(shape),)*
                }
            }

            /// The handle of the kernel for the element type `T` and a product of that shape.
            #[cfg(not(target_arch = "nvptx64"))]
            pub fn handle<T: Real>(self, shape: Shape) -> Kernel<Arguments<T>> {
                match self {
                    $(Self::$variant => $module::handle::<T>(shape),)*
                }
            }
        }
    };
}

kernels! {
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
    Vector = vector,
}

/// The arguments of every kernel of this family: A, X, Y, and the items.
#[cfg(not(target_arch = "nvptx64"))]
pub type Arguments<T> = (
    crate::matrix::Csr<T>,
    crate::matrix::Dense<T>,
    crate::matrix::DenseMut<T>,
    Items<T>,
);

/// The largest extent of a grid along y.
const MAX_GRID_Y: u32 = 65_535;

/// The PTX entry points of the family.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn entry_points() -> Vec<&'static str> {
    let shape = Shape {
        rows: 1,
        items: 1,
        cols: 1,
        features: 1,
        cache_bytes: 0,
    };
    let products = SpmmKernel::ALL
        .iter()
        .flat_map(|kernel| kernel.handle::<f32>(shape).entry_points());
    let mut names: Vec<_> = products
        .chain(slices::entry_points())
        .chain(tasks::entry_points())
        .chain(gather_limit::entry_points())
        .copied()
        .collect();
    // `reordered` runs the kernel of another rung.
    names.sort_unstable();
    names.dedup();
    names
}
