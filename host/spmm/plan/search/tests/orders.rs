//! Tests of whether another order of the rows pays.

use super::*;
use crate::spmm::plan::search::share_enough_for_clusters;

#[test]
fn an_order_that_gains_next_to_nothing_is_not_taken() {
    let search = search(even(1_000_000, 20, Localities::NONE), features(128));
    let ordered = |share: f64| {
        let locality = Localities {
            near: share,
            middle: share,
            far: share,
        };
        search.statistics.ordered(locality)
    };
    let prefers = |share| search.prefers_order(&ordered(share));
    assert!(prefers(0.5));
    assert!(!prefers(0.99));
    assert!(!prefers(1.0));
    // A plan that measures takes it.
    let gains = |share| search.gains_by_order(&ordered(share));
    let gains_little = |percent| gains(percent / 100.0) && !prefers(percent / 100.0);
    assert!((50..100).any(|percent| gains_little(f64::from(percent))));
    assert!(gains(0.5));
    assert!(!gains(1.0));
}

#[test]
fn an_order_is_looked_for_only_if_the_runs_can_gain_what_the_search_costs() {
    let may_pay = |rows, locality, runs| {
        let a = even(rows, 12, locality);
        search(a, features(128).runs(runs)).order_may_pay()
    };
    assert!(may_pay(1_000_000, Localities::NONE, 20));
    assert!(!may_pay(1_000_000, Localities::NONE, 1));
    assert!(!may_pay(1_000_000, BEST_CLUSTERS, 1_000), "no better order");
    assert!(!may_pay(1_000, Localities::NONE, 20), "the cache holds X");
}

#[test]
fn clusters_are_looked_for_only_if_rows_share_enough_beside_their_first_columns() {
    let search = search(
        even(1_000_000, 12, Localities::NONE),
        features(128).runs(20),
    );
    // What the first column alone brings together.
    let by_first = search.statistics.ordered(Localities {
        near: 0.95,
        middle: 0.94,
        far: 0.93,
    });
    let may_pay = |shared| search.clusters_may_pay(&by_first, shared);
    assert!(!may_pay(0.0));
    assert!(!may_pay(0.001));
    assert!(may_pay(0.02));
    let of_parts = [0.0, 0.004, 0.008, 0.012, 0.016, 0.02, 0.5].map(may_pay);
    assert!(of_parts.is_sorted(), "{of_parts:?}");
    assert!(share_enough_for_clusters(0.02) && !share_enough_for_clusters(0.019));
}

#[test]
fn clusters_are_not_looked_for_if_rows_by_first_column_are_as_good() {
    let search = search(
        even(1_000_000, 12, Localities::NONE),
        features(128).runs(1000),
    );
    let by_first = search.statistics.ordered(BEST_CLUSTERS);
    assert!(!search.clusters_may_pay(&by_first, 1.0));
}
