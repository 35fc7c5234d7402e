//! The columns of a matrix, and how often a cache lacks the row of X that a nonzero needs.
//!
//! Caches replace the row that was not loaded for the longest time. By the approximation of Che, Tung and Wang
//! ("Hierarchical Web caching systems", 2002), every row then stays for the same time after its last load. The loads of
//! a row come at random times, as many as its column has nonzeros. So it follows from that time how many rows a cache
//! holds, and which share of the loads misses it.

use super::length_bins::LengthBins;

/// The least time for which misses are computed. In a time of 1 the multiprocessors of a partition load the row of a
/// column with the mean number of nonzeros once.
const LEAST_TIME: f64 = 1e-6;

/// Times, each twice the one before: up to 67.
const TIMES: usize = 27;

/// A point for each time; the first is an empty cache, and the last holds all rows.
type Curve = [Point; TIMES + 2];

/// What a cache misses that keeps rows of X for some time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    /// The rows of X that a partition holds.
    rows: f64,
    /// The share of the nonzeros whose row is in no partition.
    missed: f64,
}

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
        let none = Point {
            rows: 0.0,
            missed: 0.0,
        };
        let mut misses = [[none; TIMES + 2]; 2];
        let nonzeros: f64 = counts.iter().map(|(.., nonzeros)| nonzeros).sum();
        let used = counts.used();
        for curve in &mut misses {
            curve[0].missed = 1.0;
            curve[TIMES + 1].rows = used;
        }
        for (_, columns, of_bin) in counts.iter() {
            let share = of_bin / nonzeros;
            let mut loads = LEAST_TIME * (of_bin / columns) / (nonzeros / used);
            for time in 1..=TIMES {
                // The probability that nobody has loaded a row for that time. One half of the multiprocessors asks the
                // partition that is far from the memory which holds the row first, and then the near one.
                let far = (-loads).exp();
                // The same for the near partition. The other half asks it alone, and it also gets the misses of the far
                // one. They are taken for independent, which makes it miss up to 0.05 too little.
                let near = far * (-loads * far).exp();
                let [one, two] = &mut misses;
                one[time].rows += columns * (1.0 - far);
                one[time].missed += share * far;
                // A partition is near for one half of the rows, and far for the other.
                two[time].rows += columns * (2.0 - far - near) / 2.0;
                two[time].missed += share * near * (1.0 + far) / 2.0;
                loads *= 2.0;
            }
        }
        Self { counts, misses }
    }

    /// `nonzeros` nonzeros that are spread evenly over as many of `cols` columns as they can be.
    pub fn even(cols: u32, nonzeros: u32) -> Self {
        Self::new(LengthBins::even(cols, nonzeros))
    }

    /// The share of the nonzeros, from 0 to 1, whose row of X is in no partition of a cache. The cache has one or two
    /// partitions, and `rows` is the number of rows of X that each of them holds.
    pub fn missed(&self, rows: f64, partitions: u32) -> f64 {
        let curve = &self.misses[usize::from(partitions > 1)];
        let above = curve.partition_point(|point| point.rows <= rows);
        let (Some(low), Some(high)) = (curve.get(above.wrapping_sub(1)), curve.get(above)) else {
            // It holds all rows.
            return 0.0;
        };
        let part = (rows - low.rows) / (high.rows - low.rows);
        low.missed + part * (high.missed - low.missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn equal_columns_miss_a_cache_as_far_as_it_is_too_small() {
        let columns = Columns::even(1000, 20_000);
        for rows in [0.0, 1e-4, 10.0, 500.0, 990.0, 1000.0, 1e9] {
            let wanted = (1.0 - rows / 1000.0_f64).max(0.0);
            let found = columns.missed(rows, 1);
            assert!((found - wanted).abs() < 1e-6, "{rows} rows: {found}");
        }
    }

    /// A cache that replaces the row which was not loaded for the longest time.
    struct Cache(VecDeque<u64>);

    impl Cache {
        /// Loads a row, and says whether it was not there.
        fn misses(&mut self, row: u64, most: usize) -> bool {
            let place = self.0.iter().position(|&other| other == row);
            match place {
                Some(place) => {
                    self.0.remove(place);
                }
                None if self.0.len() == most => {
                    self.0.pop_back();
                }
                None => {}
            }
            self.0.push_front(row);
            place.is_none()
        }
    }

    #[test]
    fn two_partitions_miss_nearly_as_much_as_in_a_simulation() {
        let columns = Columns::even(200, 4_000);
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005);
            state = state.wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for most in [20, 50, 100, 150] {
            let mut partitions = [Cache(VecDeque::new()), Cache(VecDeque::new())];
            let (mut missed, loads) = (0, 40_000);
            for _ in 0..loads {
                let (row, half) = (random(200), random(2) as usize);
                let near = (row % 2) as usize;
                let is_miss = half == near || partitions[half].misses(row, most);
                missed += u32::from(is_miss && partitions[near].misses(row, most));
            }
            let wanted = f64::from(missed) / f64::from(loads);
            let found = columns.missed(most as f64, 2);
            assert!(
                (wanted - 0.06..wanted + 0.01).contains(&found),
                "{most} rows: {found} instead of {wanted}"
            );
        }
        assert_eq!(columns.missed(200.0, 2), 0.0);
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
    fn larger_caches_miss_less_until_they_hold_all_rows() {
        let columns = Columns::new(LengthBins::of(&[
            (1, 900_000_000),
            (900, 800_000),
            (7_000_000, 9_000_000),
        ]));
        for partitions in [1, 2] {
            let sizes = (0..90).map(|power| 1e-3 * 1.3_f64.powi(power));
            let misses: Vec<f64> = sizes.map(|rows| columns.missed(rows, partitions)).collect();
            assert!(misses.is_sorted_by(|one, other| one >= other), "{misses:?}");
            assert!(misses.iter().all(|share| (0.0..=1.0).contains(share)));
            // The rare columns are not all loaded in the longest time.
            assert!(columns.missed(6_900_000.0, partitions) > 0.0);
            assert_eq!(columns.missed(columns.counts.used(), partitions), 0.0);
        }
    }

    #[test]
    fn a_matrix_without_nonzeros_misses_nothing() {
        for cols in [0, 5] {
            assert_eq!(Columns::even(cols, 0).missed(0.0, 2), 0.0);
        }
    }
}
