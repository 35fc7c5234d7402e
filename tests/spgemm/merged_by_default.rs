//! Rows that the default options merge: those of a matrix with at least as many rows as threads can be resident.

use crate::{WAYS, bin_limits, products};
use std::num::NonZeroUsize;
use warprow::device::{Device, EmulatorOptions, Schedule};
use warprow::spgemm::{Spgemm, SpgemmOptions, SpgemmTuning, spgemm};
use warprow::{CsrMatrix, DeviceCsr, reference};

/// Threads that can be resident on a device of one multiprocessor.
const THREADS: usize = 2048;

/// Devices of one multiprocessor.
fn devices() -> [Device; 2] {
    let options = EmulatorOptions::new().workers(NonZeroUsize::new(1));
    let random = options.schedule(Schedule::Random { seed: 0x5eed });
    [Device::emulator(options), Device::emulator(random)]
}

/// A tridiagonal matrix.
fn tridiagonal(rows: usize, value: impl Fn(usize) -> f32) -> CsrMatrix<f32> {
    let mut indptr = vec![0];
    let mut indices = Vec::new();
    for row in 0..rows {
        let columns = row.saturating_sub(1)..(row + 2).min(rows);
        indices.extend(columns.map(|column| column as u32));
        indptr.push(indices.len() as u32);
    }
    let values = (0..indices.len()).map(value).collect();
    CsrMatrix::new((rows, rows), indptr, indices, values)
}

/// Values that are exact in f32 and differ from row to row.
fn whole(k: usize) -> f32 {
    (k % 7) as f32 - 3.0
}

/// Values whose sums are rounded.
fn rounded(k: usize) -> f32 {
    1.0 / (1.0 + (k % 11) as f32) - 0.3
}

fn bits(c: &CsrMatrix<f32>) -> Vec<u32> {
    c.data().iter().map(|value| value.to_bits()).collect()
}

#[test]
fn rows_of_large_matrices_are_merged_and_exact() {
    for rows in [THREADS - 1, THREADS, 2100] {
        let a = tridiagonal(rows, whole);
        let wanted = reference::spgemm(a.view(), a.view());
        for device in devices() {
            let there = DeviceCsr::upload(&device, a.view()).unwrap();
            let (pattern, options) = (there.pattern(), SpgemmOptions::default());
            let plan = Spgemm::<f32>::symbolic(pattern, pattern, options).unwrap();
            let phases = plan
                .to_string()
                .matches(&format!("merged {rows} rows,"))
                .count();
            assert_eq!(phases, if rows < THREADS { 0 } else { 2 }, "{plan}");
            for (product, way) in products(&device, &a, &a, options).unwrap().iter().zip(WAYS) {
                let product = product.map(|&value| f64::from(value));
                assert!(product == wanted, "{way}, {rows} rows on {device}");
            }
        }
    }
}

#[test]
fn merged_rows_have_the_bits_of_other_kernels_and_of_blocks_of_rows() {
    let a = tridiagonal(5000, rounded);
    let deterministic = SpgemmOptions::new().deterministic(true);
    // A row of A takes 240 bytes, one of B 68: blocks of some 2200 rows, and one of fewer, which are not merged.
    let in_blocks = deterministic.tuning(SpgemmTuning::new().memory(5000 * 68 + 2200 * 240));
    let sorted = bin_limits(|b| b.merge_nonzeros = 0).deterministic(true);
    for device in devices() {
        let [whole, phases, _] = products(&device, &a, &a, deterministic).unwrap();
        let [other, ..] = products(&device, &a, &a, sorted).unwrap();
        let log = device.log_launches();
        let blocks = spgemm(&device, a.view(), a.view(), in_blocks).unwrap();
        let launches = log.launches();
        assert_eq!(blocks.blocks, 3);
        assert_eq!(launches["spgemm_merge_products_f32_8"], 2, "{launches:?}");
        for c in [&phases, &other, &blocks.c] {
            assert_eq!((c.indptr(), c.indices()), (whole.indptr(), whole.indices()));
            assert_eq!(bits(c), bits(&whole), "on {device}");
        }
    }
}
