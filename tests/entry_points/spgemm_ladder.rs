//! The rungs of SpGEMM's ladder.

use crate::assert_all_run;
use crate::operands::whole;
use warprow::reference;
use warprow::spgemm::{SpgemmKernel, multiply_unsorted};
use warprow::{DeviceCsr, generate};

#[test]
fn every_entry_point_runs() {
    // Rows of several sizes of tables, none too long for a rung; some are empty.
    let structure = generate::rmat::<f32>(300, 2500, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
    let rows = structure.outer_iterator();
    let a = whole(rows.map(|row| row.indices().to_vec()).collect(), 300);
    let wanted = reference::spgemm(a.view(), a.view());
    // A row of more entries than a table in shared memory has slots, and one whose sums alone do not fit there.
    let long = vec![vec![], (0..70).collect(), vec![3], (0..42).collect()];
    let long = whole::<f32>(long, 70);
    let b = whole(
        (0..70)
            .map(|k| (k * 500..(k + 1) * 500).collect())
            .collect(),
        35_000,
    );
    let wanted_long = reference::spgemm(long.view(), b.view());
    assert_all_run("spgemm_ladder", |device| {
        let upload = |matrix: &_| DeviceCsr::upload(device, warprow::CsrMatrix::view(matrix));
        let (a, long, b) = (
            upload(&a).unwrap(),
            upload(&long).unwrap(),
            upload(&b).unwrap(),
        );
        for &kernel in SpgemmKernel::ALL {
            let c = multiply_unsorted(kernel, &a, &a).unwrap();
            let c = c.download_sorted().unwrap();
            assert!(
                c.map(|&value| f64::from(value)) == wanted,
                "{}",
                kernel.name()
            );
        }
        let last = *SpgemmKernel::ALL.last().unwrap();
        let c = multiply_unsorted(last, &long, &b).unwrap();
        let c = c.download_sorted().unwrap();
        assert!(c.map(|&value| f64::from(value)) == wanted_long);
    });
}
