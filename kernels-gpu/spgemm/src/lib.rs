//! SpGEMM, sparse times sparse: `C = A B` in CSR, row by row (Gustavson, ACM TOMS 4(3), 1978).
//!
//! Row i of C sums up rows of B, one per nonzero of row i of A, scaled by it. A *product* is one
//! multiplication, 2 flops; products of one column make one *entry*. The *symbolic* phase finds the
//! columns of each row, the *numeric* phase their values.
//!
//! ```text
//! A, B -> analysis: products of each row -> symbolic: columns -> analysis: row pointers of C
//!         and symbolic bins                                      and numeric bins
//!                                                                         |
//!         later runs <- reuse: product map <- numeric: values  <----------+
//! ```
//!
//! | room | what is in it |
//! |---|---|
//! | [`ladder`](mod@ladder) | begin here: hash tables, a warp per row, one idea per rung |
//! | [`products`] | the ground, and [`bins`](products::bins): which kernel takes which row. Read it next |
//! | [`analysis`] | the work of each row, its bin, the list of each bin's rows |
//! | [`symbolic`], [`numeric`] | a kernel per bin, with [`hash_rows`](symbolic::hash_rows) the simplest |
//! | [`reuse`] | maps of the products, for later runs of the numeric phase |

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

pub mod analysis;
pub mod ladder;
pub mod numeric;
pub mod products;
pub mod reuse;
pub mod symbolic;

pub use analysis::bin_limits::BinLimits;
pub use products::operands::{CsrPattern, Factors, OperandPatterns, OutputPattern, RowList};

/// What a plan runs by default, in one line. It is the rung after the [ladder](mod@ladder).
pub const SUMMARY: &str =
    "rows sorted, hashed or marked in bitmaps by their work; values added at known places";

/// The rung that it continues.
pub const PARENT: Option<ladder::SpgemmKernel> = Some(ladder::SpgemmKernel::SplitTable);
