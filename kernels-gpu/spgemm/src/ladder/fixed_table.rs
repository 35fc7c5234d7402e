//! SpGEMM with a hash table of 2048 slots in shared memory for each row. This is the root of the ladder.
//!
//! A block is one warp and computes one row of C, as the [module](crate::ladder) describes. Two launches count the
//! entries of each row and then compute them.
//!
//! A product costs its column (4 bytes), and in the second launch its value. The lanes walk over different rows of B,
//! so the loads are not coalesced. It also costs a compare-and-exchange for each probed slot, and an atomic addition to
//! the value. A row costs 2048 slots, which are cleared and swept.
//!
//! Where it loses:
//!
//! - It refuses a row of more than 2048 entries.
//! - A row of ten entries clears and sweeps 2048 slots, too.
//! - The tables leave room for about a dozen warps (f32) on a multiprocessor that could run 64.
//!
//! Source: a course report on SpGEMM, where 2048 slots are enough for random matrices.

use crate::ladder::{Output, count, fill, note};
use crate::products::operands::{Factors, OperandPatterns};
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// What it does, in one line.
pub const SUMMARY: &str = "one warp a row, hash tables of 2048 slots in shared memory";

/// The rung that it continues.
pub const PARENT: Option<crate::ladder::SpgemmKernel> = None;

/// Slots of a table, and the greatest number of entries of a row.
pub const SLOTS: u32 = 2048;

/// The launch of both kernels: a block of one warp for each row.
pub fn launch(rows: u32) -> LaunchConfig {
    LaunchConfig::new(rows, WARP_SIZE)
}

/// Counts the entries of each row, and finds the greatest count in `longest`. More than [`SLOTS`] are counted as
/// [`SLOTS`]` + 1`.
///
/// # Safety
///
/// The operands are valid CSR matrices, and the columns of A are rows of B. `entries` has an element for each row of A,
/// and `longest` is zero.
#[kernel(name = "spgemm_fixed_count")]
pub unsafe fn fixed_count(
    operands: OperandPatterns,
    entries: GlobalMut<u32>,
    longest: GlobalMut<u32>,
) {
    let table = shared_array!(u32; 2048);
    let row = thread::block_idx_x();
    // SAFETY: the launch has one block for each row of A, and the block has the table for itself.
    unsafe { note(row, count(&operands, row, table, SLOTS), entries, longest) };
}

/// Computes columns and values of each row, unsorted.
///
/// # Safety
///
/// That of [`fixed_count`]. No row has more than [`SLOTS`] entries, and `output` has room for all entries.
#[kernel(name = "spgemm_fixed_fill", T = [f32])]
pub unsafe fn fixed_fill<T: Real>(
    operands: OperandPatterns,
    factors: Factors<T>,
    output: Output<T>,
) {
    let tables = (shared_array!(u32; 2048), shared_array!(T; 2048));
    let row = thread::block_idx_x();
    // SAFETY: the launch has one block for each row of A, and the block has the table for itself.
    unsafe { fill(&operands, &factors, row, tables, SLOTS, &output) };
}
