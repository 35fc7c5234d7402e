//! Graphs with planted communities: most nonzeros lie between vertices of the same community.

use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicU32, Ordering};

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use sprs::CsMatI;

use super::distinct::stream;
use super::values::sparse_values;
use super::{GenerateError, check_size};
use crate::scalar::Scalar;

/// Where the random streams of this module begin: apart from those of nonzeros and of values.
const SIZE_STREAM: u64 = 3 << 62;
const LABEL_STREAM: u64 = SIZE_STREAM + 1;
const INSIDE_STREAMS: u64 = SIZE_STREAM + (1 << 40);
const OUTSIDE_STREAMS: u64 = SIZE_STREAM + (2 << 40);
const ROW_STREAMS: u64 = SIZE_STREAM + (3 << 40);

/// Nonzeros whose rows are drawn from one random stream.
const DRAWS: usize = 1 << 16;

/// Rows whose columns are drawn by one task.
const ROWS: usize = 1 << 10;

/// Draws for each nonzero wanted before it is given up.
const PATIENCE: u64 = 256;

/// The communities of a graph; see [`communities`].
#[derive(Debug, Clone, PartialEq)]
pub struct Communities {
    /// The least and the most vertices of a community. Sizes s are distributed as s^-2 between them, as in many networks: few
    /// large communities, and as many vertices in those of sizes from s to 2 s for every s.
    pub sizes: RangeInclusive<u32>,
    /// The fraction of the nonzeros that lie inside a community, from 0 to 1; rounded to whole nonzeros.
    pub inside: f64,
    /// Whether vertices are numbered at random; if not, those of a community follow each other.
    pub shuffled: bool,
}

/// A graph with planted communities: a `rows` x `rows` matrix with exactly `nonzeros` distinct nonzeros, values uniform in
/// [-1, 1).
///
/// Vertices are cut into communities of random sizes; the last may be smaller. Of the nonzeros, the fraction
/// `inside` has both vertices in one community, the others have not. Rows get theirs at random, each row as many as any other
/// on average, and a row's columns are a random set inside or outside of its community. With the same seed the shuffled
/// graph is the one in community order with its vertices renumbered, but for the values.
///
/// # Errors
///
/// If there are more than `u32::MAX` - 1 rows or more nonzeros than entries, `sizes` are not such or `inside` is no
/// fraction, or so many distinct nonzeros are not found inside or outside of the communities within 256 draws for each.
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
    let inside = counts(rows, inside, INSIDE_STREAMS, seed, size)?;
    let outside = nonzeros - inside.iter().sum::<u32>();
    let outside = counts(rows, outside, OUTSIDE_STREAMS, seed, |row| rows - size(row))?;

    // The vertex in community order that each row is, and the number of each vertex.
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
    tasks.into_par_iter().for_each(|(rows, mut indices)| {
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

/// The community of each vertex, in community order, as the range of its vertices.
fn community_of_each(rows: u32, sizes: &RangeInclusive<u32>, seed: u64) -> Vec<Range<u32>> {
    let mut random = stream(seed, SIZE_STREAM);
    let (least, most) = (f64::from(*sizes.start()), f64::from(*sizes.end()));
    let mut of_each = Vec::with_capacity(rows as usize);
    while of_each.len() < rows as usize {
        // The density s^-2 has the integral 1 / least - 1 / s.
        let drawn: f64 = random.random();
        let size = 1.0 / (1.0 / least - drawn * (1.0 / least - 1.0 / most));
        let size = (size.round() as u32).clamp(*sizes.start(), *sizes.end());
        let start = of_each.len() as u32;
        let end = start.saturating_add(size).min(rows);
        of_each.resize(end as usize, start..end);
    }
    of_each
}

/// How many of `wanted` nonzeros each row gets, drawn at random, none more than its capacity.
fn counts(
    rows: u32,
    wanted: u32,
    first_stream: u64,
    seed: u64,
    capacity: impl Fn(usize) -> u32 + Sync,
) -> Result<Vec<u32>, GenerateError> {
    let mut counts: Vec<AtomicU32> = (0..rows).map(|_| AtomicU32::new(0)).collect();
    let (mut missing, mut draws, mut streams) = (wanted, 0u64, first_stream);
    while missing > 0 {
        if draws > u64::from(wanted) * PATIENCE {
            return Err(GenerateError::TooSkewed {
                wanted,
                found: wanted - missing,
                draws,
            });
        }
        let attempts = missing as usize;
        let chunks = attempts.div_ceil(DRAWS);
        (0..chunks).into_par_iter().for_each(|chunk| {
            let mut random = stream(seed, streams + chunk as u64);
            for _ in chunk * DRAWS..attempts.min((chunk + 1) * DRAWS) {
                let row = random.random_range(0..rows) as usize;
                // Cannot overflow: all counts and what is missing are `wanted` together.
                counts[row].fetch_add(1, Ordering::Relaxed);
            }
        });
        streams += chunks as u64;
        draws += attempts as u64;
        // A row gives back what it has too much; how much that is does not depend on the order of the draws.
        missing = counts
            .par_iter_mut()
            .enumerate()
            .map(|(row, count)| {
                let count = count.get_mut();
                let excess = count.saturating_sub(capacity(row));
                *count -= excess;
                excess
            })
            .sum();
    }
    Ok(counts.into_iter().map(AtomicU32::into_inner).collect())
}

/// The rows of each task, and their part of `indices`.
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

/// Draws a set of `count` numbers below `below`, every one equally likely, into `drawn`.
fn draw_set(count: usize, below: u32, random: &mut ChaCha8Rng, drawn: &mut Vec<u32>) {
    drawn.clear();
    // Where more than half are wanted, the others are drawn: the last ones would be drawn late.
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
mod tests {
    use super::*;

    fn planted(shuffled: bool) -> Communities {
        Communities {
            sizes: 10..=90,
            inside: 0.75,
            shuffled,
        }
    }

    fn inside(a: &CsMatI<f32, u32, u32>, community: &[Range<u32>]) -> usize {
        a.iter()
            .filter(|(_, (row, column))| community[*row as usize].contains(column))
            .count()
    }

    #[test]
    fn nonzeros_are_as_many_as_asked_for_inside_and_outside() {
        for (rows, nonzeros) in [
            (1000, 0),
            (1000, 1),
            (1000, 7777),
            (1001, 20_000),
            (3000, 70_000),
        ] {
            let a = communities::<f32>(rows, nonzeros, &planted(false), 3).unwrap();
            assert_eq!((a.rows(), a.cols()), (rows as usize, rows as usize));
            assert_eq!(a.nnz(), nonzeros as usize);
            let of_each = community_of_each(rows, &(10..=90), 3);
            let wanted = (f64::from(nonzeros) * 0.75).round() as usize;
            assert_eq!(inside(&a, &of_each), wanted);
        }
    }

    #[test]
    fn the_extremes_are_one_full_community_and_none() {
        let all = Communities {
            sizes: 40..=40,
            inside: 1.0,
            shuffled: false,
        };
        let blocks = communities::<f32>(120, 3 * 40 * 40, &all, 1).unwrap();
        assert!(
            blocks
                .iter()
                .all(|(_, (row, column))| row / 40 == column / 40)
        );
        let none = Communities {
            inside: 0.0,
            ..all.clone()
        };
        let rest = communities::<f32>(120, 120 * 80, &none, 1).unwrap();
        assert!(
            rest.iter()
                .all(|(_, (row, column))| row / 40 != column / 40)
        );
        let one = Communities {
            sizes: 500..=500,
            ..all
        };
        assert_eq!(communities::<f32>(50, 2500, &one, 1).unwrap().nnz(), 2500);
        assert_eq!(communities::<f32>(0, 0, &one, 1).unwrap().rows(), 0);
    }

    #[test]
    fn the_shuffled_graph_is_the_other_one_renumbered() {
        let ordered = communities::<f32>(500, 6000, &planted(false), 9).unwrap();
        let shuffled = communities::<f32>(500, 6000, &planted(true), 9).unwrap();
        let mut vertices: Vec<u32> = (0..500).collect();
        vertices.shuffle(&mut stream(9, LABEL_STREAM));
        for row in 0..500 {
            let mut columns: Vec<u32> = shuffled
                .outer_view(row)
                .unwrap()
                .indices()
                .iter()
                .map(|&column| vertices[column as usize])
                .collect();
            columns.sort_unstable();
            let original = ordered.outer_view(vertices[row] as usize).unwrap();
            assert_eq!(columns, original.indices());
        }
        assert_ne!(ordered.indices(), shuffled.indices());
    }

    #[test]
    fn sizes_lie_in_their_range_and_small_ones_are_more_frequent() {
        let of_each = community_of_each(200_000, &(16..=1024), 5);
        let mut sizes: Vec<usize> = of_each
            .chunk_by(|one, other| one == other)
            .map(<[_]>::len)
            .collect();
        sizes.pop();
        assert!(sizes.iter().all(|size| (16..=1024).contains(size)));
        // As many vertices from s to 2 s for each s: twice as many communities in one octave as in the next.
        let octave = |s: usize| {
            sizes
                .iter()
                .filter(|&&size| size >= s && size < 2 * s)
                .count()
        };
        for s in [32, 64, 128] {
            let ratio = octave(s) as f64 / octave(2 * s) as f64;
            assert!((1.5..2.7).contains(&ratio), "{s}: {ratio}");
        }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let graph = || communities::<f32>(5000, 200_000, &planted(true), 42).unwrap();
        let on_threads = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.unwrap().install(graph)
        };
        assert!(on_threads(1) == on_threads(5));
        let other = communities::<f32>(5000, 200_000, &planted(true), 43).unwrap();
        assert_ne!(graph().indices(), other.indices());
    }

    #[test]
    fn every_number_of_a_set_is_equally_likely() {
        let mut random = stream(1, 0);
        for count in [0, 1, 3, 5, 6, 7] {
            let mut drawn = Vec::new();
            let mut times = [0; 7];
            for _ in 0..7000 {
                draw_set(count, 7, &mut random, &mut drawn);
                assert!(drawn.len() == count && drawn.is_sorted_by(|a, b| a < b));
                drawn.iter().for_each(|&number| times[number as usize] += 1);
            }
            // With a standard deviation of at most 42.
            let wanted = 1000 * count;
            assert!(
                times
                    .iter()
                    .all(|times: &usize| times.abs_diff(wanted) < 210)
            );
        }
    }

    #[test]
    fn what_cannot_be_generated_is_an_error() {
        let wrong = |change: fn(&mut Communities)| {
            let mut found = planted(false);
            change(&mut found);
            let error = communities::<f32>(100, 10, &found, 1).unwrap_err();
            assert!(
                matches!(error, GenerateError::Communities { .. }),
                "{error}"
            );
        };
        wrong(|communities| communities.inside = 1.5);
        wrong(|communities| communities.inside = f64::NAN);
        wrong(|communities| communities.sizes = 0..=5);
        wrong(|communities| communities.sizes = RangeInclusive::new(6, 5));
        // Communities of 10 have 1000 entries in 100 rows.
        let full = Communities {
            sizes: 10..=10,
            inside: 1.0,
            shuffled: false,
        };
        assert!(matches!(
            communities::<f32>(100, 1001, &full, 1),
            Err(GenerateError::TooSkewed { found: 1000, .. })
        ));
        assert!(matches!(
            communities::<f32>(3, 10, &full, 1),
            Err(GenerateError::TooManyNonzeros { .. })
        ));
    }
}
