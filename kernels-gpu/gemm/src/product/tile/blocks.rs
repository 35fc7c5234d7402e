//! How many blocks share the rows of a tile of columns.
//!
//! A *step* is the rows that all warps of a block multiply at once: 192 for 12 warps of 16 rows. A *wave* is the blocks
//! that run at the same time.

/// Maximum number of steps for each block that runs at a time, for the number of blocks to be adjusted. With more there
/// is little to gain, and products of about 32 steps became 6 % slower (docs/notes/gemm.md).
const FEW_STEPS: u32 = 6;

/// Maximum number of waves that are compared. It limits the host's work for more than 16 tiles of columns.
const MOST_WAVES: u64 = 16;

/// How many blocks share `steps` steps of rows in each of `across` tiles of columns, if `at_once` blocks run at a time.
///
/// A wave takes as long as its longest block. Time is lost in two ways: the last wave is not full, or some blocks of a
/// wave have a step more than others. With several tiles of columns and few steps, this compares the numbers of blocks
/// that fill 1, 2, .. waves, and takes the fastest. The start of a block counts as half a step, which is an assumption:
/// the block copies W, and no copy of X is ahead of its use. On a tie it takes fewer blocks. Otherwise a tile of columns
/// has as many blocks as run at a time, or as it has steps.
pub(super) fn of_tile(steps: u32, across: u32, at_once: u32) -> u32 {
    let most = steps.min(at_once).max(1);
    if across <= 1 || steps > at_once.saturating_mul(FEW_STEPS) {
        return most;
    }
    let (steps, across, at_once) = (u64::from(steps), u64::from(across), u64::from(at_once));
    let half_steps = |blocks: u32| {
        let waves = (across * u64::from(blocks)).div_ceil(at_once);
        waves * (2 * steps.div_ceil(blocks.into()) + 1)
    };
    // The cast is exact: no number is above `most`.
    let of_waves = |waves: u64| (waves * at_once / across).clamp(1, most.into()) as u32;
    let numbers = (1..=across.min(MOST_WAVES)).map(of_waves);
    (numbers.min_by_key(|&blocks| (half_steps(blocks), blocks))).unwrap_or(most)
}
