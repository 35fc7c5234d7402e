//! Any matrix, width, reduction and factors at all.

use super::{exact, kernels, run, whole, whole_dense};
use proptest::prelude::*;
use support::devices_in_turn;
use warprow::reference::Operation;
use warprow::{Reduction, Spmm, SpmmElement, SpmmOptions, SpmmTuning, bf16, f16};

/// Rows of any length over up to 40 columns, some of them empty.
fn any_rows() -> impl Strategy<Value = (Vec<Vec<u32>>, usize)> {
    (1_u32..40).prop_flat_map(|cols| {
        let row = proptest::collection::btree_set(0..cols, 0..=cols as usize);
        let row = row.prop_map(|row| row.into_iter().collect());
        (proptest::collection::vec(row, 0..30), Just(cols as usize))
    })
}

fn any_product_is_exact<E: SpmmElement>(
    (rows, cols): &(Vec<Vec<u32>>, usize),
    features: usize,
    options: SpmmOptions,
    [alpha, beta]: [f64; 2],
) {
    let a = whole::<E>(rows, *cols);
    let (x, y) = (
        whole_dense::<E>(*cols, features),
        whole_dense::<E>(rows.len(), features),
    );
    let operation = Operation::new()
        .reduction(options.reduction)
        .alpha(alpha)
        .beta(beta)
        .y(y.view());
    let expected = exact(operation, &a, &x);
    for (number, kernel) in kernels(options.reduction).enumerate() {
        let options = options.map_tuning(|tuning| tuning.kernel(kernel));
        for device in devices_in_turn(features + number) {
            let plan = Spmm::plan(&device, a.view(), options).unwrap();
            let found = run(&plan, x.view(), [alpha, beta], y.view());
            assert_eq!(found, expected, "{plan}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_matrix_any_width_and_any_whole_factors_are_exact(
        matrix in any_rows(),
        features in prop_oneof![1_usize..80, (5_usize..20).prop_map(|eighth| 8 * eighth)],
        task_size in 1_u32..50,
        column_blocks in 1_u32..6,
        reduction in proptest::sample::select(vec![Reduction::Sum, Reduction::Max, Reduction::Min]),
        alpha in -3_i32..4,
        beta in -3_i32..4,
    ) {
        let tuning = SpmmTuning::new().task_size(task_size).column_blocks(column_blocks);
        let options = SpmmOptions::new().reduction(reduction).tuning(tuning);
        in_every_type!(any_product_is_exact(&matrix, features, options, [alpha.into(), beta.into()]));
    }
}
