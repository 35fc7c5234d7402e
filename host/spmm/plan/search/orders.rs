//! Whether another order of a matrix's rows pays.

use super::Search;
use crate::spmm::plan::locality::Localities;
use crate::spmm::plan::statistics::Statistics;

/// The part of the time of all runs that another order of the rows gains at least, in a plan that does not measure.
const MIN_GAIN_OF_ORDER: f64 = 0.03;

/// What clusters of rows may reach: the localities of planted communities.
pub(super) const BEST_CLUSTERS: Localities = Localities {
    near: 0.8,
    middle: 0.45,
    far: 0.3,
};

/// If rows in the order of their first columns [share](crate::spmm::plan::locality::shared_beside_first_column) this
/// part of their other columns, clusters may reach [`BEST_CLUSTERS`]. If rows share less, clusters reach as much less.
const SHARED_IN_CLUSTERS: f64 = 0.02;

/// Whether clusters may reach [`BEST_CLUSTERS`], if rows in the order of their first columns share this part of their
/// other columns.
pub fn share_enough_for_clusters(shared: f64) -> bool {
    shared >= SHARED_IN_CLUSTERS
}

impl Search {
    /// Whether the search for an order of the rows costs less than all runs can gain by it.
    pub fn order_may_pay(&self) -> bool {
        if self.statistics.are_assumed {
            return false;
        }
        let clustered = self.statistics.locality.towards(BEST_CLUSTERS, 1.0);
        let gain = self.gain(&self.statistics.ordered(clustered));
        gain > self.model.search_seconds(&self.statistics)
    }

    /// Whether the rest of the search costs less than all runs can gain by clusters, beside what they gain by rows in
    /// the order of their first columns, of which `shared` is the part of their other columns that they
    /// [share](crate::spmm::plan::locality::shared_beside_first_column).
    pub fn clusters_may_pay(&self, by_first: &Statistics, shared: f64) -> bool {
        let part = (shared / SHARED_IN_CLUSTERS).min(1.0);
        let sorted = self.statistics.locality.towards(by_first.locality, 1.0);
        let clustered = by_first.ordered(sorted.towards(BEST_CLUSTERS, part));
        let gain = self.gain(&clustered) - self.gain(by_first).max(0.0);
        gain > self.model.clusters_seconds(&self.statistics)
    }

    /// Whether another order of the rows gains more than the model errs between orders.
    pub fn prefers_order(&self, ordered: &Statistics) -> bool {
        self.gain(ordered) > MIN_GAIN_OF_ORDER * self.choose().seconds
    }

    /// Whether another order of the rows gains anything by the prediction.
    pub fn gains_by_order(&self, ordered: &Statistics) -> bool {
        self.gain(ordered) > 0.0
    }

    /// The predicted seconds that all runs gain by another order of the rows.
    pub fn gain(&self, ordered: &Statistics) -> f64 {
        self.choose().seconds - self.best(ordered).seconds
    }
}
