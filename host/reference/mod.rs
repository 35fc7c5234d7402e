//! Reference implementations in f64, the oracle of every test, and the verification of a result against them.

mod gemm;
mod log_softmax;
mod operation;
mod spgemm;
mod verification;

pub use gemm::{Arithmetic, DenseEpilogue, gemm, verify_gemm};
pub use log_softmax::{log_softmax, verify_log_softmax};
pub use operation::Operation;
pub use spgemm::{SpgemmVerification, WrongRow, spgemm, verify_spgemm};
pub use verification::{Entry, Verification, verify_spmm};

use crate::scalar::Scalar;
use ndarray::{Array2, ArrayView2};
use sprs::CsMatViewI;

/// The product `A X` of a sparse matrix (m x k, CSR) and a dense one (k x n), m x n, accumulated in f64.
///
/// The terms of a dot product are added in the order in which the row of `A` stores them.
///
/// # Panics
///
/// If `a` is not stored by rows, if its columns are not as many as the rows of `x`, or if the product has more than
/// `isize::MAX` bytes.
#[must_use]
pub fn spmm<T: Scalar>(a: CsMatViewI<'_, T, u32, u32>, x: ArrayView2<'_, T>) -> Array2<f64> {
    Operation::default().compute(a, x)
}

fn check_operands<V, E>(a: &CsMatViewI<'_, V, u32, u32>, x: &ArrayView2<'_, E>) {
    check_stored_by_rows(a);
    assert_eq!(
        a.cols(),
        x.nrows(),
        "a {} x {} matrix cannot multiply a dense {} x {} one",
        a.rows(),
        a.cols(),
        x.nrows(),
        x.ncols()
    );
}

fn check_stored_by_rows<T>(matrix: &CsMatViewI<'_, T, u32, u32>) {
    assert!(
        matrix.is_csr(),
        "wanted a matrix stored by rows (CSR), found one stored by columns (CSC)"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{arr2, array};
    use sprs::CsMatI;

    #[test]
    fn product_of_a_rectangular_matrix_with_an_empty_row_is_the_hand_computed_one() {
        let a = CsMatI::new(
            (3, 4),
            vec![0u32, 2, 2, 3],
            vec![0u32, 3, 1],
            vec![2.0f32, -1.0, 4.0],
        );
        let x = array![[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]];
        assert_eq!(
            spmm(a.view(), x.view()),
            arr2(&[[-5.0, -4.0], [0.0, 0.0], [12.0, 16.0]])
        );
    }

    #[test]
    fn f32_terms_that_cancel_are_added_in_f64() {
        let a = CsMatI::new((1, 3), vec![0u32, 3], vec![0u32, 1, 2], vec![1.0f32; 3]);
        let x = array![[1e8f32], [1.0], [-1e8]];
        assert_eq!(spmm(a.view(), x.view()), arr2(&[[1.0]]));
    }

    #[test]
    fn empty_operands_give_empty_or_zero_products() {
        let none = CsMatI::<f64, u32, u32>::new((0, 0), vec![0u32], vec![], vec![]);
        assert_eq!(
            spmm(none.view(), Array2::zeros((0, 3)).view()).dim(),
            (0, 3)
        );
        let no_columns = CsMatI::<f64, u32, u32>::new((2, 0), vec![0u32, 0, 0], vec![], vec![]);
        assert_eq!(
            spmm(no_columns.view(), Array2::zeros((0, 3)).view()),
            Array2::<f64>::zeros((2, 3))
        );
        let one = CsMatI::new((1, 1), vec![0u32, 1], vec![0u32], vec![1.0f64]);
        assert_eq!(spmm(one.view(), Array2::zeros((1, 0)).view()).dim(), (1, 0));
    }

    #[test]
    fn a_view_of_some_rows_is_multiplied_by_its_own_rows() {
        let a = CsMatI::new(
            (3, 1),
            vec![0u32, 1, 2, 3],
            vec![0u32; 3],
            vec![1.0f64, 2.0, 3.0],
        );
        let x = array![[10.0f64]];
        assert_eq!(spmm(a.slice_outer(1..3), x.view()), arr2(&[[20.0], [30.0]]));
    }

    #[test]
    #[should_panic(expected = "a 1 x 2 matrix cannot multiply a dense 3 x 1 one")]
    fn shapes_that_do_not_fit_panic_with_both_shapes() {
        let a = CsMatI::new((1, 2), vec![0u32, 1], vec![0u32], vec![1.0f32]);
        let _ = spmm(a.view(), Array2::zeros((3, 1)).view());
    }

    #[test]
    #[should_panic(expected = "found one stored by columns")]
    fn a_matrix_stored_by_columns_panics() {
        let a = CsMatI::new_csc((1, 2), vec![0u32, 1, 1], vec![0u32], vec![1.0f32]);
        let _ = spmm(a.view(), Array2::zeros((2, 1)).view());
    }
}
