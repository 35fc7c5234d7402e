//! XW, tall and skinny: `Y = X W`, dense and row-major, X with hundreds of thousands of rows (m x k), W small (k x n), k and n
//! up to about a thousand; bias and ReLU on request.
//!
//! With k = 128 and n = 16 an element of X takes part in 16 multiplications and is needed once: a GPU that moves 4.3 TB and
//! computes 67 TFLOP a second could do 125 in the time. So reading X once, and at full speed, is what the ladder is
//! about; then that the rest, shared memory above all, keeps up. The first seven rungs are the steps of a contest report
//! on GCN inference (281,903 nodes, f64, 128 to 16 features).

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

mod element;
mod epilogue;

/// The ladder: what one reads to learn, naive first, one new idea a file.
pub mod ladder {
    pub mod global_sum;
    pub mod outer_product;
    pub mod register_sum;
    pub mod row_in_registers;
    pub mod shared_weights;
    pub(crate) mod slice;
    pub mod tiled_depth;
    pub mod wide_loads;
}

/// What runs by default, most of it on tensor cores.
pub mod product {
    pub mod fragments;
    pub mod sm90_fragments;
    pub mod split_fragments;
    pub mod staged;
    pub(crate) mod tile;
    pub mod warp_fragments;
    pub(crate) mod warp_product;
    pub mod warpgroup_fragments;
    pub mod warpgroup_halves;
    pub mod warpgroup_split;
}

pub use element::{Fragment, GemmElement, RealElement};
pub use epilogue::Epilogue;

use ladder::*;
use product::*;

use cuda_std::prelude::*;

/// The numbers that a launch depends on; `rows` and `cols` are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Rows of X and Y.
    pub rows: u32,
    /// Columns of X, rows of W.
    pub depth: u32,
    /// Columns of W and Y.
    pub cols: u32,
    /// Multiprocessors of the device.
    pub multiprocessors: u32,
    /// Bytes of shared memory that a block may have.
    pub shared_bytes: u32,
}

/// The table of the kernels: one line each, naive first, and the file of the same name. Each file has its `SUMMARY`, its
/// `PARENT`, its `launch`, and the `handle` of its kernel for an element type.
macro_rules! kernels {
    (
        cuda cores { $($variant:ident = $module:ident,)* }
        tensor cores { $($tensor_variant:ident = $tensor_module:ident,)* }
        tensor cores for one type { $($single_variant:ident = $single_module:ident: $single:ident,)* }
    ) => {
        /// A kernel of this family.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum GemmKernel {
            $(
                #[doc = concat!("See [`", stringify!($module), "`].")]
                $variant,
            )*
            $(
                #[doc = concat!("See [`", stringify!($tensor_module), "`].")]
                $tensor_variant,
            )*
            $(
                #[doc = concat!("See [`", stringify!($single_module), "`].")]
                $single_variant,
            )*
        }

        impl GemmKernel {
            /// All kernels, in the order of the ladder.
            pub const ALL: &[Self] = &[
                $(Self::$variant,)*
                $(Self::$tensor_variant,)*
                $(Self::$single_variant,)*
            ];

            /// The name by which a user selects it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($module),)*
                    $(Self::$tensor_variant => stringify!($tensor_module),)*
                    $(Self::$single_variant => stringify!($single_module),)*
                }
            }

            /// What it does, in one line.
            pub const fn summary(self) -> &'static str {
                match self {
                    $(Self::$variant => $module::SUMMARY,)*
                    $(Self::$tensor_variant => $tensor_module::SUMMARY,)*
                    $(Self::$single_variant => $single_module::SUMMARY,)*
                }
            }

            /// The rung that it continues; none for the root. The ladder is a tree.
            pub const fn parent(self) -> Option<Self> {
                match self {
                    $(Self::$variant => $module::PARENT,)*
                    $(Self::$tensor_variant => $tensor_module::PARENT,)*
                    $(Self::$single_variant => $single_module::PARENT,)*
                }
            }

            /// The launch for a product of that shape.
            pub fn launch<T: GemmElement>(self, shape: Shape) -> LaunchConfig {
                match self {
                    $(Self::$variant => $module::launch::<T>(shape),)*
                    $(Self::$tensor_variant => $tensor_module::launch::<T>(shape),)*
                    $(Self::$single_variant => $single_module::launch(shape),)*
                }
            }

            /// Whether it multiplies f32 as tf32, of which 11 bits are left.
            pub const fn rounds_f32(self) -> bool {
                matches!(self, $(Self::$tensor_variant)|*)
            }

            /// Whether it has an instance for elements of type `T`.
            pub fn supports<T: GemmElement>(self) -> bool {
                match self {
                    $(Self::$variant)|* => size_of::<T>() > 2,
                    $(Self::$tensor_variant)|* => true,
                    $(Self::$single_variant => size_of::<T>() == size_of::<$single>(),)*
                }
            }
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl GemmKernel {
            /// The handle of a kernel for a type whose sums are of that type too; `None` for those of one type alone.
            fn handle_of_real<T: RealElement + Fragment>(
                self,
                shape: Shape,
            ) -> Option<Kernel<Arguments<T>>> {
                match self {
                    $(Self::$variant => Some($module::handle::<T>(shape)),)*
                    $(Self::$tensor_variant => Some($tensor_module::handle::<T>(shape)),)*
                    $(Self::$single_variant)|* => None,
                }
            }
        }
    };
}

kernels! {
    cuda cores {
        GlobalSum = global_sum,
        RegisterSum = register_sum,
        SharedWeights = shared_weights,
        RowInRegisters = row_in_registers,
        OuterProduct = outer_product,
        TiledDepth = tiled_depth,
        WideLoads = wide_loads,
        Staged = staged,
    }
    tensor cores {
        Fragments = fragments,
        WarpFragments = warp_fragments,
    }
    tensor cores for one type {
        SplitFragments = split_fragments: f32,
        Sm90Fragments = sm90_fragments: f64,
        WarpgroupFragments = warpgroup_fragments: f16,
        WarpgroupSplit = warpgroup_split: f32,
        WarpgroupHalves = warpgroup_halves: f32,
    }
}

impl GemmKernel {
    /// The compute capability, major and minor, that it wants at least.
    pub const fn least_compute_capability(self) -> (u32, u32) {
        match self {
            Self::Sm90Fragments => (9, 0),
            _ if self.is_of_sm_90a() => (9, 0),
            _ => (8, 0),
        }
    }

    /// Whether its instructions are those of sm_90a, which are of that architecture alone.
    const fn is_of_sm_90a(self) -> bool {
        matches!(
            self,
            Self::WarpgroupFragments | Self::WarpgroupSplit | Self::WarpgroupHalves
        )
    }

    /// Whether a device of that compute capability, major and minor, has its instructions.
    pub fn runs_on(self, capability: (u32, u32)) -> bool {
        let least = self.least_compute_capability();
        if self.is_of_sm_90a() {
            capability == least
        } else {
            capability >= least
        }
    }
}

/// The arguments of every kernel of this family: X, W, Y, and what is done to a sum.
#[cfg(not(target_arch = "nvptx64"))]
pub type Arguments<T> = (
    warprow_kernels_matrix::Dense<T>,
    warprow_kernels_matrix::Dense<T>,
    warprow_kernels_matrix::DenseMut<T>,
    Epilogue<T>,
);

/// The largest extent of a grid along y.
const MAX_GRID_Y: u32 = 65_535;

/// Threads in a block of the rungs up to `wide_loads`, a row each.
const BLOCK: u32 = 128;

/// The launch of those rungs: rows along x, tiles of columns along y.
fn thread_per_row(shape: Shape, tile: u32) -> LaunchConfig {
    let tiles = shape.cols.div_ceil(tile).min(MAX_GRID_Y);
    LaunchConfig::new((shape.rows.div_ceil(BLOCK), tiles), BLOCK)
}
