//! XW: `Y = X W`, a tall dense matrix times a small one, then bias and ReLU if asked for.
//!
//! All matrices are row-major. X is m x k with hundreds of thousands of rows; W is k x n, with k and n up to about a
//! thousand.
//!
//! With k = 128 and n = 16, an element of X is read once and used in 16 multiplications. An H200 moves 4.3 TB/s and
//! computes 67 TFLOP/s, so it could do 125 multiplications in the time of that read. The kernels must therefore read X
//! once and at full bandwidth. Then shared memory and the instruction rate must not become the limit.
//!
//! The first seven rungs are those of a report on inference with graph networks (281,903 nodes, f64, 128 to 16
//! features), whose time fell from 177 ms to 1.14 ms.

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

mod bias_relu;
mod element;
mod rung;

pub use bias_relu::BiasRelu;
pub use element::{RealElement, TensorCoreElement};
#[cfg(not(target_arch = "nvptx64"))]
pub use rung::{GemmArguments, Multiplies, PlannedLaunch};
pub use rung::{RequiredArch, RowStride, Rung, Strides};

use cuda_std::prelude::*;
#[cfg(not(target_arch = "nvptx64"))]
use warprow_kernels_matrix::Operand;

/// The sizes of a product, the limits of its device, and an instance that is asked for: all that the launch depends
/// on. `rows` and `cols` are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GemmProblem {
    /// Rows of X and Y.
    pub rows: u32,
    /// Columns of X, rows of W.
    pub depth: u32,
    /// Columns of W and Y.
    pub cols: u32,
    /// Multiprocessors of the device.
    pub multiprocessors: u32,
    /// Maximum number of bytes of shared memory in a block.
    pub shared_bytes: u32,
    /// The instance to run if it can compute the product, by its PTX entry point; default: the kernel chooses.
    pub instance: Option<&'static str>,
}

/// The table of the kernels. Each line has a variant of [`GemmKernel`], the file that has a type of the same name, and
/// the element types.
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
        #[non_exhaustive]
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

            /// The folder of its file: `ladder`, or `product` if plans choose it.
            pub const fn folder(self) -> &'static str {
                match self {
                    $($(Self::$variant => stringify!($room),)*)*
                }
            }

            /// What the kernel does, in one line.
            pub const fn summary(self) -> &'static str {
                match self {
                    $($(Self::$variant => <$room::$module::$variant as Rung>::SUMMARY,)*)*
                }
            }

            /// The rung that it improves; none for the root. The ladder is a tree.
            pub const fn parent(self) -> Option<Self> {
                match self {
                    $($(Self::$variant => <$room::$module::$variant as Rung>::PARENT,)*)*
                }
            }

            /// The GPUs that have its instructions.
            pub const fn required_arch(self) -> RequiredArch {
                match self {
                    $($(Self::$variant => <$room::$module::$variant as Rung>::REQUIRED_ARCH,)*)*
                }
            }

            /// Which leading dimensions of X and Y it takes.
            pub const fn strides(self) -> Strides {
                match self {
                    $($(Self::$variant => <$room::$module::$variant as Rung>::STRIDES,)*)*
                }
            }

            /// Whether it rounds f32 to tf32, whose significand has 11 bits.
            pub const fn rounds_f32(self) -> bool {
                match self {
                    $($(Self::$variant => <$room::$module::$variant as Rung>::ROUNDS_F32,)*)*
                }
            }
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl GemmKernel {
            /// Why the kernel does not multiply an X of type `T` with `depth` columns; `None` if it does.
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

            /// The instance and the launch for a product; `None` if the kernel has no instance for type `T`.
            pub fn plan<T: Operand>(self, problem: GemmProblem) -> Option<PlannedLaunch<T>> {
                match self {
                    $($(Self::$variant => None$(
                        .or_else(|| rung::plan::<T, $element, $room::$module::$variant>(problem))
                    )*,)*)*
                }
            }

            /// W in the order in which the kernel reads it. It does not depend on the number of rows of X.
            pub fn pack<T: Operand>(self, w: Vec<T>, problem: GemmProblem) -> Vec<T> {
                let packed = match self {
                    $($(Self::$variant => Err(w)$(
                        .or_else(|w| rung::pack::<T, $element, $room::$module::$variant>(w, problem))
                    )*,)*)*
                };
                packed.unwrap_or_else(|w| w)
            }
        }
    };
}

kernels! {
    /// The ladder: kernels to read in order, from naive to fast, one new idea in each file.
    mod ladder with slice {
        GlobalSum = global_sum: f32;
        RegisterSum = register_sum: f32;
        SharedWeights = shared_weights: f32;
        RowInRegisters = row_in_registers: f32;
        OuterProduct = outer_product: f32;
        TiledDepth = tiled_depth: f32;
        WideLoads = wide_loads: f32;
    }
    /// The kernels that run by default, most of them on tensor cores.
    mod product with packed_weights tile warp_product whole_rows {
        Staged = staged: f32;
        Shallow = shallow: f32 f64 f16 bf16;
        InnerProducts = inner_products: f32 f64 f16 bf16;
        Fragments = fragments: f16 bf16;
        FlatFragments = flat_fragments: f16 bf16;
        WarpFragments = warp_fragments: f32 f64 f16 bf16;
        SplitFragments = split_fragments: f32;
        Sm90Fragments = sm90_fragments: f64;
        WarpgroupFragments = warpgroup_fragments: f16 bf16;
        WarpgroupSplit = warpgroup_split: f32;
        WarpgroupHalves = warpgroup_halves: f32;
    }
}

/// Maximum extent of a grid along y.
#[cfg(not(target_arch = "nvptx64"))]
const MAX_GRID_Y: u32 = 65_535;

/// Threads in a block of the ladder; each computes one row.
const BLOCK: u32 = 128;

/// The launch of a ladder kernel: rows along x, tiles of `tile` columns along y.
#[cfg(not(target_arch = "nvptx64"))]
fn thread_per_row(problem: GemmProblem, tile: u32) -> LaunchConfig {
    let tiles = problem.cols.div_ceil(tile).min(MAX_GRID_Y);
    LaunchConfig::new((problem.rows.div_ceil(BLOCK), tiles), BLOCK)
}
