//! Any two matrices at all.

use crate::{assert_exact, whole};
use proptest::prelude::*;
use warprow::CsrMatrix;

/// Rows of any length over `cols` columns, some of them empty.
fn any_rows(rows: usize, cols: u32) -> impl Strategy<Value = CsrMatrix<f32>> {
    let row = proptest::collection::btree_set(0..cols, 0..=cols as usize);
    proptest::collection::vec(row, rows).prop_map(move |rows| {
        let rows: Vec<Vec<u32>> = (rows.into_iter())
            .map(|row| row.into_iter().collect())
            .collect();
        whole(&rows, cols)
    })
}

fn any_operands() -> impl Strategy<Value = (CsrMatrix<f32>, CsrMatrix<f32>)> {
    (0_usize..25, 1_u32..25, 1_u32..70)
        .prop_flat_map(|(m, k, n)| (any_rows(m, k), any_rows(k as usize, n)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn any_product_is_exact((a, b) in any_operands()) {
        assert_exact(&a, &b);
    }
}
