//! SpGEMM, sparse times sparse: `C = A B`, all in CSR (m x k, k x n, m x n).
//!
//! Row i of C is the sum of the rows of B that the nonzeros of row i of A name, each multiplied by the nonzero's value. A
//! *product* is one such multiplication, 2 floating-point operations; products of the same column make one *entry*. How many
//! entries there are is known only after the structure has been computed, hence the two phases: *symbolic*, the columns of each
//! row, and *numeric*, the values.
//!
//! The ladder starts in [`ladder`](mod@ladder), with hash tables; its last rung is all the rest:
//!
//! | file | what is in it |
//! |---|---|
//! | [`bins`] | which kernel takes a row, by the work that it brings |
//! | [`work`], [`entry_work`](mod@entry_work), [`place`](mod@place) | that work, and the lists of each bin's rows |
//! | [`walk`], [`even_walk`], [`lanes`], [`window`] | the products of a row, dealt out to lanes |
//! | [`sort_rows`], [`lane_products`](mod@lane_products), `network` | short rows, in both phases or in one for both |
//! | [`hash_rows`], [`bitmap_rows`], [`run_rows`] | symbolic: middling and long rows, and runs of columns |
//! | [`interval_rows`](mod@interval_rows), [`window_rows`] | numeric: narrow rows, of runs of columns and of any |
//! | [`neighbour_rows`](mod@neighbour_rows), `interval_sums` | numeric: narrow rows of runs, several together |
//! | [`group_rows`], [`chunks`] | numeric: middling and long rows |
//! | [`places`], [`cut_pieces`](mod@cut_pieces), [`place_products`] | of long rows, where products come from and go, for runs to come |
//! | [`placed_chunks`](mod@placed_chunks) | numeric: long rows by that |
//! | [`spread_rows`], [`ordered`](mod@ordered) | numeric: long rows of many short rows of B, and sums in a fixed order |
//! | [`copy`](mod@copy) | rows of one nonzero of A, and all rows from where they were put aside |
//! | [`drop_zeros`] | entries that are zero, left out |

#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]

pub mod analysis;
pub mod ladder;
pub mod numeric;
pub mod products;
pub mod reuse;
pub mod symbolic;

pub use analysis::borders::Borders;
pub use products::operands::{Factors, Items, Operands, Pattern, Structure};
pub use reuse::places::Places;

/// What a plan runs by default, in one line. It is the rung after the [ladder](mod@ladder).
pub const SUMMARY: &str =
    "rows sorted, hashed or marked in bitmaps by their work; values added at known places";

/// The rung that it continues.
pub const PARENT: Option<ladder::SpgemmKernel> = Some(ladder::SpgemmKernel::SplitTable);
