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

/// A round makes no more attempts than keys are wanted, or than this many.
const LEAST_ROUND: usize = 1 << 20;

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
    let (mut draws, mut streams) = (0u64, 0u64);
    // The first round finds most keys; the few of the later ones are kept apart, so that a round sorts no more than
    // those.
    let mut first: Vec<u64> = Vec::new();
    let mut later: Vec<u64> = Vec::new();
    let mut attempts = wanted_keys;
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
        let chunks = attempts.div_ceil(DRAWS);
        let mut drawn: Vec<(u64, usize)> = (0..chunks)
            .into_par_iter()
            .flat_map_iter(|chunk| {
                let mut random = stream(seed, streams + chunk as u64);
                let draw = &draw;
                (chunk * DRAWS..attempts.min((chunk + 1) * DRAWS))
                    .filter_map(move |attempt| Some((draw(&mut random)?, attempt)))
            })
            .collect();
        draws += attempts as u64;
        streams += chunks as u64;
        drawn.par_sort_unstable();
        drawn.dedup_by_key(|&mut (key, _)| key);
        // Sorted keys are looked up several times as fast as keys in the order drawn.
        let is_new =
            |key: &u64| first.binary_search(key).is_err() && later.binary_search(key).is_err();
        drawn = drawn
            .into_par_iter()
            .filter(|(key, _)| is_new(key))
            .collect();
        if drawn.len() > missing {
            // The keys that were drawn first stay, as if drawing had stopped with the last one that was missing:
            // dropping the greatest would make the last rows empty.
            drawn.select_nth_unstable_by_key(missing, |&(_, attempt)| attempt);
            drawn.truncate(missing);
        }
        let round = if first.is_empty() {
            &mut first
        } else {
            &mut later
        };
        round.extend(drawn.iter().map(|&(key, _)| key));
        round.par_sort_unstable();
        // The next round finds fewer than this one in so many attempts: an eighth more are made.
        let missing = missing - drawn.len();
        let enough = missing.saturating_mul(attempts) / drawn.len().max(1);
        attempts = (enough + enough / 8 + 1).min(wanted_keys.max(LEAST_ROUND));
    }
}

/// One of the independent random streams of a seed.
pub(super) fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(number);
    random
}
