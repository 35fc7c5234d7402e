//! Tests of the search: every choice is made for some matrix, on an emulated H200.

mod few_features;
mod orders;

use super::orders::BEST_CLUSTERS;
use super::*;
use crate::device::{Device, DeviceProfile, EmulatorOptions};
use crate::spmm::options::SpmmTuning;
use crate::spmm::plan::columns::Columns;
use crate::spmm::plan::length_bins::LengthBins;
use crate::spmm::plan::locality::Localities;
use half::f16;
use std::collections::BTreeSet;
use warprow_kernels::spmm::product::vector;

/// A square matrix whose rows and columns have `mean_row` nonzeros each.
fn even(rows: u32, mean_row: u32, locality: Localities) -> Statistics {
    Statistics {
        rows,
        cols: rows,
        nonzeros: rows * mean_row,
        longest_row: 2 * mean_row,
        lengths: LengthBins::even(rows, rows * mean_row),
        columns: Columns::even(rows, rows * mean_row),
        locality,
        distinct_share: 1.0,
        is_ordered: false,
        variation: Some(0.3),
        are_assumed: false,
    }
}

/// The same, but for the length of the longest row.
fn with_longest(statistics: Statistics, longest_row: u32) -> Statistics {
    Statistics {
        longest_row,
        ..statistics
    }
}

fn search(statistics: Statistics, options: SpmmOptions) -> Search {
    search_of::<f32>(statistics, options)
}

fn search_of<E: SpmmElement>(statistics: Statistics, options: SpmmOptions) -> Search {
    let device = Device::emulator_of(&DeviceProfile::h200(), EmulatorOptions::default());
    let model = CostModel::of(&device).unwrap();
    let kernel = options.tuning.kernel;
    Search::of::<E>(model, statistics, kernel, options)
}

/// The kernel, the lanes and the blocks of columns for a matrix.
fn chosen(statistics: Statistics, options: SpmmOptions) -> (SpmmKernel, u32, u32) {
    let candidate = search(statistics, options).choose().candidate;
    (candidate.kernel, candidate.lanes, candidate.blocks)
}

fn features(features: u32) -> SpmmOptions {
    SpmmOptions::new().features(features)
}

#[test]
fn each_kernel_number_of_lanes_and_of_blocks_is_chosen_for_some_matrix() {
    use SpmmKernel::{InStep, RowBins, Spmv, Vector};
    let random = Localities::NONE;
    for (rows, mean_row, longest, locality, wide, wanted) in [
        (8_000, 500, 1_000, random, 128, (InStep, 32, 1)),
        (600_000, 73, 146, BEST_CLUSTERS, 1, (Spmv, 1, 1)),
        (200_000, 6, 20_000, random, 8, (RowBins, 2, 1)),
        (200_000, 20, 40, random, 64, (Vector, 8, 1)),
        (200_000, 6, 12, random, 64, (Vector, 16, 1)),
        (1_000_000, 10, 20, BEST_CLUSTERS, 256, (Vector, 32, 1)),
        (1_000_000, 60, 120, random, 64, (Vector, 8, 4)),
    ] {
        let a = with_longest(even(rows, mean_row, locality), longest);
        let found = chosen(a, features(wide));
        assert_eq!(found, wanted, "{rows} rows of {mean_row}, {wide} features");
    }
}

#[test]
fn a_plan_that_has_not_counted_how_frequent_columns_are_takes_one_block_unless_asked_for_more() {
    let counted = even(1_000_000, 60, Localities::NONE);
    let assumed = Statistics {
        are_assumed: true,
        ..counted.clone()
    };
    assert_eq!(chosen(counted, features(64)), (SpmmKernel::Vector, 8, 4));
    assert_eq!(chosen(assumed.clone(), features(64)).2, 1);
    let tuning = SpmmTuning::new().column_blocks(2);
    assert_eq!(chosen(assumed, features(64).tuning(tuning)).2, 2);
}

#[test]
fn in_step_is_chosen_where_it_is_predicted_to_be_the_fastest_with_lanes_for_the_matrix() {
    let mut lanes_of_choices = BTreeSet::new();
    let sharing = Localities {
        far: 0.85,
        ..Localities::NONE
    };
    for rows in [8_000, 40_000] {
        for mean_row in [20, 49, 83, 300] {
            for wide in [12, 20, 32, 64, 100, 128, 256, 512] {
                let search = search(even(rows, mean_row, sharing), features(wide));
                let all = search.best_of_each(f64::INFINITY).into_iter();
                // `row_bins` has a rule of its own.
                let mut others =
                    all.filter(|choice| choice.candidate.kernel != SpmmKernel::RowBins);
                let best = others.next().unwrap().candidate;
                if best.kernel == SpmmKernel::InStep && !may_have_bins(&search.statistics, wide) {
                    let chosen = search.choose().candidate;
                    assert_eq!((chosen.kernel, chosen.lanes), (best.kernel, best.lanes));
                    lanes_of_choices.insert(chosen.lanes);
                }
            }
        }
    }
    assert!(lanes_of_choices.len() > 1, "{lanes_of_choices:?}");
}

#[test]
fn rows_in_clusters_have_the_lanes_that_there_are_kernels_for_in_any_order() {
    fn lanes<E: SpmmElement>(wide: u32) -> [Vec<u32>; 2] {
        let a = even(400_000, 15, Localities::NONE);
        let tuning = SpmmTuning::new().kernel(SpmmKernel::Vector);
        let search = search_of::<E>(a.clone(), features(wide).tuning(tuning));
        [a.clone(), a.ordered(BEST_CLUSTERS)].map(|a| {
            let all = search.candidates(&a).into_iter();
            let whole = all.filter(|choice| choice.candidate.blocks == 1);
            whole.map(|choice| choice.candidate.lanes).collect()
        })
    }
    assert_eq!(lanes::<f32>(64), [[8, 16, 32], [8, 16, 32]]);
    assert_eq!(lanes::<f64>(64), [&[8, 32][..], &[8]]);
    assert_eq!(lanes::<f16>(64), [&[8, 16, 32][..], &[8, 32]]);
}

#[test]
fn what_the_caller_asks_for_is_not_chosen_otherwise() {
    let a = || even(8_000, 500, Localities::NONE);
    let tuned = |tuning| chosen(a(), features(128).tuning(tuning));
    let vector = tuned(SpmmTuning::new().kernel(SpmmKernel::Vector));
    assert_eq!(vector.0, SpmmKernel::Vector);
    assert_eq!(tuned(SpmmTuning::new().lanes(32)).0, SpmmKernel::Vector);
    assert_eq!(tuned(SpmmTuning::new().lanes(32)).1, 32);
    let in_step = chosen(
        even(200_000, 6, Localities::NONE),
        features(8).tuning(SpmmTuning::new().kernel(SpmmKernel::InStep)),
    );
    assert_eq!(in_step.0, SpmmKernel::InStep);
    for lanes in [4, 8, 16, 32] {
        let in_step = tuned(SpmmTuning::new().kernel(SpmmKernel::InStep).lanes(lanes));
        assert_eq!((in_step.0, in_step.1), (SpmmKernel::InStep, lanes));
    }
    let maximum = chosen(a(), features(128).reduction(Reduction::Max));
    assert_eq!((maximum.0, maximum.2), (SpmmKernel::Vector, 1));
}

#[test]
fn more_runs_never_have_fewer_blocks_and_one_run_has_one() {
    let blocks = |runs| {
        let a = even(1_000_000, 60, Localities::NONE);
        chosen(a, features(64).runs(runs)).2
    };
    assert_eq!((blocks(1), blocks(20)), (1, 4));
    let of_runs = [1, 2, 5, 20, 100].map(blocks);
    assert!(of_runs.is_sorted(), "{of_runs:?}");
}

#[test]
fn a_plan_that_is_told_the_features_never_predicts_more_than_one_that_is_not() {
    told_never_predicts_more::<f32>();
    told_never_predicts_more::<f64>();
    told_never_predicts_more::<f16>();
}

fn told_never_predicts_more<E: SpmmElement>() {
    for (rows, mean_row) in [(1_000, 4), (60_000, 80), (400_000, 15), (8_000, 500)] {
        let a = || even(rows, mean_row, Localities::NONE);
        let untold = search_of::<E>(a(), SpmmOptions::new()).choose().candidate;
        for wide in [1, 4, 12, 16, 33, 64, 256] {
            let told = search_of::<E>(a(), features(wide));
            let row = FeatureRow::new::<E>(wide, Reduction::Sum, EpilogueKind::Plain);
            let otherwise = match untold.kernel {
                SpmmKernel::InStep => told.in_step(row).unwrap(),
                _ => told.vector(row, untold.blocks),
            };
            // A plan that is not told takes a kernel for few features when it runs.
            let otherwise = match told.for_few_features(row, &otherwise) {
                Some(SpmmKernel::RowGroups) => {
                    let group = told.group(row);
                    row.row_groups()
                        .find(|few| Some(few.group) == group)
                        .unwrap()
                }
                Some(_) => row.row_bins().unwrap(),
                None => otherwise,
            };
            let (best, otherwise) = (told.choose().seconds, told.choice(&a(), otherwise).seconds);
            assert!(
                best <= otherwise,
                "{rows} rows of {mean_row}, {wide} features in {}",
                E::NAME
            );
        }
    }
}

#[test]
fn the_best_of_each_kernel_and_number_of_lanes_come_in_the_order_of_their_predictions() {
    for (rows, mean_row, wide) in [(8_000, 500, 128), (400_000, 15, 16), (1_000_000, 60, 64)] {
        let search = search(even(rows, mean_row, Localities::NONE), features(wide));
        let all = search.best_of_each(f64::INFINITY);
        let kinds = |choice: &Choice| {
            let candidate = choice.candidate;
            (candidate.kernel, candidate.lanes, candidate.group)
        };
        for (index, choice) in all.iter().enumerate() {
            let others = &all[..index];
            assert!(others.iter().all(|other| kinds(other) != kinds(choice)));
            assert!(others.iter().all(|other| other.seconds <= choice.seconds));
        }
        assert_eq!(kinds(&all[0]), kinds(&search.choose()));
        assert!(
            all.iter()
                .any(|choice| choice.candidate.kernel == SpmmKernel::InStep)
        );
        let least = all[0].prediction.seconds;
        let most = 1.001 * all[1].prediction.seconds / least;
        let fewer = search.best_of_each(most);
        assert_eq!(kinds(&fewer[0]), kinds(&all[0]));
        assert!(fewer.len() > 1);
        for choice in fewer {
            assert!(choice.prediction.seconds <= most * least);
        }
        assert!(search.best_of_each(1.0).len() < all.len());
    }
}

#[test]
fn the_best_candidate_is_found_anew_for_other_statistics_and_tunings() {
    use SpmmKernel::{InStep, Vector};
    let mut search = search(even(400_000, 60, Localities::NONE), features(128));
    let first = search.choose();
    for kernel in [Vector, InStep] {
        let tuned = search.tuned(SpmmTuning::new().kernel(kernel));
        assert_eq!(tuned.choose().candidate.kernel, kernel);
    }
    search.set_statistics(even(4000, 60, Localities::NONE));
    assert!(search.choose().prediction.seconds < 0.1 * first.prediction.seconds);
}

#[test]
fn statistics_are_counted_if_enough_runs_are_expected_or_nobody_says_how_many() {
    let device = Device::emulator_of(&DeviceProfile::h200(), EmulatorOptions::default());
    let a = crate::generate::uniform::<f32>(20_000, 20_000, 300_000, 1).unwrap();
    let a = crate::csr::DeviceCsr::upload(&device, a.view()).unwrap();
    let has_counted = |options| {
        let search = Search::new::<f32>(a.pattern(), None, options).unwrap();
        search.unwrap().has_counted()
    };
    let options = features(64);
    assert!(has_counted(options));
    assert!(has_counted(options.runs(1_000_000)));
    assert!(!has_counted(options.runs(1)));
    assert!(
        has_counted(options.runs(1).measure(true)),
        "candidates need them"
    );
}

#[test]
fn means_are_predicted_with_lanes_that_have_instances_which_scale() {
    for wide in [16, 23, 32, 74, 90, 128, 253] {
        for is_ordered in [false, true] {
            let a = Statistics {
                is_ordered,
                ..even(400_000, 60, Localities::NONE)
            };
            let options = features(wide).reduction(Reduction::Mean);
            let search = search(
                a,
                options.tuning(SpmmTuning::new().kernel(SpmmKernel::Vector)),
            );
            let there_are = vector::loads::<f32>(wide, Reduction::Mean, EpilogueKind::Scaled);
            let all = search.candidates(&search.statistics);
            assert!(!all.is_empty());
            for Candidate { lanes, blocks, .. } in all.into_iter().map(|choice| choice.candidate) {
                let found = there_are.lane_counts().any(|there_is| there_is == lanes);
                assert!(found, "{wide} features, {lanes} lanes, {blocks} blocks");
            }
        }
    }
}
