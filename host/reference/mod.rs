//! Reference implementations in f64, and the verification of results against them. All tests compare with these.

mod gcn;
mod gemm;
mod log_softmax;
mod nonempty_columns;
mod operation;
mod spgemm;
mod spmm;
mod verification;
mod whole;

pub use gcn::{LayerView, gcn_logits};
pub use gemm::{Arithmetic, DenseEpilogue, GemmReference, gemm, verify_gemm};
pub use log_softmax::{log_softmax, verify_log_softmax};
pub use operation::Operation;
pub use spgemm::{SpgemmVerification, WrongRow, spgemm, verify_spgemm};
pub use spmm::{spmm, verify_spmm};
pub use verification::{Entry, Verification, verify_close};
pub use whole::{WholeProduct, whole_graph, whole_matrix, whole_selection};

use ndarray::ArrayView2;
use sprs::CsMatViewI;

/// Checks that `a x` exists.
///
/// # Panics
///
/// If `a` is not stored by rows, or has not as many columns as `x` has rows.
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

/// Checks that a matrix is stored by rows.
///
/// # Panics
///
/// If it is not.
fn check_stored_by_rows<T>(matrix: &CsMatViewI<'_, T, u32, u32>) {
    assert!(
        matrix.is_csr(),
        "wanted a matrix stored by rows (CSR), found one stored by columns (CSC)"
    );
}
