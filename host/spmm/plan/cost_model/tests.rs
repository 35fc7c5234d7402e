//! Tests of the cost model.

use super::*;
use crate::device::{Device, EmulatorOptions};

const ONE_LINE: FeatureRow = FeatureRow {
    lanes_of_one_block: LaneCounts::of(&[8, 16, 32]),
    lanes_of_blocks: LaneCounts::of(&[8, 16, 32]),
    ..FeatureRow::LINE
};

const FOUR_LINES: FeatureRow = FeatureRow {
    bytes: 512,
    ..ONE_LINE
};

fn shares(given: f64, ordered: f64) -> DistinctShares {
    DistinctShares { given, ordered }
}

/// A row of X of f32 of so many bytes, a multiple of 16.
fn bytes_of_x(bytes: u64) -> Option<FeatureRow> {
    Some(FeatureRow { bytes, ..ONE_LINE })
}

/// A model for 20,000 columns, of which those of each pair have that many nonzeros, and an L2 cache of so many lines.
fn model(mean_row: f64, columns: &[(u32, u32)], lines: u64) -> CostModel {
    let device = Device::emulator(EmulatorOptions::default());
    let mut first = 0;
    let mut cols = Vec::new();
    for &(count, nonzeros) in columns {
        for col in first..first + count {
            cols.extend(std::iter::repeat_n(col, nonzeros as usize));
        }
        first += count;
    }
    let cols = device.upload(&cols).unwrap();
    CostModel {
        mean_row,
        profile: ColumnProfile::measure(&device, 20_000, &cols).unwrap(),
        density: mean_row / 20_000.0,
        l2_bytes: lines * 128,
        neighbour_discount: NEIGHBOUR_DISCOUNT,
        x_row: None,
        locality: 1.0,
    }
}

#[test]
fn long_rows_over_more_columns_than_the_cache_holds_are_cut_into_blocks() {
    let flat = [(20_000, 2)];
    assert_eq!(model(168.0, &flat, 4_000).best_column_blocks(), 8);
    assert_eq!(model(168.0, &flat, 40_000).best_column_blocks(), 1);
    assert_eq!(model(10.0, &flat, 4_000).best_column_blocks(), 1);
}

#[test]
fn rows_of_x_that_are_no_whole_lines_are_taken_at_once_and_want_more_blocks() {
    let flat = [(20_000, 2)];
    let blocks = |bytes| {
        let x_row = bytes_of_x(bytes);
        let model = CostModel {
            x_row,
            ..model(74.0, &flat, 20_000)
        };
        model.best_column_blocks()
    };
    assert_eq!(model(74.0, &flat, 20_000).best_column_blocks(), 2);
    assert_eq!(blocks(400), 4);
    assert_eq!(blocks(512), 2, "whole lines");
    assert_eq!(blocks(132), 2, "two lines");
}

#[test]
fn hot_columns_that_the_cache_holds_need_no_blocks() {
    let skewed = [(1_000, 100), (10_000, 1)];
    assert_eq!(model(168.0, &skewed, 4_000).best_column_blocks(), 1);
}

#[test]
fn rows_in_a_good_order_need_fewer_blocks() {
    let flat = [(20_000, 2)];
    let mut model = model(168.0, &flat, 4_000);
    assert_eq!(model.best_column_blocks(), 8);
    model.set_locality(0.2);
    assert_eq!(model.best_column_blocks(), 1);
}

#[test]
fn locality_is_of_no_use_where_the_cache_holds_x_unless_an_order_is() {
    let flat = [(20_000, 2)];
    let narrow = |mean_row, neighbour_discount| CostModel {
        x_row: Some(FeatureRow::LINE),
        neighbour_discount,
        ..model(mean_row, &flat, 40_000)
    };
    assert!(!narrow(7.0, NEIGHBOUR_DISCOUNT).depends_on_locality());
    assert!(narrow(300.0, NEIGHBOUR_DISCOUNT_IN_STEP).depends_on_locality());
    assert!(
        model(7.0, &flat, 40_000).depends_on_locality(),
        "wider tiles"
    );
}

#[test]
fn rows_with_common_columns_take_wide_tiles_and_small_tasks() {
    let flat = [(20_000, 2)];
    let mut model = model(20.0, &flat, 30_000);
    assert_eq!(model.best_lanes(FOUR_LINES, 1), 8);
    assert_eq!(model.max_task_size(), None);
    model.set_locality(0.3);
    assert_eq!(model.best_lanes(FOUR_LINES, 1), 32);
    // Eight rows of 20 nonzeros, each with the two steps of its end.
    assert_eq!(model.max_task_size(), Some(176));
    assert!(!model.order_may_pay());
}

#[test]
fn short_rows_take_wide_tiles_if_the_cache_holds_them_and_narrow_ones_if_not() {
    let flat = [(20_000, 2)];
    assert_eq!(model(5.0, &flat, 1 << 20).best_lanes(FOUR_LINES, 1), 32);
    assert_eq!(model(20.0, &flat, 30_000).best_lanes(FOUR_LINES, 1), 8);
    assert_eq!(
        model(5.0, &flat, 1 << 20).best_lanes(
            FeatureRow {
                lanes_of_one_block: LaneCounts::of(&[8]),
                ..FOUR_LINES
            },
            1
        ),
        8
    );
    assert_eq!(model(5.0, &flat, 1 << 20).best_lanes(ONE_LINE, 1), 8);
}

#[test]
fn single_elements_take_the_fewest_lanes_that_have_all_of_them() {
    for (features, lanes) in [(15, 8), (31, 16), (33, 16), (47, 16), (49, 32), (63, 32)] {
        let row = FeatureRow {
            bytes: 4 * features,
            element_bytes: 4,
            load_width: 1,
            ..FeatureRow::LINE
        };
        let found = row.lanes_of_whole_row(LaneCounts::of(&[8, 16, 32]));
        assert_eq!(found, lanes, "{features}");
    }
}

#[test]
fn an_order_is_taken_that_saves_much_of_what_comes_from_memory() {
    let flat = [(20_000, 2)];
    assert!(model(50.0, &flat, 4_000).order_pays(shares(1.0, 0.4), 0.4));
    assert!(!model(50.0, &flat, 4_000).order_pays(shares(0.4, 0.38), 0.95));
    assert!(!model(3.0, &flat, 4_000).order_pays(shares(1.0, 0.8), 0.8));
    assert!(model(50.0, &flat, 4_000).order_may_pay());
    assert!(!model(10.0, &flat, 40_000).order_may_pay());
}

#[test]
fn a_small_gain_is_enough_where_whole_lines_come_from_memory() {
    let flat = [(20_000, 2)];
    let gains = |is_known: bool, lines, local| {
        let model = CostModel {
            x_row: is_known.then_some(FeatureRow::LINE),
            ..model(20.0, &flat, lines)
        };
        model.order_pays(shares(1.0, 0.93), local)
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
    let of_width = |bytes| CostModel {
        x_row: bytes_of_x(bytes),
        ..model(6.0, &flat, 4_000)
    };
    assert!(!of_width(112).order_pays(shares(1.0, 0.8), 0.8));
    assert!(of_width(496).order_pays(shares(1.0, 0.8), 0.7));
}
