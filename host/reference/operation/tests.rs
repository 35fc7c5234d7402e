//! Operations on small matrices against results computed by hand, and what their bound lets pass.

use super::*;
use ndarray::{arr2, array};
use sprs::CsMatI;

/// Rows of 2 x0 - x1, nothing, and 4 x1.
fn operand() -> CsMatI<f32, u32, u32> {
    CsMatI::new(
        (3, 2),
        vec![0, 2, 2, 3],
        vec![0, 1, 1],
        vec![2.0, -1.0, 4.0],
    )
}

fn of<'a>(reduction: Reduction) -> Operation<'a, f32> {
    Operation::new().reduction(reduction)
}

#[test]
fn each_reduction_of_a_small_matrix_is_the_hand_computed_one() {
    let (a, x) = (operand(), array![[1.0_f32, -3.0], [5.0, 7.0]]);
    for (reduction, expected) in [
        (
            Reduction::Sum,
            arr2(&[[-3.0, -13.0], [0.0, 0.0], [20.0, 28.0]]),
        ),
        (
            Reduction::Mean,
            arr2(&[[-1.5, -6.5], [0.0, 0.0], [20.0, 28.0]]),
        ),
        (
            Reduction::Max,
            arr2(&[[2.0, -6.0], [0.0, 0.0], [20.0, 28.0]]),
        ),
        (
            Reduction::Min,
            arr2(&[[-5.0, -7.0], [0.0, 0.0], [20.0, 28.0]]),
        ),
    ] {
        assert_eq!(
            of(reduction).compute(a.view(), x.view()),
            expected,
            "{reduction:?}"
        );
    }
}

#[test]
fn a_nan_among_the_products_is_the_greatest_and_the_least() {
    for x in [array![[f32::NAN], [1.0]], array![[1.0], [f32::NAN]]] {
        for reduction in [Reduction::Max, Reduction::Min] {
            let result = of(reduction).compute(operand().view(), x.view());
            assert!(result[(0, 0)].is_nan());
            assert_eq!(result[(1, 0)], 0.0);
        }
    }
}

#[test]
fn what_is_multiplied_by_zero_is_not_looked_at() {
    let nan = Array2::from_elem((3, 1), f32::NAN);
    let x = array![[1.0_f32], [1.0]];
    let ignores_y = of(Reduction::Sum).y(nan.view()).alpha(2.0);
    let result = ignores_y.compute(operand().view(), x.view());
    assert_eq!(result, arr2(&[[2.0], [0.0], [8.0]]));
    let y = array![[1.0_f32], [2.0], [3.0]];
    let ignores_x = of(Reduction::Max).alpha(0.0).beta(-2.0).y(y.view());
    let result = ignores_x.compute(operand().view(), nan.slice(ndarray::s![..2, ..]));
    assert_eq!(result, arr2(&[[-2.0], [-4.0], [-6.0]]));
}

#[test]
#[should_panic(expected = "with beta 1 the Y from before is wanted")]
fn beta_without_y_panics() {
    let operation = of(Reduction::Sum).beta(1.0);
    let _ = operation.compute(operand().view(), array![[1.0_f32], [1.0]].view());
}

/// The verification of `got` as the product of rows of ones and the columns of `x`.
fn verify<E: Scalar>(operation: Operation<'_, E>, x: &[f64], got: f64) -> bool {
    let n = x.len() as u32;
    let a = CsMatI::new(
        (1, x.len()),
        vec![0, n],
        (0..n).collect(),
        vec![E::ONE; x.len()],
    );
    let x = Array2::from_shape_fn((x.len(), 1), |(i, _)| E::from_f64(x[i]));
    let got = Array2::from_elem((1, 1), E::from_f64(got));
    operation.verify(a.view(), x.view(), got.view()).ok()
}

#[test]
fn a_16_bit_result_may_err_by_its_own_rounding_and_no_more() {
    fn check<E: Scalar>() {
        let ulp = 4.0 * E::UNIT_ROUNDOFF;
        assert!(verify::<E>(Operation::default(), &[1.0, 1.0, 1.0], 3.0));
        // Neither number next to 3 is 3 rounded.
        assert!(!verify::<E>(
            Operation::default(),
            &[1.0, 1.0, 1.0],
            3.0 + ulp
        ));
        assert!(!verify::<E>(
            Operation::default(),
            &[1.0, 1.0, 1.0],
            3.0 - ulp
        ));
        // The sum is half way between two numbers, and f32 may have had it on either side.
        let half_way = [3.0, ulp / 2.0];
        assert!(verify::<E>(Operation::default(), &half_way, 3.0));
        assert!(verify::<E>(Operation::default(), &half_way, 3.0 + ulp));
        assert!(!verify::<E>(
            Operation::default(),
            &half_way,
            3.0 + 2.0 * ulp
        ));
    }
    check::<half::f16>();
    check::<half::bf16>();
}

#[test]
fn an_infinity_passes_for_a_number_beyond_the_range_and_for_no_other() {
    let sum = |x: &[f64], got| verify::<half::f16>(Operation::default(), x, got);
    assert!(sum(&[60000.0, 60000.0], f64::INFINITY));
    assert!(!sum(&[60000.0, 60000.0], f64::NEG_INFINITY));
    assert!(!sum(&[60000.0, 60000.0], 65504.0));
    assert!(!sum(&[60000.0, 1.0], f64::INFINITY));
    assert!(sum(&[-60000.0, -60000.0], f64::NEG_INFINITY));
}

#[test]
fn an_extremum_may_err_by_one_rounding_whatever_the_number_of_products() {
    let terms = vec![1.0; 1000];
    let max = |got| verify::<f32>(of(Reduction::Max), &terms, got);
    assert!(max(1.0));
    assert!(!max(1.0 + 2.0 * f64::from(f32::EPSILON)));
    assert!(!verify::<f32>(of(Reduction::Min), &[-1.0, 1.0], 1.0));
}

#[test]
fn of_200_000_random_terms_a_sum_of_known_depth_may_err_by_little() {
    let terms = crate::generate::dense::<f32>(200_000, 1, 1).unwrap();
    let terms: Vec<f64> = terms.iter().map(|&x| x.into()).collect();
    let sum: f64 = terms.iter().sum();
    let operation = Operation::<f32>::new().depth(300);
    assert!(verify(operation, &terms, sum));
    assert!(verify(operation, &terms, sum + 1.0));
    assert!(!verify(operation, &terms, sum + 4.0));
    // In any order, each term may take part in 200 000 roundings.
    assert!(verify(Operation::<f32>::default(), &terms, sum + 500.0));
}

#[test]
fn a_depth_beyond_the_length_of_a_row_allows_no_more() {
    let operation = Operation::<f32>::new().depth(1000);
    let u = f32::UNIT_ROUNDOFF;
    assert!(verify(operation, &[1.0; 3], 3.0 + 8.0 * u));
    assert!(!verify(operation, &[1.0; 3], 3.0 + 12.0 * u));
}

#[test]
fn wrong_factors_and_lengths_fail() {
    let y = array![[10.0_f32]];
    let operation = Operation::new()
        .reduction(Reduction::Mean)
        .alpha(2.0)
        .beta(3.0)
        .y(y.view());
    assert!(verify(operation, &[1.0, 2.0], 33.0));
    for wrong in [36.0, 31.5, 13.0, 3.0, 30.0] {
        assert!(!verify(operation, &[1.0, 2.0], wrong), "{wrong}");
    }
}
