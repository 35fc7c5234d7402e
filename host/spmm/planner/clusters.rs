//! The planner: whether clusters of rows are worth their cost.
//!
//! It depends on the bytes of a row of X: one cache line, unless the caller says how many features there are.

use super::super::reuse;
use super::{LINE, MISS, Planner, ROW, SHARED_IN_STEP};
use crate::csr::DevicePattern;
use crate::device::DeviceBuffer;
use crate::error::Error;

/// A row's end where the rows are in another order than the caller's: the kernel looks up where the row belongs, while it adds the row before up. By the
/// kernel for any factors, which looks it up at the row's end, clusters took 1.03 to 1.22 times as long.
const ORDERED_ROW: f64 = 4.5;

/// How many times as fast the product must become by another order of the rows, by the estimate. Of the five graphs of R-MAT with the shortest rows none is
/// said to gain more than 1.06 times; of their sizes, but with shuffled communities, those that are said to gain 1.05 to 1.15 times at 32 to 128 features gain
/// 1.05 to 1.15 on an H200; but at 33, where rows of X do not begin with a cache line, one that is said to gain 1.08 took 1.16 times as long.
const LEAST_GAIN_BY_ORDER: f64 = 1.09;

/// The different columns of neighbouring rows, as a part of their nonzeros, in an order as bad as any and in the best to be hoped
/// for: a plan that gains too little even so does not look for one.
const HOPED_FOR: [f64; 2] = [1.0, 0.4];

impl Planner {
    /// Whether an order of the rows is worth looking for.
    pub(in crate::spmm) fn hopes_for_order(&self) -> bool {
        let shares_anyway = self.shared == SHARED_IN_STEP && self.any_rows_share();
        let [_, hope] = HOPED_FOR;
        !shares_anyway
            && !self.is_local()
            && self.gain_by_order(HOPED_FOR, hope) >= LEAST_GAIN_BY_ORDER
    }

    /// How local the matrix is in that order of its rows. It waits for the device.
    pub(in crate::spmm) fn locality_in(
        &self,
        a: &DevicePattern,
        order: &DeviceBuffer<u32>,
    ) -> Result<f64, Error> {
        reuse::locality(a, &self.profile, Some(order))
    }

    /// Whether clusters are worth it, where the different columns of neighbouring rows are these parts of their nonzeros in the
    /// given order and in clusters, and the matrix is so local in clusters.
    pub(in crate::spmm) fn wants_clusters(&self, distinct: [f64; 2], local: f64) -> bool {
        self.gain_by_order(distinct, local) >= LEAST_GAIN_BY_ORDER
    }

    /// Takes note of the order of the rows, in which the matrix is so local.
    pub(in crate::spmm) fn take_order(&mut self, local: f64) {
        self.misses_left = local;
    }

    /// How many times as fast the product becomes by an order of the rows in which the matrix is so local.
    fn gain_by_order(&self, [given, ordered]: [f64; 2], local: f64) -> f64 {
        let far = MISS * (1.0 - self.l2_hits(self.row_bytes, 1));
        let lines = self.mean_row * self.row_bytes / LINE;
        let cost = |row, distinct, far| row + lines * (1.0 - self.shared * (1.0 - distinct) + far);
        let far_ordered = far * (local / self.misses_left).min(1.0);
        cost(ROW, given, far) / cost(ORDERED_ROW, ordered, far_ordered)
    }
}

#[cfg(test)]
mod tests {
    use super::super::WIDE_ROW;
    use super::super::tests::planner;
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
    fn an_order_of_short_rows_is_worth_its_cost_where_rows_of_x_are_wide() {
        let flat = [(20_000, 2)];
        let of_width = |row_bytes| Planner {
            row_bytes,
            ..planner(6.0, &flat, 4_000)
        };
        assert!(!of_width(LINE).wants_clusters([1.0, 0.8], 0.8));
        assert!(of_width(WIDE_ROW).wants_clusters([1.0, 0.8], 0.7));
    }
}
