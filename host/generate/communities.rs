//! Generates graphs with planted communities: most nonzeros connect vertices of the same community.

use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicU32, Ordering};

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use sprs::CsMatI;

use super::distinct::stream;
use super::values::sparse_values;
use super::{GenerateError, check_size};
use crate::scalar::Scalar;

/// The first random streams of this module; nonzeros and values of other modules use lower ones.
const SIZE_STREAM: u64 = 3 << 62;
const LABEL_STREAM: u64 = SIZE_STREAM + 1;
const INSIDE_STREAMS: u64 = SIZE_STREAM + (1 << 40);
const OUTSIDE_STREAMS: u64 = SIZE_STREAM + (2 << 40);
const ROW_STREAMS: u64 = SIZE_STREAM + (3 << 40);

/// The number of nonzeros whose rows are drawn from one random stream.
const DRAWS: usize = 1 << 16;

/// The number of rows whose columns one parallel task draws.
const ROWS: usize = 1 << 10;

/// Maximum number of draws for each wanted nonzero.
const DRAWS_PER_NONZERO: u64 = 256;

/// The communities of a graph; see [`communities`].
#[derive(Debug, Clone, PartialEq)]
#[allow(
    clippy::exhaustive_structs,
    reason = "a graph with communities is defined by these"
)]
pub struct Communities {
    /// Minimum and maximum number of vertices in a community. The sizes s between them have the density s^-2, as in
    /// many networks: there are few large communities, and those of sizes s to 2 s have equally many vertices for all
    /// s.
    pub sizes: RangeInclusive<u32>,
    /// The fraction of the nonzeros inside communities, from 0 to 1. It is rounded to whole nonzeros.
    pub inside: f64,
    /// Whether vertices are numbered at random. If not, the vertices of a community have consecutive numbers.
    pub shuffled: bool,
}

/// A graph with planted communities: a `rows` x `rows` matrix with exactly `nonzeros` distinct nonzeros, values
/// uniform in [-1, 1).
///
/// The vertices are divided into communities of random sizes; the last may be smaller. A nonzero is inside a community
/// if row and column belong to it. All rows have the same expected length, and a row's columns are a random set inside
/// and a random set outside of its community. With the same seed, a shuffled graph is the unshuffled one with other
/// vertex numbers and other values.
///
/// # Errors
///
/// - There are `u32::MAX` rows, or more nonzeros than entries.
/// - `sizes` is empty or starts at 0, or `inside` is not from 0 to 1.
/// - There are more nonzeros inside or outside of communities than entries.
/// - 256 draws for each nonzero do not suffice.
pub fn communities<T: Scalar>(
    rows: u32,
    nonzeros: u32,
    communities: &Communities,
    seed: u64,
) -> Result<CsMatI<T, u32, u32>, GenerateError> {
    check_size(rows, rows, nonzeros.into())?;
    let sizes = &communities.sizes;
    let is_valid = *sizes.start() > 0 && sizes.start() <= sizes.end();
    if !is_valid || !(0.0..=1.0).contains(&communities.inside) {
        return Err(GenerateError::Communities {
            found: communities.clone(),
        });
    }
    let community = community_of_each(rows, sizes, seed);
    let inside = (f64::from(nonzeros) * communities.inside).round() as u32;
    let size = |row: usize| community[row].len() as u32;
    let outside = nonzeros - inside;
    let room: u64 = (0..rows as usize).map(|row| u64::from(size(row))).sum();
    check_room("inside", inside, room)?;
    check_room("between", outside, u64::from(rows).pow(2) - room)?;
    let inside = counts(rows, inside, INSIDE_STREAMS, seed, size)?;
    let outside = counts(rows, outside, OUTSIDE_STREAMS, seed, |row| rows - size(row))?;

    // `vertices[row]` is the row's vertex in the order of communities, and `numbers` is the inverse.
    let mut vertices: Vec<u32> = (0..rows).collect();
    if communities.shuffled {
        vertices.shuffle(&mut stream(seed, LABEL_STREAM));
    }
    let mut numbers = vec![0; vertices.len()];
    for (number, &vertex) in (0..).zip(&vertices) {
        numbers[vertex as usize] = number;
    }
    let mut row_pointer = vec![0; vertices.len() + 1];
    for (row, &vertex) in vertices.iter().enumerate() {
        let vertex = vertex as usize;
        row_pointer[row + 1] = row_pointer[row] + inside[vertex] + outside[vertex];
    }
    let mut indices = vec![0; nonzeros as usize];
    let tasks = tasks(&row_pointer, &mut indices);
    parallel::each_task(tasks, |(rows, mut indices)| {
        let mut drawn = Vec::new();
        for &vertex in &vertices[rows] {
            let vertex = vertex as usize;
            let mut random = stream(seed, ROW_STREAMS + vertex as u64);
            let length = (inside[vertex] + outside[vertex]) as usize;
            let (row, rest) = std::mem::take(&mut indices).split_at_mut(length);
            indices = rest;
            let Range { start, end } = community[vertex];
            let (own, others) = row.split_at_mut(inside[vertex] as usize);
            draw_set(own.len(), end - start, &mut random, &mut drawn);
            for (column, drawn) in own.iter_mut().zip(&drawn) {
                *column = numbers[(start + drawn) as usize];
            }
            draw_set(
                others.len(),
                numbers.len() as u32 - (end - start),
                &mut random,
                &mut drawn,
            );
            for (column, &drawn) in others.iter_mut().zip(&drawn) {
                let skipped = if drawn < start { 0 } else { end - start };
                *column = numbers[(drawn + skipped) as usize];
            }
            row.sort_unstable();
        }
    });
    let data = sparse_values(indices.len(), seed);
    let shape = (rows as usize, rows as usize);
    Ok(CsMatI::new(shape, row_pointer, indices, data))
}

/// For each vertex, in the order of communities, the range of vertices of its community.
fn community_of_each(rows: u32, sizes: &RangeInclusive<u32>, seed: u64) -> Vec<Range<u32>> {
    let mut random = stream(seed, SIZE_STREAM);
    let (least, most) = (f64::from(*sizes.start()), f64::from(*sizes.end()));
    let mut of_each = Vec::with_capacity(rows as usize);
    while of_each.len() < rows as usize {
        // The integral of the density s^-2 is 1 / least - 1 / s; `drawn` is its value at `size`.
        let drawn: f64 = random.random();
        let size = 1.0 / (1.0 / least - drawn * (1.0 / least - 1.0 / most));
        let size = (size.round() as u32).clamp(*sizes.start(), *sizes.end());
        let start = of_each.len() as u32;
        let end = start.saturating_add(size).min(rows);
        of_each.resize(end as usize, start..end);
    }
    of_each
}

/// Fails if `wanted` nonzeros do not fit in `room` entries.
fn check_room(place: &'static str, wanted: u32, room: u64) -> Result<(), GenerateError> {
    if u64::from(wanted) > room {
        return Err(GenerateError::Room {
            wanted,
            place,
            room,
        });
    }
    Ok(())
}

/// Distributes `wanted` nonzeros to rows at random, and returns the number of each row, at most its capacity.
fn counts(
    rows: u32,
    wanted: u32,
    first_stream: u64,
    seed: u64,
    capacity: impl Fn(usize) -> u32 + Sync,
) -> Result<Vec<u32>, GenerateError> {
    let counts: Vec<AtomicU32> = (0..rows).map(|_| AtomicU32::new(0)).collect();
    let (mut missing, mut draws, mut streams) = (wanted, 0u64, first_stream);
    while missing > 0 {
        if draws > u64::from(wanted) * DRAWS_PER_NONZERO {
            return Err(GenerateError::TooSkewed {
                wanted,
                found: wanted - missing,
                draws,
            });
        }
        let attempts = missing as usize;
        let chunks = attempts.div_ceil(DRAWS);
        parallel::each(chunks, |chunk| {
            let mut random = stream(seed, streams + chunk as u64);
            for _ in chunk * DRAWS..attempts.min((chunk + 1) * DRAWS) {
                let row = random.random_range(0..rows) as usize;
                // No overflow: the sum of all counts is at most `wanted`, a u32.
                counts[row].fetch_add(1, Ordering::Relaxed);
            }
        });
        streams += chunks as u64;
        draws += attempts as u64;
        // A row returns its excess, which does not depend on the order of the draws.
        let return_excess = |row: usize| {
            let count = counts[row].load(Ordering::Relaxed);
            let excess = count.saturating_sub(capacity(row));
            counts[row].store(count - excess, Ordering::Relaxed);
            excess
        };
        let add = |one: u32, other: u32| one + other;
        missing = parallel::reduce(counts.len(), || 0, return_excess, add);
    }
    Ok(counts.into_iter().map(AtomicU32::into_inner).collect())
}

/// The rows of each parallel task, and their part of `indices`.
fn tasks<'a>(
    row_pointer: &[u32],
    mut indices: &'a mut [u32],
) -> Vec<(Range<usize>, &'a mut [u32])> {
    let rows = row_pointer.len() - 1;
    (0..rows)
        .step_by(ROWS)
        .map(|first| {
            let end = rows.min(first + ROWS);
            let length = (row_pointer[end] - row_pointer[first]) as usize;
            let (part, rest) = std::mem::take(&mut indices).split_at_mut(length);
            indices = rest;
            (first..end, part)
        })
        .collect()
}

/// Draws a set of `count` numbers below `below` into `drawn`; every set is equally likely.
fn draw_set(count: usize, below: u32, random: &mut ChaCha8Rng, drawn: &mut Vec<u32>) {
    drawn.clear();
    // If more than half are wanted, the others are drawn: the last free numbers would take too many draws.
    let others = below as usize - count;
    let fewer = count.min(others);
    while drawn.len() < fewer {
        for _ in drawn.len()..fewer {
            drawn.push(random.random_range(0..below));
        }
        drawn.sort_unstable();
        drawn.dedup();
    }
    if fewer < count {
        let mut absent = std::mem::take(drawn).into_iter().peekable();
        drawn.extend((0..below).filter(|&number| absent.next_if_eq(&number).is_none()));
    }
}

#[cfg(test)]
mod tests;
