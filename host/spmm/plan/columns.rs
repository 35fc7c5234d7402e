//! The columns of a matrix, and how often a cache lacks the row of X that a nonzero needs.
//!
//! A cache replaces the row that nobody has loaded for the longest time. By the approximation of Che, Tung and Wang
//! ("Hierarchical Web caching systems", 2002), every row stays for the same time after its last load. A column is
//! loaded as often as it has nonzeros, at random times, so the time and the numbers of nonzeros tell how many rows the
//! cache holds, and how many loads miss.

use super::length_bins::LengthBins;

/// The least time for which misses are computed. A column with the mean number of nonzeros is loaded once in a time
/// of 1.
const LEAST_TIME: f64 = 1e-6;

/// Times, each twice the one before: up to 67.
const TIMES: usize = 27;

/// The rows of X that a cache holds, and the share of the nonzeros that miss it, for each time; first, for none.
type Curve = [(f64, f64); TIMES + 1];

/// The columns of a matrix.
#[derive(Clone, Debug)]
pub struct Columns {
    /// The columns by the number of their nonzeros.
    pub counts: LengthBins,
    /// The misses of a cache in one and in two partitions.
    misses: [Curve; 2],
}

impl Columns {
    /// Columns with these numbers of nonzeros.
    pub fn new(counts: LengthBins) -> Self {
        let mut misses = [[(0.0, 1.0); TIMES + 1]; 2];
        let nonzeros: f64 = counts.iter().map(|(.., nonzeros)| nonzeros).sum();
        let mean = nonzeros / counts.used();
        for (_, columns, of_bin) in counts.iter() {
            let share = of_bin / nonzeros;
            let mut loads = LEAST_TIME * of_bin / columns / mean;
            for time in 1..=TIMES {
                // Loads are independent of each other, so there is none in that time with a probability of e^-loads.
                let far = (-loads).exp();
                // Each partition serves a half of the multiprocessors, and has a half of the memory. It keeps copies of
                // the other half's rows, too. A row that is not in its own partition is looked for in the other one, so
                // rows of the near memory are also loaded for the other partition's misses.
                let near = far * (-loads * far).exp();
                let [one, two] = &mut misses;
                add(&mut one[time], columns * (1.0 - far), -share * (1.0 - far));
                let held = columns * (2.0 - far - near) / 2.0;
                let missed = near * (1.0 + far) / 2.0;
                add(&mut two[time], held, -share * (1.0 - missed));
                loads *= 2.0;
            }
        }
        Self { counts, misses }
    }

    /// `nonzeros` nonzeros that are spread evenly over as many of `cols` columns as they can be.
    pub fn even(cols: u32, nonzeros: u32) -> Self {
        Self::new(LengthBins::even(cols, nonzeros))
    }

    /// The number of columns that have nonzeros; an estimate if the matrix is large.
    pub fn used(&self) -> f64 {
        self.counts.used()
    }

    /// The expected number of distinct columns of so many nonzeros that are drawn at random.
    pub fn expected_distinct(&self, nonzeros: f64) -> f64 {
        self.counts.expected_distinct(nonzeros)
    }

    /// The share of the nonzeros, from 0 to 1, whose row of X is not in a cache. Each of its partitions, one or two,
    /// holds so many rows of X.
    pub fn missed(&self, rows: f64, partitions: u32) -> f64 {
        let curve = &self.misses[usize::from(partitions > 1)];
        let above = curve.partition_point(|(held, _)| *held <= rows);
        let (Some(&(low, of_low)), Some(&(high, of_high))) =
            (curve.get(above.wrapping_sub(1)), curve.get(above))
        else {
            // It holds all rows.
            return 0.0;
        };
        let part = (rows - low) / (high - low);
        (of_low + part * (of_high - of_low)).max(0.0)
    }
}

fn add(point: &mut (f64, f64), held: f64, missed: f64) {
    point.0 += held;
    point.1 += missed;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_columns_miss_a_cache_as_far_as_it_is_too_small() {
        let columns = Columns::even(1000, 20_000);
        for rows in [0.0, 1e-4, 10.0, 500.0, 990.0, 1000.0, 1e9] {
            let wanted = (1.0 - rows / 1000.0_f64).max(0.0);
            let found = columns.missed(rows, 1);
            assert!((found - wanted).abs() < 1e-6, "{rows} rows: {found}");
        }
    }

    #[test]
    fn two_partitions_miss_more_than_a_cache_of_both_and_less_than_one_of_them() {
        let columns = Columns::even(1000, 20_000);
        for rows in [10.0, 100.0, 300.0, 500.0, 700.0] {
            let found = columns.missed(rows, 2);
            let bounds = columns.missed(2.0 * rows, 1)..columns.missed(rows, 1);
            assert!(bounds.contains(&found), "{rows} rows: {found}");
        }
        assert!(columns.missed(999.0, 2) < 0.01);
        assert_eq!(columns.missed(1001.0, 2), 0.0);
    }

    #[test]
    fn a_cache_keeps_frequent_columns() {
        // 10 columns have half of the nonzeros, 10,000 the other half.
        let columns = Columns::new(LengthBins::of(&[(10, 10_000), (10_000, 10_000)]));
        let found = columns.missed(100.0, 1);
        assert!((0.49..0.51).contains(&found), "{found}");
        let found = columns.missed(5_010.0, 1);
        assert!((0.24..0.26).contains(&found), "{found}");
    }

    #[test]
    fn larger_caches_miss_less() {
        let columns = Columns::new(LengthBins::of(&[
            (1, 900_000),
            (900, 800_000),
            (7_000_000, 9_000_000),
        ]));
        for partitions in [1, 2] {
            let sizes = (0..90).map(|power| 1e-3 * 1.3_f64.powi(power));
            let misses: Vec<f64> = sizes.map(|rows| columns.missed(rows, partitions)).collect();
            assert!(misses.is_sorted_by(|one, other| one >= other), "{misses:?}");
            assert!(misses.iter().all(|share| (0.0..=1.0).contains(share)));
        }
    }

    #[test]
    fn a_matrix_without_nonzeros_misses_nothing() {
        for cols in [0, 5] {
            assert_eq!(Columns::even(cols, 0).missed(0.0, 2), 0.0);
        }
    }
}
