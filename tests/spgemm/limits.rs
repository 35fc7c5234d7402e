//! Rows at the limits of a kernel's shared memory: the greatest bitmap of ranks, and bitmaps in several windows.

use crate::{WAYS, bin_limits, products, whole};
use std::fs;
use support::devices;
use warprow::device::{Device, DeviceProfile, EmulatorOptions};
use warprow::spgemm::{self, BinLimits, Spgemm, SpgemmOptions};
use warprow::{CsrMatrix, DeviceCsr, reference};
use warprow_kernels::spgemm::products::bins::{RowWork, numeric};
use warprow_kernels::spgemm::symbolic::bitmap_rows;

/// Words of the greatest bitmap of ranks for a chunk of 1024 entries.
const RANK_WORDS: u32 = 1280;

#[test]
fn the_greatest_bitmap_of_ranks_has_a_word_less_than_the_limit() {
    let limits = BinLimits::new(227 << 10, 4);
    assert_eq!(limits.rank_words_of(1024), RANK_WORDS);
    let bin = |span, entries| {
        let row = RowWork {
            products: 20_000,
            span,
            nonzeros: 20,
            b_rows_are_runs: false,
            a_row_is_run: false,
            is_near: false,
        };
        limits.numeric_bin(row, entries)
    };
    for (size, entries) in [(0, 600), (0, 1024), (1, 1025), (2, 4096), (3, 8192)] {
        let most = 32 * ((RANK_WORDS << size) - 1);
        assert_eq!(bin(most, entries), (numeric::RANK_CHUNKS + size, 1));
        assert_eq!(bin(most + 1, entries), (numeric::SEARCH_CHUNKS + size, 1));
    }
}

#[test]
fn rows_of_the_greatest_bitmap_of_ranks_and_of_wider_spans_are_exact() {
    // Five rows of B with the same 400 columns, of which the last decides the span.
    let first = 7;
    for (words, kernel) in [(RANK_WORDS - 1, "ranked"), (RANK_WORDS, "searched")] {
        let last = first + 32 * words - 1;
        let mut columns: Vec<u32> = (0..399).map(|j| first + 101 * j).collect();
        columns.push(last);
        let b = whole(&vec![columns; 5], last + 1);
        let a: Vec<Vec<u32>> = (0..40).map(|_| (0..5).collect()).collect();
        let a = whole(&a, 5);
        let wanted = reference::spgemm(a.view(), b.view());
        for device in devices() {
            let [left, right] = [&a, &b].map(|m| DeviceCsr::upload(&device, m.view()).unwrap());
            let options = SpgemmOptions::default();
            let plan = Spgemm::<f32>::symbolic(left.pattern(), right.pattern(), options).unwrap();
            let text = plan.to_string();
            assert!(text.contains(&format!("{kernel} 40 chunks,")), "{text}");
            for (product, way) in products(&device, &a, &b, options).unwrap().iter().zip(WAYS) {
                let product = product.map(|&value| f64::from(value));
                assert!(product == wanted, "{way}, {words} words on {device}");
            }
        }
    }
}

#[test]
fn sparse_bitmaps_on_a_gpu_of_little_shared_memory_are_done_in_windows() {
    // A block of this GPU has 63 KiB: 7872 words beside what else the kernel needs, for 251,904 columns.
    let text = DeviceProfile::rtx_4090().to_json();
    let text = text.replace("\"shared_kib\": 100", "\"shared_kib\": 64");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.json");
    fs::write(&path, text).unwrap();
    let profile = DeviceProfile::read(&path).unwrap();
    let device = Device::emulator_of(&profile, EmulatorOptions::default());
    let shared_bytes = device.properties().max_shared_bytes_per_block;
    assert_eq!(shared_bytes, 63 << 10);
    let cols = 520_000;
    assert_eq!(bitmap_rows::words(cols, shared_bytes), 7872);
    // Ten rows with 450 columns each, three of which are in every row: the first, the last, and one in the middle.
    let b: Vec<Vec<u32>> = (0..10)
        .map(|k| {
            let mut columns: Vec<u32> = (0..447).map(|j| 100 + 1163 * j + 7 * k).collect();
            columns.extend([3, 251_903 + 3, cols - 1]);
            columns.sort_unstable();
            columns
        })
        .collect();
    // Rows of 4050 and 4500 products.
    let a: Vec<Vec<u32>> = (0..30)
        .map(|i| (0..10).filter(|&k| i % 3 > 0 || k != i % 10).collect())
        .collect();
    let (a, b) = (whole(&a, 10), whole(&b, cols));
    let wanted = reference::spgemm(a.view(), b.view());
    let log = device.log_launches();
    let options = bin_limits(|b| b.hash_products = 0);
    for (product, way) in products(&device, &a, &b, options).unwrap().iter().zip(WAYS) {
        assert!(product.map(|&value| f64::from(value)) == wanted, "{way}");
    }
    let launches = log.launches();
    assert!(
        launches.contains_key("spgemm_bitmap_rows_1"),
        "{launches:?}"
    );
    assert!(
        !launches.contains_key("spgemm_bitmap_rows_0"),
        "{launches:?}"
    );
}

#[test]
fn a_product_of_more_entries_than_a_row_pointer_counts_is_refused() {
    let number = 70_000;
    let ones = vec![1.0_f32; number as usize];
    let column = CsrMatrix::new(
        (number as usize, 1),
        (0..=number).collect(),
        vec![0; number as usize],
        ones.clone(),
    );
    let row = CsrMatrix::new(
        (1, number as usize),
        vec![0, number],
        (0..number).collect(),
        ones,
    );
    for device in devices() {
        let [a, b] = [&column, &row].map(|m| DeviceCsr::upload(&device, m.view()).unwrap());
        let options = SpgemmOptions::default();
        let symbolic = Spgemm::<f32>::symbolic(a.pattern(), b.pattern(), options);
        let multiplied = spgemm::multiply(&a, &b, options);
        for error in [symbolic.map(|_| ()), multiplied.map(|_| ())] {
            let text = error.unwrap_err().to_string();
            assert!(text.contains("4900000000"), "{text}");
        }
    }
}
