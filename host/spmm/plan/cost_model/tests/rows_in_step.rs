//! The formulas of `in_step`: its lanes, and rows of different lengths.

use super::*;

#[test]
fn the_lanes_of_in_step_are_those_of_its_kernel_that_suit_the_row() {
    for (features, lanes, tile, load) in [
        (16, &[4][..], 16, 16),
        (32, &[4, 8], 16, 16),
        (33, &[16], 48, 16),
        (50, &[32], 64, 64),
        (64, &[8, 16], 32, 32),
        (100, &[16, 32], 64, 64),
        (128, &[16, 32], 64, 64),
        (256, &[16, 32], 64, 64),
        (512, &[16, 32], 64, 64),
        (1000, &[32], 128, 128),
        (1024, &[16, 32], 64, 64),
    ] {
        let all: Vec<Candidate> = row(features).in_step(None).collect();
        let found: Vec<u32> = all.iter().map(|candidate| candidate.lanes).collect();
        assert_eq!(found, lanes, "{features} features");
        assert_eq!(
            (all[0].tile, all[0].load()),
            (tile, load),
            "{features} features"
        );
        for asked_for in [3, 4, 8, 16, 32] {
            let all: Vec<Candidate> = row(features).in_step(Some(asked_for)).collect();
            assert_eq!(all.len(), 1, "{features} features, {asked_for} lanes");
        }
    }
}

#[test]
fn more_lanes_of_in_step_are_faster_only_where_even_rows_fill_a_warp() {
    let of_lanes = |lanes| row(128).in_step(Some(lanes)).next().unwrap();
    let model = model(&DeviceProfile::h200());
    let rows = |mean_row, variation| Statistics {
        variation,
        ..even(100_000, mean_row)
    };
    let factor_of = |a, candidate| lanes_factor(&Product::new(&model, &a, &candidate));
    let factor = |mean_row, candidate| factor_of(rows(mean_row, Some(0.25)), candidate);
    assert_eq!(factor(31, of_lanes(32)), 1.0);
    assert_eq!(factor(32, of_lanes(32)), 0.5_f64.powf(OTHER_LANES_IN_STEP));
    assert_eq!(factor(32, of_lanes(16)), 1.0, "the usual lanes");
    for mean_row in [31, 32] {
        let of_fewer = 2_f64.powf(OTHER_LANES_IN_STEP);
        assert_eq!(factor(mean_row, of_lanes(8)), of_fewer, "in more tiles");
    }
    assert_eq!(factor(32, row(128).vector(32, 1)), 1.0);
    let unknown = factor_of(rows(32, None), of_lanes(32));
    assert_eq!(unknown, factor(32, of_lanes(32)));
    let uneven = |lanes| factor_of(rows(32, Some(0.26)), of_lanes(lanes));
    assert_eq!(uneven(32), 1.0, "many rows of different lengths");
    assert!(uneven(8) > 1.0, "in more tiles");
    let few = Statistics {
        variation: Some(0.26),
        ..even(10_000, 32)
    };
    assert_eq!(factor_of(few, of_lanes(32)), factor(32, of_lanes(32)));
}

#[test]
fn rows_of_in_step_that_differ_in_length_take_longer() {
    let model = model(&DeviceProfile::h200());
    let candidate = row(128).in_step(Some(32)).next().unwrap();
    let seconds = |rows: &[(u32, u32)]| {
        let a = Statistics {
            lengths: LengthBins::of(rows),
            ..even(100_000, 40)
        };
        Product::new(&model, &a, &candidate).latency_seconds()
    };
    let of_even = seconds(&[(100_000, 4_000_000)]);
    let of_uneven = seconds(&[(50_000, 1_000_000), (50_000, 3_000_000)]);
    let of_hubs = seconds(&[(99_900, 1_998_000), (100, 2_002_000)]);
    let of_more_hubs = seconds(&[(99_600, 2_000_000), (400, 2_000_000)]);
    assert!(of_uneven > 1.1 * of_even, "{of_uneven} and {of_even}");
    assert_eq!(of_hubs, of_even, "few groups of four rows have a hub");
    // The model takes rows of more than some 1900 nonzeros for rows of teams.
    let of_more_hubs = of_more_hubs / of_even;
    assert!((1.05..1.3).contains(&of_more_hubs), "{of_more_hubs}");
}
