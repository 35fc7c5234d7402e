//! XW, tall and skinny: `Y = X W`, dense and row-major, X with hundreds of thousands of rows (m x k), W small (k x n), k and n
//! up to about a thousand; bias and ReLU on request.
//!
//! With k = 128 and n = 16 an element of X is read once and takes part in 16 multiplications. An H200 moves 4.3 TB/s and
//! computes 67 TFLOP/s, so it could do 125 multiplications in the time of that read. The ladder is therefore about reading X
//! once and at full speed, and then about keeping shared memory and instructions from becoming the limit.
//!
//! The first seven rungs are those of a report on inference with graph networks (281,903 nodes, f64, 128 to 16 features), which
//! went from 177 ms to 1.14 ms.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

mod element;
mod epilogue;
mod rung;

pub use element::{Fragment, RealElement};
pub use epilogue::Epilogue;
#[cfg(not(target_arch = "nvptx64"))]
pub use rung::{Arguments, Multiplies, Plan};
pub use rung::{Rung, Target};

use cuda_std::prelude::*;
#[cfg(not(target_arch = "nvptx64"))]
use warprow_kernels_matrix::Operand;

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

/// The table of the kernels: for each a variant of [`GemmKernel`], the file with a type of the same name, and the element types.
macro_rules! kernels {
    ($(
        $(#[$doc:meta])*
        mod $room:ident with $($shared:ident)* {
            $($variant:ident = $module:ident: $($element:ident)*;)*
        }
    )*) => {
        $(
            $(#[$doc])*
            pub mod $room {
                $(pub(crate) mod $shared;)*
                $(pub mod $module;)*
            }
        )*

        /// A kernel of this family.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum GemmKernel {
            $($(
                #[doc = concat!("See [`", stringify!($module), "`]($room::$module).")]
                $variant,
            )*)*
        }

        impl GemmKernel {
            /// All kernels, in the order of the ladder.
            pub const ALL: &[Self] = &[$($(Self::$variant),*),*];

            /// The name by which a user selects it.
            pub const fn name(self) -> &'static str {
                match self {
                    $($(Self::$variant => stringify!($module),)*)*
                }
            }

            /// What it does, in one line.
            pub const fn summary(self) -> &'static str {
                match self {
                    $($(Self::$variant => <$room::$module::$variant as Rung>::SUMMARY,)*)*
                }
            }

            /// The rung that it continues; none for the root. The ladder is a tree.
            pub const fn parent(self) -> Option<Self> {
                match self {
                    $($(Self::$variant => <$room::$module::$variant as Rung>::PARENT,)*)*
                }
            }

            /// The GPUs that have its instructions.
            pub const fn target(self) -> Target {
                match self {
                    $($(Self::$variant => <$room::$module::$variant as Rung>::TARGET,)*)*
                }
            }

            /// Whether it multiplies f32 as tf32, of which 11 bits are left.
            pub const fn rounds_f32(self) -> bool {
                match self {
                    $($(Self::$variant => <$room::$module::$variant as Rung>::ROUNDS_F32,)*)*
                }
            }
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl GemmKernel {
            /// Why it does not multiply matrices of type `T` with so many columns of X, if it does not.
            pub fn refusal<T: Operand>(self, depth: u32) -> Option<String> {
                match self {
                    $($(Self::$variant => {
                        let types = [$(<$element as Element>::NAME),*];
                        if !types.contains(&T::NAME) {
                            return Some(format!("it has no instance for {}", T::NAME));
                        }
                        let refusal = <$room::$module::$variant as Rung>::refusal(depth, size_of::<T>());
                        refusal.map(str::to_owned)
                    })*)*
                }
            }

            /// The instance and the launch for a product of that shape; `None` if it has no instance for type `T`.
            pub fn plan<T: Operand>(self, shape: Shape) -> Option<Plan<T>> {
                match self {
                    $($(Self::$variant => None$(
                        .or_else(|| rung::plan::<T, $element, $room::$module::$variant>(shape))
                    )*,)*)*
                }
            }

            /// W in the order in which the kernel reads it; the number of rows of X and Y makes no difference.
            pub fn pack<T: Operand>(self, w: Vec<T>, shape: Shape) -> Vec<T> {
                let packed = match self {
                    $($(Self::$variant => Err(w)$(
                        .or_else(|w| rung::pack::<T, $element, $room::$module::$variant>(w, shape))
                    )*,)*)*
                };
                packed.unwrap_or_else(|w| w)
            }
        }
    };
}

kernels! {
    /// The ladder: what one reads to learn, naive first, one new idea a file.
    mod ladder with slice {
        GlobalSum = global_sum: f32;
        RegisterSum = register_sum: f32;
        SharedWeights = shared_weights: f32;
        RowInRegisters = row_in_registers: f32;
        OuterProduct = outer_product: f32;
        TiledDepth = tiled_depth: f32;
        WideLoads = wide_loads: f32;
    }
    /// What runs by default, most of it on tensor cores.
    mod product with tile warp_product {
        Staged = staged: f32;
        Fragments = fragments: f16 bf16;
        WarpFragments = warp_fragments: f32 f64 f16 bf16;
        SplitFragments = split_fragments: f32;
        Sm90Fragments = sm90_fragments: f64;
        WarpgroupFragments = warpgroup_fragments: f16 bf16;
        WarpgroupSplit = warpgroup_split: f32;
        WarpgroupHalves = warpgroup_halves: f32;
    }
}

/// The largest extent of a grid along y.
#[cfg(not(target_arch = "nvptx64"))]
const MAX_GRID_Y: u32 = 65_535;

/// Threads in a block of the ladder, a row each.
const BLOCK: u32 = 128;

/// The launch of the ladder: rows along x, tiles of columns along y.
#[cfg(not(target_arch = "nvptx64"))]
fn thread_per_row(shape: Shape, tile: u32) -> LaunchConfig {
    let tiles = shape.cols.div_ceil(tile).min(MAX_GRID_Y);
    LaunchConfig::new((shape.rows.div_ceil(BLOCK), tiles), BLOCK)
}
