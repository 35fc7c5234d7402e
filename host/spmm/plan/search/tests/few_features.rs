//! Tests of the choice between the kernels for few features and the others.

use super::*;
use crate::spmm::plan::length_bins::LengthBins;

#[test]
fn each_number_of_lanes_of_a_group_is_chosen_for_some_matrix() {
    for (rows, mean_row, wide, lanes, group) in [
        (600_000, 5, 4, 1, 2),
        (200_000, 20, 8, 2, 4),
        (200_000, 50, 8, 2, 8),
        (200_000, 100, 16, 4, 16),
        (4_000, 500, 8, 2, 32),
        (60_000, 4, 32, 8, 8),
    ] {
        let a = Statistics {
            variation: Some(0.1),
            longest_row: mean_row,
            ..even(rows, mean_row, Localities::NONE)
        };
        let found = search(a, features(wide)).choose().candidate;
        assert_eq!(
            (found.kernel, found.lanes, found.group),
            (SpmmKernel::RowGroups, lanes, group),
            "{rows} rows of {mean_row}, {wide} features"
        );
    }
}

/// A matrix of `rows` rows, of which each hundredth has 50 times as many nonzeros as the others.
fn skewed(rows: u32, mean_row: u32) -> Statistics {
    let a = even(rows, mean_row, Localities::NONE);
    let (long, short) = (rows / 100, rows - rows / 100);
    let of_short = a.nonzeros / (short + 50 * long);
    let nonzeros = a.nonzeros - short * of_short;
    Statistics {
        longest_row: nonzeros / long,
        lengths: LengthBins::of(&[(short, short * of_short), (long, nonzeros)]),
        variation: Some(3.0),
        ..a
    }
}

#[test]
fn rows_of_different_lengths_are_binned_and_even_rows_are_not() {
    for (rows, mean_row) in [(200_000, 6), (60_000, 60), (30_000, 8)] {
        for wide in [2, 4, 8, 16] {
            let kernel = |a| search(a, features(wide)).choose().candidate.kernel;
            let what = format!("{rows} rows of {mean_row}, {wide} features");
            assert_eq!(
                kernel(skewed(rows, mean_row)),
                SpmmKernel::RowBins,
                "{what}"
            );
            let even = even(rows, mean_row, Localities::NONE);
            let even = Statistics {
                variation: Some(0.0),
                longest_row: mean_row,
                ..even
            };
            assert_eq!(kernel(even), SpmmKernel::RowGroups, "{what}");
        }
    }
}

/// A plan that does not know the features compares its own kernel with those for few as one that knows them does.
#[test]
fn a_plan_that_does_not_know_the_features_compares_the_same_kernels() {
    let mut taken = 0;
    for a in [
        skewed(200_000, 6),
        skewed(8_000, 100),
        even(8_000, 500, Localities::NONE),
    ] {
        for (wide, reduction) in [
            (2, Reduction::Sum),
            (6, Reduction::Mean),
            (16, Reduction::Max),
            (64, Reduction::Sum),
        ] {
            let search = search(a.clone(), features(wide).reduction(reduction));
            let all = search.best_of_each(f64::INFINITY);
            let least = |kernel| {
                let mut of_kernel = all.iter().filter(|other| other.candidate.kernel == kernel);
                of_kernel.next().map(|other| other.candidate)
            };
            let vector = least(SpmmKernel::Vector).unwrap();
            let compared = [
                Some(vector),
                least(SpmmKernel::RowBins),
                least(SpmmKernel::RowGroups),
            ];
            let seconds = |candidate: &Candidate| search.predict(candidate).seconds;
            let fastest = compared.into_iter().flatten();
            let fastest = fastest.min_by(|one, other| seconds(one).total_cmp(&seconds(other)));
            let wanted = fastest.map(|fastest| fastest.kernel);
            let wanted = wanted.filter(|&kernel| kernel != SpmmKernel::Vector);
            let what = format!("{} rows, {wide} features, {reduction:?}", a.rows);
            assert_eq!(
                search.for_few_features(search.row, &vector),
                wanted,
                "{what}"
            );
            taken += u32::from(wanted == Some(SpmmKernel::RowBins));
        }
    }
    assert!(taken > 0);
}

#[test]
fn row_bins_is_a_candidate_for_all_reductions_of_up_to_128_known_features_in_one_tile() {
    let is_candidate = |search: &Search| {
        let all = search.best_of_each(f64::INFINITY);
        all.iter()
            .any(|choice| choice.candidate.kernel == SpmmKernel::RowBins)
    };
    for rows in [200_000, 100_000] {
        for wide in [1, 2, 8, 16, 32, 33, 36, 64, 66, 68, 128, 132] {
            for &reduction in Reduction::ALL {
                let a = even(rows, 6, Localities::NONE);
                let search = search(a, features(wide).reduction(reduction));
                // `spmv` takes one feature. Single elements of more than 32 features are several tiles, and so are
                // pairs of more than 64.
                let wanted = match (reduction.is_extremum(), wide) {
                    (false, 1) | (_, 33 | 66) => false,
                    (true, wide) => wide <= 32,
                    (false, wide) => wide <= 128,
                };
                assert_eq!(
                    is_candidate(&search),
                    wanted,
                    "{rows} rows, {wide} features, {reduction:?}"
                );
            }
        }
    }
    let untold = search(even(200_000, 6, Localities::NONE), SpmmOptions::new());
    assert!(!is_candidate(&untold));
}

/// By the model alone, `row_bins` would be chosen for all of them.
#[test]
fn row_bins_is_not_predicted_for_more_than_16_features_if_many_rows_are_similar_and_share_columns()
{
    let similar = |rows, far| Statistics {
        variation: Some(0.4),
        locality: Localities {
            far,
            ..Localities::NONE
        },
        ..skewed(rows, 6)
    };
    let assumed = Statistics {
        are_assumed: true,
        ..similar(200_000, 1.0)
    };
    for (a, wide, wanted) in [
        (similar(200_000, 0.89), 16, true),
        (similar(200_000, 0.89), 32, false),
        (similar(200_000, 0.9), 32, true),
        (similar(100_000, 0.89), 32, true),
        (skewed(200_000, 6), 32, true),
        (assumed, 32, false),
    ] {
        let search = search(a.clone(), features(wide));
        let (far, are_assumed) = (a.locality.far, a.are_assumed);
        let what = format!("{} rows, {wide} features, {far}, {are_assumed}", a.rows);
        assert_eq!(
            search.best_of_each(1.0)[0].candidate.kernel,
            SpmmKernel::RowBins,
            "{what}"
        );
        let chosen = search.choose().candidate;
        assert_eq!(chosen.kernel == SpmmKernel::RowBins, wanted, "{what}");
        let few = search.for_few_features(search.row, &search.row.vector(8, 1));
        assert_eq!(few == Some(SpmmKernel::RowBins), wanted, "{what}: {few:?}");
    }
}

#[test]
fn row_groups_is_a_candidate_for_sums_and_means_of_2_to_16_known_features_and_of_up_to_128_if_the_matrix_is_small()
 {
    let a = |rows| even(rows, 6, Localities::NONE);
    let is_candidate = |search: &Search| {
        let all = search.candidates(&search.statistics);
        all.iter()
            .any(|choice| choice.candidate.kernel == SpmmKernel::RowGroups)
    };
    for (rows, most) in [(200_000, 16), (100_000, 128)] {
        for wide in [1, 2, 7, 8, 16, 17, 32, 33, 36, 64, 66, 128, 132] {
            // 33 and 66 features are several tiles.
            let wanted = (2..=most).contains(&wide) && ![33, 66].contains(&wide);
            for &reduction in Reduction::ALL {
                let search = search(a(rows), features(wide).reduction(reduction));
                assert_eq!(
                    is_candidate(&search),
                    wanted && !reduction.is_extremum(),
                    "{rows} rows, {wide} features, {reduction:?}"
                );
            }
        }
    }
    for &reduction in Reduction::ALL {
        let untold = search(a(200_000), SpmmOptions::new().reduction(reduction));
        assert!(!is_candidate(&untold), "{reduction:?}");
        // It may take it when it runs.
        let row = FeatureRow::new::<f32>(8, reduction, EpilogueKind::Plain);
        let few = untold.for_few_features(row, &row.vector(8, 1));
        let is_taken = few == Some(SpmmKernel::RowGroups);
        assert_eq!(is_taken, !reduction.is_extremum(), "{reduction:?}: {few:?}");
    }
}

#[test]
fn a_requested_group_has_the_next_lower_number_of_lanes_and_no_fewer_than_a_nonzero() {
    for (wide, lanes, group) in [
        (4, 1, 2),
        (4, 3, 2),
        (4, 12, 8),
        (4, 31, 16),
        (4, 100, 32),
        (8, 12, 8),
        (32, 4, 8),
        (50, 12, 32),
    ] {
        let tuning = SpmmTuning::new().kernel(SpmmKernel::RowGroups);
        let options = features(wide).tuning(tuning.lanes(lanes));
        let search = search(even(200_000, 6, Localities::NONE), options);
        let all = search.candidates(&search.statistics);
        let groups: Vec<u32> = all.iter().map(|choice| choice.candidate.group).collect();
        assert_eq!(groups, [group], "{wide} features, {lanes} lanes");
        let found = search.choose().candidate;
        assert_eq!((found.kernel, found.group), (SpmmKernel::RowGroups, group));
    }
}
