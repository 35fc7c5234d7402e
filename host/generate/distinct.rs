//! Draws distinct random nonzeros.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::slice::ParallelSliceMut;

use super::GenerateError;

/// Draws from one random stream, the size of a parallel task.
const DRAWS: usize = 1 << 16;

/// Maximum number of draws for each wanted nonzero, and draws that are allowed on top.
const DRAWS_PER_NONZERO: u64 = 256;
const EXTRA_DRAWS: u64 = 1 << 22;

/// A round makes at most as many draws as keys are wanted, or this many if that is more.
const ROUND_DRAWS: usize = 1 << 20;

/// The row and column of an entry in one number. Keys sort by row, then by column.
pub(super) fn key(row: u32, column: u32) -> u64 {
    u64::from(row) << 32 | u64::from(column)
}

/// The row and column of a key.
pub(super) fn split(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}

/// Draws `wanted` distinct keys and returns them sorted. `draw` returns `None` for an entry outside of the matrix.
pub(super) fn draw_distinct(
    wanted: u32,
    seed: u64,
    draw: impl Fn(&mut ChaCha8Rng) -> Option<u64> + Sync,
) -> Result<Vec<u64>, GenerateError> {
    let wanted_keys = wanted as usize;
    let most_draws = u64::from(wanted) * DRAWS_PER_NONZERO + EXTRA_DRAWS;
    let (mut draws, mut streams) = (0u64, 0u64);
    // The first round finds most keys. Those of later rounds have a vector of their own, so that a round sorts few.
    let mut first: Vec<u64> = Vec::new();
    let mut later: Vec<u64> = Vec::new();
    let mut attempts = wanted_keys;
    loop {
        let missing = wanted_keys - first.len() - later.len();
        if missing == 0 {
            first.append(&mut later);
            parallel::sort_u64(&mut first);
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
        let mut drawn: Vec<(u64, usize)> = parallel::flat_map(chunks, |chunk, drawn| {
            let mut random = stream(seed, streams + chunk as u64);
            let attempts = chunk * DRAWS..attempts.min((chunk + 1) * DRAWS);
            drawn.extend(attempts.filter_map(|attempt| Some((draw(&mut random)?, attempt))));
        });
        draws += attempts as u64;
        streams += chunks as u64;
        sort_draws(&mut drawn);
        drawn.dedup_by_key(|&mut (key, _)| key);
        // Looking up sorted keys is several times as fast as looking up keys in the order of the draws.
        let is_new =
            |key: &u64| first.binary_search(key).is_err() && later.binary_search(key).is_err();
        drawn = parallel::flat_map(drawn.len(), |place, new| {
            if is_new(&drawn[place].0) {
                new.push(drawn[place]);
            }
        });
        if drawn.len() > missing {
            // The keys that were drawn first stay, as if drawing had stopped at the last missing key. To drop the
            // greatest keys instead would leave the last rows empty.
            drawn.select_nth_unstable_by_key(missing, |&(_, attempt)| attempt);
            drawn.truncate(missing);
        }
        let round = if first.is_empty() {
            &mut first
        } else {
            &mut later
        };
        round.extend(drawn.iter().map(|&(key, _)| key));
        parallel::sort_u64(round);
        // Later rounds find fewer keys for each draw, so the next one makes an eighth more draws.
        let missing = missing - drawn.len();
        let enough = missing.saturating_mul(attempts) / drawn.len().max(1);
        attempts = (enough + enough / 8 + 1).min(wanted_keys.max(ROUND_DRAWS));
    }
}

/// Sorts keys with the numbers of their draws. Not generic, so that rayon's code is compiled once.
fn sort_draws(drawn: &mut [(u64, usize)]) {
    drawn.par_sort_unstable();
}

/// The independent random stream `number` of a seed.
pub(super) fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(number);
    random
}
