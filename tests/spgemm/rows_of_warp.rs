//! The rows that a warp measures: fewer if A has fewer rows than leave no warp of the device without any.

use crate::{WAYS, products, whole};
use warprow::device::{Device, DeviceProfile, EmulatorOptions};
use warprow::reference;
use warprow::spgemm::SpgemmOptions;
use warprow_kernels::spgemm::analysis::work::{launch_row_work, rows_of_warp};

/// Warps that one multiprocessor can run at the same time.
const WARPS: u32 = 2048 / 32;

#[test]
fn a_warp_takes_4_to_32_rows() {
    for (rows, wanted) in [
        (0, 4),
        (8 * WARPS - 1, 4),
        (8 * WARPS, 8),
        (16 * WARPS, 16),
        (32 * WARPS - 1, 16),
        (32 * WARPS, 32),
        (u32::MAX, 32),
    ] {
        assert_eq!(rows_of_warp(rows, WARPS), wanted, "{rows} rows");
        let blocks = launch_row_work(rows, wanted).grid.x;
        assert_eq!(blocks, rows.div_ceil(8 * wanted), "{rows} rows");
    }
    assert_eq!(rows_of_warp(100, 0), 32, "an unknown device");
}

#[test]
fn rows_of_all_lengths_are_exact_whatever_a_warp_takes() {
    let mut profile = DeviceProfile::h200();
    profile.hardware.multiprocessors = 1;
    let device = Device::emulator_of(&profile, EmulatorOptions::default());
    // Rows that a lane, a group of lanes and a block measure, one after the other.
    let lengths = [3, 0, 24, 25, 1, 90, 7, 520, 2, 40, 24, 6, 0];
    let b: Vec<Vec<u32>> = (0..701)
        .map(|k| (0..k % 4).map(|j| k % 11 + 13 * j).collect())
        .collect();
    let b = whole(&b, 60);
    // A warp takes 4, 8 and 16 rows. No number is a multiple of those that a block takes.
    for rows in [101, 8 * WARPS + 7, 16 * WARPS + 7] {
        let row = |i: u32| {
            let length = lengths[i as usize % lengths.len()];
            (0..length)
                .map(|j| j * 700 / length + i % 2 * u32::from(length < 300))
                .collect()
        };
        let a: Vec<Vec<u32>> = (0..rows).map(row).collect();
        let a = whole(&a, 701);
        let wanted = reference::spgemm(a.view(), b.view());
        let options = SpgemmOptions::default();
        for (product, way) in products(&device, &a, &b, options).unwrap().iter().zip(WAYS) {
            let product = product.map(|&value| f64::from(value));
            assert!(product == wanted, "{way}, {rows} rows");
        }
    }
}
