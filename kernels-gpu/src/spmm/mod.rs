//! SpMM, sparse times dense: `Y = A X`, A in CSR (m x k), X and Y dense and row-major (k x n, m x n).
//!
//! n is the number of *features*: in a graph network a row of X is what is known of a node, and row i of Y the sum over
//! the neighbours of node i. A nonzero costs its 4-byte column, its value, and n elements of X, read wherever the column
//! points; it does 2n floating-point operations. So the memory decides, and the ladder is about reading X well.

use cuda_std::prelude::*;

/// The table of the kernels: one line each, naive first, and the file of the same name.
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

            /// The launch for `rows` rows of A and `features` columns of X, both at least 1.
            pub fn launch(self, rows: u32, features: u32) -> LaunchConfig {
                match self {
                    $(Self::$variant => $module::launch(rows, features),)*
                }
            }

            /// The handle of the kernel for the element type `T`.
            #[cfg(not(target_arch = "nvptx64"))]
            pub fn handle<T: Real>(self) -> Kernel<Arguments<T>> {
                match self {
                    $(Self::$variant => $module::$module::<T>(),)*
                }
            }
        }
    };
}

kernels! {
    ThreadPerRow = thread_per_row,
    WarpPerRow = warp_per_row,
}

/// The arguments of every kernel of this family: A, X, Y.
#[cfg(not(target_arch = "nvptx64"))]
pub type Arguments<T> = (
    crate::matrix::Csr<T>,
    crate::matrix::Dense<T>,
    crate::matrix::DenseMut<T>,
);

/// The PTX entry points of the family.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn entry_points() -> Vec<&'static str> {
    SpmmKernel::ALL
        .iter()
        .flat_map(|kernel| kernel.handle::<f32>().entry_points())
        .copied()
        .collect()
}
