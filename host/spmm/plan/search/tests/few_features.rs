//! Tests of the choice between the kernels for few features and the others.

use super::*;
use crate::spmm::plan::columns::Columns;
use crate::spmm::plan::length_bins::LengthBins;

#[test]
fn each_number_of_lanes_of_a_group_is_chosen_for_some_matrix() {
    for (rows, mean_row, wide, lanes, group) in [
        (600_000, 5, 4, 1, 2),
        (200_000, 12, 8, 2, 4),
        (200_000, 30, 8, 2, 8),
        (200_000, 100, 16, 4, 16),
        (6_000, 500, 16, 4, 32),
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

#[test]
fn one_feature_has_bins_where_x_fits_in_shared_memory_and_marks_elsewhere() {
    let kernel = |rows, mean_row| {
        let a = even(rows, mean_row, Localities::NONE);
        search(a, features(1)).choose().candidate.kernel
    };
    assert_eq!(kernel(26_000, 170), SpmmKernel::RowBins);
    assert_eq!(kernel(70_000, 170), SpmmKernel::Spmv, "X does not fit");
    assert_eq!(kernel(1_200_000, 16), SpmmKernel::Spmv);
}

#[test]
fn x_is_in_shared_memory_where_rows_are_long_and_it_fits_unless_the_caller_says_otherwise() {
    let of = |cols, mean_row, wide, asked_for| {
        let a = Statistics {
            cols,
            columns: Columns::even(cols, 8_000 * mean_row),
            ..even(8_000, mean_row, Localities::NONE)
        };
        let tuning = SpmmTuning::new().shared_x(asked_for);
        let found = search(a, features(wide).tuning(tuning));
        let other = FeatureRow::new::<f32>(wide / 2, Reduction::Sum, EpilogueKind::Plain);
        let [own, other] = [found.row, other].map(|row| found.row_bins_of_run(row).unwrap());
        [own, other].map(|bins| bins.has_shared_x)
    };
    let chosen = None::<bool>;
    assert_eq!(of(12_000, 300, 4, chosen), [true, true]);
    assert_eq!(of(12_000, 300, 8, chosen), [false, true], "it does not fit");
    assert_eq!(of(12_000, 40, 4, chosen), [false, false], "short rows");
    assert_eq!(of(12_000, 300, 4, Some(false)), [false, false]);
    assert_eq!(of(12_000, 40, 4, Some(true)), [true, true]);
    assert_eq!(
        of(12_000, 40, 8, Some(true)),
        [false, true],
        "it does not fit"
    );
}

#[test]
fn rows_that_share_columns_have_x_in_shared_memory_if_all_of_them_run_at_once() {
    let band = Localities {
        near: 0.3,
        middle: 0.05,
        far: 0.01,
    };
    let chosen = |rows| {
        let a = Statistics {
            cols: 1_000,
            columns: Columns::even(1_000, rows * 400),
            ..even(rows, 400, band)
        };
        let found = search(a, features(6));
        found.row_bins_of_run(found.row).unwrap().has_shared_x
    };
    assert_eq!([1_000, 20_000].map(chosen), [true, false]);
}

#[test]
fn what_is_measured_for_a_number_of_features_says_nothing_of_others() {
    let a = |mean_row| even(8_000, mean_row, Localities::NONE);
    for measured in [false, true] {
        let tuning = SpmmTuning::new().kernel(SpmmKernel::RowBins);
        let has_shared_x = |mean_row, wide| {
            let found = search(a(mean_row), features(4)).tuned(tuning.shared_x(measured));
            let row = FeatureRow::new::<f32>(wide, Reduction::Sum, EpilogueKind::Plain);
            found.row_bins_of_run(row).unwrap().has_shared_x
        };
        assert_eq!([4, 2].map(|wide| has_shared_x(10, wide)), [measured, false]);
        assert_eq!([4, 6].map(|wide| has_shared_x(400, wide)), [measured, true]);
    }
}

#[test]
fn plans_that_measure_time_row_bins_with_x_in_global_and_in_shared_memory() {
    let a = even(4_000, 300, Localities::NONE);
    let timed = search(a, features(8)).best_of_each(10.0);
    let bins = timed.iter().map(|choice| choice.candidate);
    let bins = bins.filter(|candidate| candidate.kernel == SpmmKernel::RowBins);
    let mut bins: Vec<bool> = bins.map(|candidate| candidate.has_shared_x).collect();
    bins.sort_unstable();
    assert_eq!(bins, [false, true]);
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
            // With fewer features, both take nearly the same time.
            if wide >= 8 {
                assert_eq!(kernel(even), SpmmKernel::RowGroups, "{what}");
            }
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
                // `spmv` takes one feature, as X has no room in shared memory. Single elements of more than 32 features
                // are several tiles, and so are pairs of more than 64.
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
fn in_f64_row_groups_is_a_candidate_for_2_to_128_features_of_large_matrices() {
    for (wide, wanted) in [
        (1, false),
        (2, true),
        (32, true),
        (66, true),
        (128, true),
        (132, false),
    ] {
        let search = search_of::<f64>(even(200_000, 6, Localities::NONE), features(wide));
        let all = search.candidates(&search.statistics);
        let mut kernels = all.iter().map(|choice| choice.candidate.kernel);
        let found = kernels.any(|kernel| kernel == SpmmKernel::RowGroups);
        assert_eq!(found, wanted, "{wide} features");
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
