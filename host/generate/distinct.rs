//! Random nonzeros, no two the same.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::GenerateError;

/// Draws from one random stream: enough for a task, few enough for many tasks.
const DRAWS: usize = 1 << 16;

/// Draws for each nonzero wanted before it is given up, and draws that are always tried.
const PATIENCE: u64 = 256;
const LEAST_DRAWS: u64 = 1 << 22;

/// An entry's row and column in one number that sorts by row, then by column.
pub(super) fn key(row: u32, column: u32) -> u64 {
    u64::from(row) << 32 | u64::from(column)
}

/// The row and column of a key.
pub(super) fn split(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}

/// Draws until `wanted` different keys are found, and returns them sorted; a draw may miss and give `None`.
pub(super) fn draw_distinct(
    wanted: u32,
    seed: u64,
    draw: impl Fn(&mut ChaCha8Rng) -> Option<u64> + Sync,
) -> Result<Vec<u64>, GenerateError> {
    let wanted_keys = wanted as usize;
    let most_draws = u64::from(wanted) * PATIENCE + LEAST_DRAWS;
    let mut draws = 0u64;
    let mut streams = 0u64;
    // A round draws as many keys as are missing. The first round finds most of them; the few of the later ones are kept
    // apart, so that a round sorts and merges no more than those.
    let mut first: Vec<u64> = Vec::new();
    let mut later: Vec<u64> = Vec::new();
    loop {
        let missing = wanted_keys - first.len() - later.len();
        if missing == 0 {
            first.append(&mut later);
            first.par_sort_unstable();
            return Ok(first);
        }
        if draws > most_draws {
            return Err(GenerateError::TooSkewed {
                wanted,
                found: wanted - missing as u32,
                draws,
            });
        }
        let chunks = missing.div_ceil(DRAWS);
        let mut keys: Vec<u64> = (0..chunks)
            .into_par_iter()
            .flat_map_iter(|chunk| {
                let mut random = stream(seed, streams + chunk as u64);
                let draw = &draw;
                (0..DRAWS.min(missing - chunk * DRAWS)).filter_map(move |_| draw(&mut random))
            })
            .filter(|key| first.binary_search(key).is_err())
            .collect();
        draws += missing as u64;
        streams += chunks as u64;
        let round = if first.is_empty() {
            &mut first
        } else {
            &mut later
        };
        round.append(&mut keys);
        round.par_sort_unstable();
        round.dedup();
    }
}

/// One of the independent random streams of a seed.
pub(super) fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(number);
    random
}
