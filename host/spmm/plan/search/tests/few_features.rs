//! Tests of the choice between the kernels for few features and the others.

use super::super::few_features::{MAX_FEATURES_OF_COMPARISON, NARROW_LANES};
use super::*;

#[test]
fn each_number_of_lanes_of_a_group_is_chosen_for_some_matrix() {
    for (rows, mean_row, wide, lanes, group) in [
        (600_000, 5, 4, 1, 2),
        (200_000, 20, 8, 2, 4),
        (200_000, 40, 8, 2, 8),
        (200_000, 100, 16, 4, 16),
        (60_000, 100, 16, 4, 32),
        (60_000, 5, 32, 8, 8),
    ] {
        let search = search(even(rows, mean_row, Localities::NONE), features(wide));
        let found = search.choose().candidate;
        assert_eq!(
            (found.kernel, found.lanes, found.group),
            (SpmmKernel::RowGroups, lanes, group),
            "{rows} rows of {mean_row}, {wide} features"
        );
    }
}

#[test]
fn narrow_with_more_than_two_lanes_is_timed_and_chosen_for_small_matrices_alone() {
    for (rows, mean_row, wanted) in [(600_000, 5, false), (8_000, 500, false), (5_000, 100, true)] {
        // A row that `row_groups` would wait for.
        let a = with_longest(even(rows, mean_row, Localities::NONE), rows);
        let search = search(a, features(16));
        let is_narrow = |choice: &Choice| choice.candidate.kernel == SpmmKernel::Narrow;
        assert_eq!(
            is_narrow(&search.choose()),
            wanted,
            "{rows} rows of {mean_row}"
        );
        assert!(search.best_of_each(f64::INFINITY).iter().any(is_narrow));
    }
}

/// Plans of large matrices take `narrow` with more than two lanes where the model says that it is the fastest, and in
/// so many cases. Those that do not know the features compare in the same way.
fn narrow_is_compared<E: SpmmElement>(wide: u32, reduction: Reduction) -> u32 {
    let mut taken = 0;
    let sizes = [(600_000, 5), (400_000, 15), (60_000, 80), (8_000, 500)];
    let matrices = sizes.map(|(rows, mean_row)| even(rows, mean_row, Localities::NONE));
    // Rows that `row_groups` would wait for.
    let with_long_rows = matrices.clone().map(|a| {
        let longest = a.cols.min(40_000);
        with_longest(a, longest)
    });
    for a in matrices.into_iter().chain(with_long_rows) {
        let what = format!("{} rows of {}, {wide} features", a.rows, a.mean_row());
        let mean_row = a.mean_row();
        let search = search_of::<E>(a, features(wide).reduction(reduction));
        let narrow = search.row.narrow().unwrap();
        assert!(narrow.lanes > NARROW_LANES && wide <= FEW_FEATURES_IN_STEP);
        let all = search.best_of_each(f64::INFINITY);
        let is_allowed = |choice: &&Choice| match choice.candidate.kernel {
            SpmmKernel::InStep => mean_row >= MIN_EVEN_ROW_IN_STEP,
            SpmmKernel::Narrow => wide <= MAX_FEATURES_OF_COMPARISON,
            _ => true,
        };
        let fastest = all.iter().find(is_allowed).unwrap().candidate;
        let found = search.choose().candidate;
        assert_eq!(
            (found.kernel, found.group),
            (fastest.kernel, fastest.group),
            "{what}"
        );
        // A plan that does not know the features compares with its own kernel.
        let least = |kernel| {
            let mut of_kernel = all.iter().filter(|other| other.candidate.kernel == kernel);
            of_kernel.next().map(|other| other.candidate)
        };
        let vector = least(SpmmKernel::Vector).unwrap();
        let compared = [
            Some(vector),
            Some(narrow).filter(|_| wide <= MAX_FEATURES_OF_COMPARISON),
            least(SpmmKernel::RowGroups),
        ];
        let seconds = |candidate: &Candidate| search.predict(candidate).seconds;
        let compared = compared.into_iter().flatten();
        let fastest = compared.min_by(|one, other| seconds(one).total_cmp(&seconds(other)));
        let wanted = fastest.map(|fastest| fastest.kernel);
        assert_eq!(
            search.for_few_features(search.row, &vector),
            wanted.filter(|&kernel| kernel != SpmmKernel::Vector),
            "{what}"
        );
        taken += u32::from(found.kernel == SpmmKernel::Narrow);
    }
    taken
}

#[test]
fn narrow_with_more_than_two_lanes_is_compared_with_other_kernels_for_up_to_8_features() {
    let taken = [
        narrow_is_compared::<f32>(3, Reduction::Sum),
        narrow_is_compared::<f32>(6, Reduction::Sum),
        narrow_is_compared::<f64>(3, Reduction::Sum),
        narrow_is_compared::<f64>(8, Reduction::Mean),
        narrow_is_compared::<f32>(4, Reduction::Max),
        narrow_is_compared::<f64>(8, Reduction::Min),
    ];
    assert!(taken.iter().any(|&taken| taken > 0));
    for wide in [9, 12, 16] {
        assert_eq!(narrow_is_compared::<f32>(wide, Reduction::Sum), 0);
        assert_eq!(narrow_is_compared::<f64>(wide, Reduction::Sum), 0);
        assert_eq!(narrow_is_compared::<f32>(wide, Reduction::Max), 0);
    }
}

#[test]
fn row_groups_is_a_candidate_for_sums_and_means_of_2_to_16_known_features_and_of_32_if_the_matrix_is_small()
 {
    let a = |rows| even(rows, 6, Localities::NONE);
    let is_candidate = |search: &Search| {
        let all = search.candidates(&search.statistics);
        all.iter()
            .any(|choice| choice.candidate.kernel == SpmmKernel::RowGroups)
    };
    for (rows, most) in [(200_000, 16), (100_000, 32)] {
        for wide in [1, 2, 7, 8, 16, 17, 31, 32, 33, 64, 128] {
            let wanted = (2..=most).contains(&wide);
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
