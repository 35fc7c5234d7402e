//! How many blocks share the rows of a tile of columns.

/// Maximum number of steps of a block that are few. With more, steps that only some blocks have do not matter.
const FEW_STEPS: u32 = 6;

/// Maximum number of waves of blocks that a launch with few steps may have.
const MOST_WAVES: u64 = 16;

/// How many blocks share `steps` steps of rows in each of `across` tiles of columns, if `at_once` blocks run at a time.
///
/// Blocks run in waves, and each block of a wave takes its steps one after the other. So places of a wave that stay
/// empty are lost, and steps that only some blocks have. If there are few steps, the number of blocks is the one that
/// loses least. The start of a block counts as half a step: it copies W, and no copy of X is ahead of its use. On a tie,
/// fewer blocks start less often.
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
