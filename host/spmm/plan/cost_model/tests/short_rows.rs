//! Tests of what short rows cost: where they end together, and where neighbours are in one bin.

use super::*;

/// A matrix of a million rows, half of which have `one` nonzeros and half of which have `other`.
fn mixed(one: u32, other: u32) -> Statistics {
    let half = 500_000;
    Statistics {
        lengths: LengthBins::of(&[(half, half * one), (half, half * other)]),
        longest_row: one.max(other),
        ..even(2 * half, (one + other) / 2)
    }
}

fn seconds(a: &Statistics, candidate: Candidate) -> f64 {
    let profile = DeviceProfile::h200();
    model(&profile).predict(a, &candidate).seconds
}

#[test]
fn rows_in_bins_take_less_time_if_their_neighbours_are_in_the_same_octave() {
    let bins = row(2).row_bins().unwrap();
    let (in_one, in_two) = (mixed(2, 2), mixed(1, 3));
    assert_eq!(in_one.nonzeros, in_two.nonzeros);
    assert_eq!(in_one.lengths.same_octave(), 1.0);
    assert_eq!(in_two.lengths.same_octave(), 0.5);
    let (one, two) = (seconds(&in_one, bins), seconds(&in_two, bins));
    assert!(one < 0.8 * two, "{one} s, {two} s");
}

#[test]
fn an_end_of_a_row_costs_less_the_shorter_rows_are_and_the_more_sub_warps_a_warp_has() {
    let profile = DeviceProfile::h200();
    let model = model(&profile);
    let together = |mean_row, lanes| {
        let (a, candidate) = (even(100_000, mean_row), row(100).vector(lanes, 1));
        product::Product::new(&model, &a, &candidate).rows_that_end_together()
    };
    // One sub-warp ends one row at a time. Of four, all end a row of one nonzero together.
    assert!((together(2, 32) - 1.0).abs() < 1e-9);
    assert!((together(1, 8) - 4.0).abs() < 0.01);
    // 2 of 4 in the mean, where at least one ends: 2 / (1 - 1/16).
    assert!((together(2, 8) - 32.0 / 15.0).abs() < 1e-9);
    assert!((together(1_000, 8) - 1.0).abs() < 0.01);
}
