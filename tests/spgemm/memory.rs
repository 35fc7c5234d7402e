//! How much device memory a product takes.

use crate::{sorted, whole};
use support::{devices, unshared_devices};
use warprow::device::{Device, EmulatorOptions};
use warprow::spgemm::{SpgemmOptions, multiply, spgemm};
use warprow::{CsrMatrix, DeviceCsr, reference};

/// The least memory of an emulated device that a product fits, in bytes, within 1 KiB.
fn least_memory(a: &CsrMatrix<f32>, b: &CsrMatrix<f32>, options: SpgemmOptions) -> u64 {
    let fits = |kib: u64| {
        let device = Device::emulator(EmulatorOptions::new().memory(Some(kib << 10)));
        let product = DeviceCsr::upload(&device, a.view()).and_then(|a| {
            let b = DeviceCsr::upload(&device, b.view())?;
            multiply(&a, &b, options)
        });
        product.is_ok()
    };
    let (mut too_little, mut enough) = (0, 1 << 12);
    assert!(fits(enough));
    while enough - too_little > 1 {
        let middle = (too_little + enough) / 2;
        if fits(middle) {
            enough = middle;
        } else {
            too_little = middle;
        }
    }
    enough << 10
}

#[test]
fn extents_of_b_are_freed_if_all_rows_are_copied_or_sorted() {
    // Rows of four products. Another row, of 1200 products, is hashed, which reads the extents: 16 bytes for each row.
    const ROWS: u32 = 4000;
    let mut rows: Vec<Vec<u32>> = (0..ROWS)
        .map(|i| sorted(vec![i, (i * 7 + 5) % ROWS]))
        .collect();
    let b = whole(&rows, ROWS);
    let options = SpgemmOptions::default();
    let all_sorted = least_memory(&b, &b, options);
    rows.push((0..600).collect());
    let with_hashed = least_memory(&whole(&rows, ROWS), &b, options);
    // The row itself takes less than 40 KiB: nonzeros of A, staged columns, and entries of C.
    let more = with_hashed - all_sorted;
    assert!(
        more > u64::from(16 * ROWS),
        "{all_sorted} and {with_hashed} bytes"
    );
}

#[test]
fn with_low_memory_the_columns_of_c_take_the_memory_of_staged_values() {
    // Rows of up to 64 products with about as many entries, which are sorted, and rows of one nonzero of A, which are
    // copied from B.
    const ROWS: u32 = 600;
    let rows: Vec<Vec<u32>> = (0..ROWS)
        .map(|i| match i % 5 {
            0 => vec![i],
            _ => sorted((0..8).map(|j| (i * 7 + j * j * 31) % ROWS).collect()),
        })
        .collect();
    let a = whole(&rows, ROWS);
    let options = SpgemmOptions::default();
    let low_memory = options.map_tuning(|tuning| tuning.low_memory(true));
    for device in devices() {
        let of = |options| spgemm(&device, a.view(), a.view(), options).unwrap().c;
        let c = of(low_memory);
        assert_eq!(c, of(options), "on {device}");
        let wanted = reference::spgemm(a.view(), a.view());
        assert_eq!(c.map(|&value| f64::from(value)), wanted, "on {device}");
    }
    let entries = reference::spgemm(a.view(), a.view()).nnz() as u64;
    let column_bytes = entries * size_of::<u32>() as u64;
    let (least, least_of_low) = (
        least_memory(&a, &a, options),
        least_memory(&a, &a, low_memory),
    );
    // The staged values have an element for each product, and the least memory is known to 1 KiB.
    assert!(
        least >= least_of_low + column_bytes / 10 * 9,
        "{least} and {least_of_low} bytes, columns have {column_bytes}"
    );
}

#[test]
fn long_rows_beside_sorted_ones_are_exact_if_values_are_copied_first() {
    // Rows of six products, which are sorted. Two rows have 600 and 3000, and the numeric phase computes them.
    const ROWS: u32 = 3000;
    let mut rows: Vec<Vec<u32>> = (0..ROWS)
        .map(|i| sorted((0..3).map(|j| (i * 7 + j * 911) % ROWS).collect()))
        .collect();
    let b = whole(&rows, ROWS);
    rows.extend([200, 1000].map(|nonzeros| (0..nonzeros).map(|k| 3 * k).collect()));
    let a = whole(&rows, ROWS);
    let wanted = reference::spgemm(a.view(), b.view());
    for device in unshared_devices() {
        for low_memory in [false, true] {
            let options = SpgemmOptions::new().map_tuning(|tuning| tuning.low_memory(low_memory));
            let log = device.log_launches();
            let c = spgemm(&device, a.view(), b.view(), options).unwrap().c;
            let found = c.map(|&value| f64::from(value));
            assert_eq!(found, wanted, "on {device}, low memory: {low_memory}");
            let copies = log.launches()["spgemm_copy_rows_f32"];
            assert_eq!(copies, if low_memory { 2 } else { 1 });
        }
    }
}
