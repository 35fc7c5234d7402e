//! What the cost model knows of rows that go through the columns together.

use super::*;

/// The L2 miss rates of `row_bins`, `row_groups` and `vector`: the share of the nonzeros whose row of X comes from
/// memory.
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
        columns: Columns::even(1_000_000, a.nonzeros),
        ..a
    };
    let [bins, groups, vector] = l2_misses(&wide(of_variation(0.0)));
    assert!(bins < 0.2 && groups < 0.2, "{bins}, {groups}");
    assert!(vector > 0.7, "{vector}");
    // Rows of different lengths do not go through the columns together.
    for varied in l2_misses(&wide(of_variation(1.0))) {
        assert!((varied - vector).abs() < 1e-12, "{varied}, {vector}");
    }
    // More rows of fewer nonzeros run in more waves.
    let waves = [100, 200, 400, 1_000, 2_000].map(|mean_row| {
        let a = Statistics {
            variation: Some(0.0),
            ..even(20_000_000 / mean_row, mean_row)
        };
        l2_misses(&wide(a))[1]
    });
    assert!(waves.is_sorted_by(|more, fewer| more >= fewer), "{waves:?}");
    assert!((waves[0] - vector).abs() < 1e-12, "{waves:?}, {vector}");
}
