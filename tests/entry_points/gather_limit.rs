//! The baseline that the bench of SpMM measures: its result is a sum over the nonzeros of a share.

use crate::assert_all_run;
use crate::operands::{COLS, ROWS, skewed};
use warprow::DeviceCsr;
use warprow::reference::WholeProduct;
use warprow_bench_kernels::PTX;
use warprow_bench_kernels::gather_limit::{LEAST_SHARE, first_row, handle, lanes, launch, shares};
use warprow_kernels::matrix::{Csr, Dense, DenseMut};

#[test]
fn every_entry_point_runs() {
    assert_all_run("gather_limit", |device| {
        device.load_kernels(PTX).unwrap();
        for features in [33, 100] {
            let product = WholeProduct::<f32>::new(skewed().view(), features, 1);
            let (a, x) = (product.a(), product.x());
            let a_there = DeviceCsr::upload(device, a).unwrap();
            let x_there = device.upload(x.as_slice().unwrap()).unwrap();
            let nonzeros = a.nnz() as u32;
            let shares = shares(nonzeros, LEAST_SHARE);
            let wanted: Vec<f32> = (0..shares)
                .flat_map(|share| {
                    let first = (share * LEAST_SHARE) as usize;
                    let of_share = first..(first + LEAST_SHARE as usize).min(a.nnz());
                    let row = |j: usize| {
                        let terms = of_share.clone();
                        let term = |k| a.data()[k] * x[[a.indices()[k] as usize, j]];
                        terms.map(term).sum::<f32>()
                    };
                    let sums: Vec<f32> = (0..features).map(row).collect();
                    let rows = first_row(share, shares, ROWS as u32)
                        ..first_row(share + 1, shares, ROWS as u32);
                    rows.flat_map(move |_| sums.clone())
                })
                .collect();
            for &lanes in lanes(features as u32) {
                let mut y = device.uninitialized::<f32>(ROWS * features).unwrap();
                let pattern = a_there.pattern();
                let arguments = (
                    Csr {
                        rows: ROWS as u32,
                        cols: COLS as u32,
                        row_ptr: pattern.row_ptr().read_only(),
                        col_idx: pattern.col_idx().read_only(),
                        values: a_there.values().read_only(),
                    },
                    Dense::packed(COLS as u32, features as u32, x_there.read_only()),
                    DenseMut::packed(ROWS as u32, features as u32, y.mutable()),
                    nonzeros,
                    LEAST_SHARE,
                );
                let config = launch(nonzeros, features as u32, lanes, LEAST_SHARE);
                // SAFETY: A is an uploaded matrix, X and Y have its columns and rows, and the handle is that of the
                // launch's lanes and features.
                unsafe {
                    let handle = handle(lanes, features as u32);
                    device.launch(&handle, config, arguments).unwrap();
                }
                assert_eq!(y.download().unwrap(), wanted, "{lanes} lanes, {features}");
            }
        }
    });
}
