//! The planner: whether clusters of rows are worth their cost.
//!
//! It depends on the bytes of a row of X: one cache line, unless the caller says how many features there are.

use super::{LINE, MISS, Planner, ROW, RowOfX, SHARED_IN_STEP};
use crate::csr::DevicePattern;
use crate::device::DeviceBuffer;
use crate::spmm::error::SpmmError;
use crate::spmm::plan::reuse;

/// A row's end where the rows are in another order than the caller's: the kernel looks up where the row belongs, while it adds the row before up. By the
/// kernel for any factors, which looks it up at the row's end, clusters took 1.03 to 1.22 times as long.
const ORDERED_ROW: f64 = 4.5;

/// How many times as fast the product must become by another order of the rows, by the estimate. Graphs with hubs (R-MAT .57) that are said to become
/// 1.03 to 1.06 times as fast become 0.96 to 0.99 times as fast on an H200; others, where rows of X do not begin with a cache line, at 33 and 100 features, that
/// are said to become 1.04 to 1.08 times as fast, 0.88 to 0.99 times.
const LEAST_GAIN: f64 = 1.09;

/// As [`LEAST_GAIN`], where rows of X are known to be whole cache lines, and most of them come from memory. Of 30 products of eleven graphs that are said to
/// become 1.035 to 1.09 times as fast all do, 1.02 to 1.10 times; of 13 that are said to become 1.02 to 1.035 times as fast three become slower.
const LEAST_GAIN_FROM_MEMORY: f64 = 1.035;

/// The different columns of neighbouring rows, as a part of their nonzeros, in an order as bad as any and in the best to be hoped
/// for: a plan that gains too little even so does not look for one.
const HOPED_FOR: [f64; 2] = [1.0, 0.4];

impl Planner {
    /// Whether an order of the rows is worth looking for.
    pub fn hopes_for_order(&self) -> bool {
        let shares_anyway = self.shared == SHARED_IN_STEP && self.any_rows_share();
        let [_, hope] = HOPED_FOR;
        !shares_anyway
            && !self.is_local()
            && self.gain_by_order(HOPED_FOR, hope) >= self.least_gain()
    }

    /// How local the matrix is in that order of its rows. It waits for the device.
    pub fn locality_in(
        &self,
        a: &DevicePattern,
        order: &DeviceBuffer<u32>,
    ) -> Result<f64, SpmmError> {
        reuse::locality(a, &self.profile, Some(order))
    }

    /// Whether clusters are worth it, where the different columns of neighbouring rows are these parts of their nonzeros in the
    /// given order and in clusters, and the matrix is so local in clusters.
    pub fn wants_clusters(&self, distinct: [f64; 2], local: f64) -> bool {
        self.gain_by_order(distinct, local) >= self.least_gain()
    }

    /// Takes note of the order of the rows, in which the matrix is so local.
    pub fn take_order(&mut self, local: f64) {
        self.misses_left = local;
    }

    /// How many times as fast it must become.
    fn least_gain(&self) -> f64 {
        let has_whole_lines = self.row.is_some_and(RowOfX::has_whole_lines);
        if has_whole_lines && self.l2_hits(self.row_bytes(), 1) < 0.5 {
            LEAST_GAIN_FROM_MEMORY
        } else {
            LEAST_GAIN
        }
    }

    /// How many times as fast the product becomes by an order of the rows in which the matrix is so local.
    fn gain_by_order(&self, [given, ordered]: [f64; 2], local: f64) -> f64 {
        let far = MISS * (1.0 - self.l2_hits(self.row_bytes(), 1));
        let lines = self.mean_row * self.row_bytes() / LINE;
        let cost = |row, distinct, far| row + lines * (1.0 - self.shared * (1.0 - distinct) + far);
        let far_ordered = far * (local / self.misses_left).min(1.0);
        cost(ROW, given, far) / cost(ORDERED_ROW, ordered, far_ordered)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{bytes_of_x, planner};
    use super::*;

    #[test]
    fn an_order_is_taken_that_saves_much_of_what_comes_from_memory() {
        let flat = [(20_000, 2)];
        assert!(planner(50.0, &flat, 4_000).wants_clusters([1.0, 0.4], 0.4));
        assert!(!planner(50.0, &flat, 4_000).wants_clusters([0.4, 0.38], 0.95));
        assert!(!planner(3.0, &flat, 4_000).wants_clusters([1.0, 0.8], 0.8));
        assert!(planner(50.0, &flat, 4_000).hopes_for_order());
        assert!(!planner(10.0, &flat, 40_000).hopes_for_order());
    }

    #[test]
    fn a_small_gain_is_enough_where_whole_lines_come_from_memory() {
        let flat = [(20_000, 2)];
        let gains = |is_known: bool, lines, local| {
            let planner = Planner {
                row: is_known.then_some(RowOfX::LINE),
                ..planner(20.0, &flat, lines)
            };
            planner.wants_clusters([1.0, 0.93], local)
        };
        assert!(gains(true, 1_000, 0.91));
        assert!(!gains(false, 1_000, 0.91));
        // The cache holds 60 % of the columns, and the gain is estimated to be larger.
        assert!(!gains(true, 20_000, 0.78));
        assert!(gains(true, 20_000, 0.6));
    }

    #[test]
    fn an_order_of_short_rows_is_worth_its_cost_where_rows_of_x_are_wide() {
        let flat = [(20_000, 2)];
        let of_width = |bytes| Planner {
            row: bytes_of_x(bytes),
            ..planner(6.0, &flat, 4_000)
        };
        assert!(!of_width(112).wants_clusters([1.0, 0.8], 0.8));
        assert!(of_width(496).wants_clusters([1.0, 0.8], 0.7));
    }
}
