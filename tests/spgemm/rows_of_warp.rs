//! The rows that a warp of `row_work` takes: fewer than 32 if A has few rows, and these are long.

use crate::{WAYS, products, whole};
use warprow::device::{CounterOptions, Device, DeviceProfile, EmulatorOptions};
use warprow::reference;
use warprow::spgemm::SpgemmOptions;
use warprow_kernels::spgemm::analysis::work::{launch_row_work, rows_of_warp};

/// Warps that one multiprocessor can run at the same time.
const WARPS: u32 = 2048 / 32;

#[test]
fn a_warp_takes_4_to_32_rows() {
    let cases = [
        (0, 32),
        (1, 4),
        (8 * WARPS - 1, 4),
        (8 * WARPS, 8),
        (16 * WARPS, 16),
        (32 * WARPS - 1, 16),
        (32 * WARPS, 32),
        (u32::MAX / 25, 32),
    ];
    for (rows, wanted) in cases {
        assert_eq!(rows_of_warp(rows, 25 * rows, WARPS), wanted, "{rows} rows");
        let short = rows_of_warp(rows, 24 * rows, WARPS);
        assert_eq!(short, 32, "{rows} rows that lanes measure");
        let of_blocks = |blocks| blocks * 8 * u64::from(wanted);
        let blocks = u64::from(launch_row_work(rows, wanted).grid.x);
        let rows = u64::from(rows);
        assert!(of_blocks(blocks) >= rows && (rows == 0 || of_blocks(blocks - 1) < rows));
    }
    assert_eq!(rows_of_warp(100, 9999, 0), 32, "an unknown device");
}

#[test]
fn rows_of_all_lengths_are_exact_whatever_a_warp_takes() {
    let mut profile = DeviceProfile::h200();
    profile.hardware.multiprocessors = 1;
    let device = Device::emulator_of(&profile, EmulatorOptions::default());
    // Rows that a lane, a group of lanes and a block measure, one after the other.
    let lengths = [3, 0, 24, 25, 1, 90, 7, 513, 2, 512, 24, 6, 0];
    let b: Vec<Vec<u32>> = (0..701)
        .map(|k| (0..k % 4).map(|j| k % 11 + 13 * j).collect())
        .collect();
    let b = whole(&b, 60);
    // No number is a multiple of the rows that a block takes.
    for (rows, of_warp) in [(101, 4), (8 * WARPS + 7, 8), (16 * WARPS + 7, 16)] {
        let row = |i: u32| {
            let length = lengths[i as usize % lengths.len()];
            let shift = i % 2 * u32::from(length < 300);
            (0..length).map(|j| j * 700 / length + shift).collect()
        };
        let a: Vec<Vec<u32>> = (0..rows).map(row).collect();
        let a = whole(&a, 701);
        assert_eq!(rows_of_warp(rows, a.nnz() as u32, WARPS), of_warp);
        let wanted = reference::spgemm(a.view(), b.view());
        device
            .set_counters(Some(CounterOptions::default()))
            .unwrap();
        let options = SpgemmOptions::default();
        for (product, way) in products(&device, &a, &b, options).unwrap().iter().zip(WAYS) {
            let product = product.map(|&value| f64::from(value));
            assert!(product == wanted, "{way}, {rows} rows");
        }
        let reports = device.launch_reports().unwrap();
        let measured = reports
            .iter()
            .filter(|report| report.kernel == "spgemm_row_work");
        let blocks: Vec<u32> = measured.map(|report| report.grid[0]).collect();
        assert_eq!(blocks, [rows.div_ceil(8 * of_warp); 3], "{rows} rows");
    }
}
