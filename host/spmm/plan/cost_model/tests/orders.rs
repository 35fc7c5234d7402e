//! What the cost model knows of rows in another order, and of rows that go through the columns together.

use super::super::caches::Misses;
use super::*;

#[test]
fn rows_in_another_order_share_no_accesses_to_the_lists() {
    let model = model(&DeviceProfile::h200());
    let of_lists = Misses {
        l1: 0.0,
        l2: 0.0,
        streamed: 1.0,
    };
    for a in [even(100_000, 3), even(100_000, 60)] {
        for candidate in [16, 64].into_iter().flat_map(candidates) {
            let ordered = a.ordered(Localities::NONE);
            let of = |a| Product::new(&model, a, &candidate);
            let (given, ordered) = (of(&a), of(&ordered));
            let memory =
                |product: &Product<'_>| product.memory_seconds(&of_lists) * model.gpu.memory_rate;
            // Each of two lists loads 64 bytes for a row beside its elements, less one. `row_bins` has an order of its
            // own.
            let rows = match candidate.kernel {
                SpmmKernel::RowBins => 0.0,
                _ => 100_000.0,
            };
            let more = memory(&ordered) - memory(&given);
            let wanted = 120.0 * rows / FITTED.memory_efficiency;
            assert!((more - wanted).abs() < 1.0, "{candidate:?}: {more}");
            let l2 = |product: &Product<'_>| product.l2_seconds(&of_lists);
            assert_eq!(l2(&ordered) > l2(&given), rows > 0.0, "{candidate:?}");
        }
    }
}

/// The share of the nonzeros of a matrix whose rows of X `row_bins` and `row_groups` load from memory, and `vector`.
fn l2_misses(a: &Statistics) -> [f64; 3] {
    let model = model(&DeviceProfile::h200());
    let row = row(48);
    let groups = row.row_groups().last().unwrap();
    assert_eq!(groups.group, 32);
    [row.row_bins().unwrap(), groups, row.vector(16, 1)]
        .map(|candidate| model.predict(a, &candidate).l2_misses)
}

#[test]
fn groups_that_go_through_the_columns_together_load_few_rows_of_x_twice() {
    // X has 192 MB, three times as many as the L2 cache. The groups run in less than two waves.
    let of_variation = |variation| Statistics {
        variation: Some(variation),
        ..even(10_000, 2_000)
    };
    let wide = |a: Statistics| Statistics {
        cols: 1_000_000,
        columns: LengthBins::even(1_000_000, a.nonzeros),
        ..a
    };
    let [bins, groups, vector] = l2_misses(&wide(of_variation(0.0)));
    assert!(bins < 0.2 && groups < 0.2, "{bins}, {groups}");
    assert!(vector > 0.7, "{vector}");
    let varied = l2_misses(&wide(of_variation(1.0)));
    assert_eq!(varied, [vector; 3], "rows of other lengths are elsewhere");
    // More rows of fewer nonzeros run in more waves.
    let waves = [100, 200, 400, 1_000, 2_000].map(|mean_row| {
        let a = Statistics {
            variation: Some(0.0),
            ..even(20_000_000 / mean_row, mean_row)
        };
        l2_misses(&wide(a))[1]
    });
    assert!(waves.is_sorted_by(|more, fewer| more >= fewer), "{waves:?}");
    assert_eq!(waves[0], vector, "{waves:?}");
}
