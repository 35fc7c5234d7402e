//! Every reduction with alpha and beta: at odd widths, in rows that are split, and in rows without nonzeros.

use super::{
    assert_verified, cut, cut_by_each, exact, kernels, on_devices, run, whole, whole_dense,
};
use crate::has_sized_items;
use ndarray::Array2;
use support::{devices, is_in_turn};
use warprow::reference::Operation;
use warprow::{
    CsrMatrix, Reduction, Spmm, SpmmElement, SpmmOptions, SpmmTuning, bf16, f16, generate,
};

const FACTORS: [[f64; 2]; 6] = [
    [1.0, 0.0],
    [2.5, 0.0],
    [-1.0, 1.0],
    [0.75, -0.3125],
    [0.0, 2.0],
    [0.0, 0.0],
];

fn reductions_verify_at_odd_widths<E: SpmmElement>() {
    let a = generate::uniform::<E>(37, 53, 400, 1).unwrap();
    let wide = generate::uniform::<E::Sum>(37, 53, 400, 2).unwrap();
    for (number, device) in devices().into_iter().enumerate() {
        for &reduction in Reduction::ALL {
            let plans: Vec<_> = cut_by_each(reduction)
                .into_iter()
                .map(|options| Spmm::<E>::plan(&device, a.view(), options).unwrap())
                .collect();
            let plan_wide = Spmm::<E>::plan_wide(&device, wide.view(), cut(reduction)).unwrap();
            for (k, features) in [1, 2, 3, 7, 8, 31, 33, 36, 64, 100, 136]
                .into_iter()
                .enumerate()
            {
                let x = generate::dense::<E>(53, features, 3).unwrap();
                let y = generate::dense::<E>(37, features, 4).unwrap();
                for (turn, factors) in [FACTORS[k % 6], FACTORS[(k + 3) % 6]]
                    .into_iter()
                    .enumerate()
                {
                    // Each emulator has every width.
                    if !is_in_turn(&device, number, k + turn) {
                        continue;
                    }
                    for plan in &plans {
                        assert_verified(plan, &a, x.view(), factors, y.view());
                    }
                    assert_verified(&plan_wide, &wide, x.view(), factors, y.view());
                }
            }
        }
    }
}

#[test]
fn every_reduction_of_either_type_of_values_verifies_at_odd_widths() {
    in_every_type!(reductions_verify_at_odd_widths());
}

fn cut_rows_are_exact<E: SpmmElement>(reductions: &[Reduction], task_sizes: &[u32]) {
    let mut rows: Vec<Vec<u32>> = (0..40).map(|i| (0..(i * 7) % 23).collect()).collect();
    rows[3] = (0..200).collect();
    rows[4] = (0..64).collect();
    rows[39] = (5..105).collect();
    let a = whole::<E>(&rows, 200);
    for features in [5, 36, 72] {
        let (x, y) = (
            whole_dense::<E>(200, features),
            whole_dense::<E>(40, features),
        );
        for device in devices() {
            for &reduction in reductions {
                let operation = Operation::new()
                    .reduction(reduction)
                    .alpha(2.0)
                    .beta(-3.0)
                    .y(y.view());
                let expected = exact(operation, &a, &x);
                let sizes = |kernel| match has_sized_items(kernel) {
                    true => task_sizes,
                    false => &[7],
                };
                let sized = |kernel| {
                    sizes(kernel).iter().map(move |&size| {
                        SpmmOptions::new()
                            .reduction(reduction)
                            .tuning(SpmmTuning::new().kernel(kernel).task_size(size))
                    })
                };
                for options in kernels(reduction).flat_map(sized) {
                    let plan = Spmm::plan(&device, a.view(), options).unwrap();
                    let found = run(&plan, x.view(), [2.0, -3.0], y.view());
                    assert_eq!(found, expected, "{plan}");
                }
            }
        }
    }
}

#[test]
fn alpha_and_beta_count_once_in_rows_cut_over_any_number_of_tasks() {
    use Reduction::{Max, Min, Sum};
    cut_rows_are_exact::<f32>(&[Sum], &[1, 7, 1 << 20]);
    cut_rows_are_exact::<f32>(&[Max, Min], &[7]);
    // How rows are cut does not depend on the type.
    cut_rows_are_exact::<f64>(&[Sum, Min], &[7]);
    cut_rows_are_exact::<f16>(&[Sum, Max], &[1, 1 << 20]);
    cut_rows_are_exact::<bf16>(&[Sum, Min], &[7]);
}

fn empty_rows_are_zero<E: SpmmElement>() {
    let a = whole::<E>(&[vec![], vec![0, 2], vec![], vec![]], 3);
    let none = CsrMatrix::<E>::zero((4, 3));
    for (features, device) in on_devices([6, 48]) {
        let nan = Array2::from_elem((4, features), E::from_f64(f64::NAN));
        let y = whole_dense::<E>(4, features);
        let x = whole_dense::<E>(3, features);
        for options in Reduction::ALL.iter().copied().flat_map(cut_by_each) {
            let plan = Spmm::plan(&device, a.view(), options).unwrap();
            let found = run(&plan, x.view(), [2.0, 0.0], nan.view());
            for row in [0, 2, 3] {
                let row = found.row(row);
                assert!(
                    row.iter().all(|v| v.to_f64().to_bits() == 0),
                    "{plan}: {row:?}"
                );
            }
            let plan = Spmm::plan(&device, none.view(), options).unwrap();
            let found = run(&plan, x.view(), [2.0, 3.0], y.view());
            let expected = y.mapv(|v| E::from_f64(3.0 * v.to_f64()));
            assert_eq!(found, expected, "{plan}");
        }
    }
}

#[test]
fn a_row_without_nonzeros_is_zero_or_beta_y_with_every_reduction() {
    in_every_type!(empty_rows_are_zero());
}

#[test]
fn no_rows_no_columns_and_no_features_give_what_there_is() {
    for device in devices() {
        for (rows, cols, features) in [(0, 4, 3), (4, 0, 3), (4, 0, 40), (4, 5, 0), (0, 0, 0)] {
            let a = CsrMatrix::<f16>::zero((rows, cols));
            let x = whole_dense::<f16>(cols, features);
            let y = whole_dense::<f16>(rows, features);
            for options in Reduction::ALL.iter().copied().flat_map(cut_by_each) {
                let plan = Spmm::plan(&device, a.view(), options).unwrap();
                let found = run(&plan, x.view(), [1.0, -1.0], y.view());
                assert_eq!(found, y.mapv(|v| f16::from_f32(-v.to_f32())), "{plan}");
            }
        }
    }
}
