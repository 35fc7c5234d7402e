//! Products of all shapes, by every kernel.

use crate::{SKEWED, assert_exact, assert_right, bin_limits, choices, products, sorted, whole};
use std::time::{Duration, Instant};
use support::{devices, unshared_devices};
use warprow::device::{Device, EmulatorOptions};
use warprow::reference::verify_spgemm;
use warprow::spgemm::{Spgemm, SpgemmOptions, spgemm};
use warprow::{DeviceCsr, generate, reference};

#[test]
fn rectangular_matrices_with_empty_rows_and_columns_are_exact() {
    let a: Vec<Vec<u32>> = (0..37_u32)
        .map(|i| (0..i % 5).map(|k| (7 * i + 5 * k) % 41).collect())
        .map(sorted)
        .collect();
    let b: Vec<Vec<u32>> = (0..41_u32)
        .map(|i| (0..(3 * i) % 8).map(|k| (11 * i + 9 * k) % 1000).collect())
        .map(sorted)
        .collect();
    assert_exact(&whole(&a, 41), &whole(&b, 1003));
}

#[test]
fn empty_matrices_have_products_without_entries() {
    for (rows, inner, cols) in [(0, 0, 0), (0, 3, 5), (3, 0, 5), (3, 5, 0), (4, 4, 4)] {
        let a = whole(&vec![vec![]; rows], inner);
        let b = whole(&vec![vec![]; inner as usize], cols);
        assert_exact(&a, &b);
    }
}

#[test]
fn rows_of_every_number_of_products_around_a_table_are_exact() {
    // Row i takes i rows of B of one entry each, and i rows of two, all columns different or half of them equal.
    let b: Vec<Vec<u32>> = (0..300_u32)
        .map(|k| match k % 3 {
            0 => vec![k],
            1 => vec![k / 2],
            _ => vec![k / 2, 5000 - k],
        })
        .collect();
    let sizes = [
        1_u32, 2, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 63, 64, 65, 86, 97, 130, 170, 193, 257, 299,
    ];
    let a: Vec<Vec<u32>> = sizes.iter().map(|&size| (0..size).collect()).collect();
    assert_exact(&whole(&a, 300), &whole(&b, 5001));
}

#[test]
fn wide_rows_with_full_words_single_bits_and_gaps_are_exact() {
    // Rows of 720 to 5000 products in 70,000 columns: runs of neighbours, the first bits of words, and columns
    // anywhere. A ninth of the rows of B is empty, and the last row of C has columns at both ends alone.
    let b: Vec<Vec<u32>> = (0..300_u32)
        .map(|k| {
            let columns = (0..30).map(|j| match j {
                _ if k % 3 == 0 => k % 2 * 69_000 + j,
                0..10 => k * 231 + j,
                10..20 => 32 * (k * j % 2_000),
                _ => (k * 7_919 + j * 104_729) % 70_000,
            });
            columns.filter(|_| k % 9 != 0).collect()
        })
        .map(sorted)
        .collect();
    let mut a: Vec<Vec<u32>> = [24_u32, 31, 32, 33, 64, 170]
        .into_iter()
        .map(|length| (0..length).map(|k| (k * 300 / length) | 1).collect())
        .map(sorted)
        .collect();
    a.push((0..300).filter(|k| k % 3 == 0).collect());
    assert_exact(&whole(&a, 300), &whole(&b, 70_001));
}

#[test]
fn one_very_long_row_among_short_ones_is_exact() {
    let n = 3000_u32;
    let mut a: Vec<Vec<u32>> = (0..20_u32)
        .map(|i| vec![i, 2 * i + 1])
        .map(sorted)
        .collect();
    a[7] = (0..n).collect();
    let b: Vec<Vec<u32>> = (0..n)
        .map(|k| sorted(vec![k, (k * 37) % 60_000, 59_999 - k]))
        .collect();
    assert_exact(&whole(&a, n), &whole(&b, 60_000));
}

#[test]
fn long_rows_of_a_are_measured_by_a_block_and_walked_by_its_warps() {
    // 513 nonzeros of A are a long row; blocks of 16 warps take nonzeros of their own from 1024 on.
    let n = 2500_u32;
    let a: Vec<Vec<u32>> = [511, 512, 513, 1023, 1024, 1025, 2500]
        .into_iter()
        .map(|length| (0..length).map(|k| k + n - length).collect())
        .collect();
    let b: Vec<Vec<u32>> = (0..n)
        .map(|k| {
            if k % 3 == 0 {
                vec![]
            } else {
                vec![(k * 7919) % 5000]
            }
        })
        .collect();
    assert_exact(&whole(&a, n), &whole(&b, 5000));
}

#[test]
fn a_long_row_of_short_rows_of_b_is_spread_over_blocks_and_adds_up_a_column_that_all_of_them_have()
{
    // Of 4500 nonzeros, three parts: a column in all rows of B, one in every other, a long row of B, and columns of
    // their own.
    let n = 4500_u32;
    let b: Vec<Vec<u32>> = (0..n)
        .map(|k| match k {
            17 => (0..5000).map(|j| 3 * j).collect(),
            _ => sorted(vec![7_000, 7_001 + k % 2, (k * 7919) % 40_000]),
        })
        .collect();
    let a = vec![vec![3, 17], (0..n).collect::<Vec<u32>>(), vec![]];
    assert_exact(&whole(&a, n), &whole(&b, 40_000));
}

#[test]
fn rows_of_more_tiles_than_a_warp_looks_back_at_once_are_exact() {
    let rows = 35 * 1024 + 5;
    let a: Vec<Vec<u32>> = (0..rows)
        .map(|i| (0..i % 3).map(|k| 2 * k + i % 2).collect())
        .collect();
    let b: Vec<Vec<u32>> = (0..4).map(|k| vec![k, 2 * k + 5]).collect();
    let (a, b) = (whole(&a, 4), whole(&b, 12));
    let wanted = reference::spgemm(a.view(), b.view());
    for device in devices() {
        for product in products(&device, &a, &b, SpgemmOptions::default()).unwrap() {
            assert!(product.map(|&value| f64::from(value)) == wanted);
        }
    }
}

#[test]
fn a_few_long_rows_of_b_are_shared_by_the_warps_of_a_block() {
    let b: Vec<Vec<u32>> = (0..6_u32)
        .map(|k| (0..1500).map(|j| j * (k + 1) + k).collect())
        .collect();
    let a = vec![vec![0, 1, 5], vec![], vec![2], vec![0, 1, 2, 3, 4, 5]];
    assert_exact(&whole(&a, 6), &whole(&b, 10_000));
}

#[test]
fn a_very_long_row_of_b_among_short_ones_is_shared_by_all_warps() {
    // Blocks of 16 warps take nonzeros of their own from 1024 on, one of which brings 4500 products.
    let n = 1100_u32;
    let mut b: Vec<Vec<u32>> = (0..n).map(|k| vec![(k * 37) % 9000]).collect();
    b[500] = (0..4500).map(|j| 2 * j).collect();
    let a = vec![(0..n).collect::<Vec<u32>>(), vec![3], vec![500, 501]];
    assert_exact(&whole(&a, n), &whole(&b, 9000));
}

#[test]
fn columns_crowded_in_a_part_of_a_wide_span_are_exact() {
    // Neighbouring columns far from the others share a bucket of a hash table's columns: 700 do not fit it, 250 do.
    let b: Vec<Vec<u32>> = vec![
        (0..700).collect(),
        vec![3_000_000],
        (0..600).map(|j| j * 5000 + 7).collect(),
        (0..250).map(|j| 2_000_001 + j).collect(),
        (0..600).map(|j| 1_000_000 + j * j % 9001).collect(),
    ];
    let b: Vec<Vec<u32>> = b.into_iter().map(sorted).collect();
    let mut a = vec![
        vec![0, 1],
        vec![2, 3],
        vec![],
        vec![0, 1, 2, 3, 4],
        vec![1, 4],
        vec![1, 3],
    ];
    a.extend((0..25).map(|row| vec![row % 3, 3, 4]));
    assert_exact(&whole(&a, 5), &whole(&b, 3_000_001));
}

#[test]
fn spans_wider_than_any_bitmap_are_done_in_windows() {
    let cols = 4_000_000;
    let b: Vec<Vec<u32>> = (0..40_u32)
        .map(|k| (0..30).map(|j| (j * 133_331 + k * 17) % cols).collect())
        .map(sorted)
        .collect();
    let a = vec![(0..40).collect::<Vec<u32>>(), vec![3], vec![0, 39]];
    let (a, b) = (whole(&a, 40), whole(&b, cols));
    let wanted = reference::spgemm(a.view(), b.view());
    let options = bin_limits(|b| {
        b.sort_products = 0;
        b.hash_products = 0;
    });
    let device = Device::emulator(EmulatorOptions::default());
    let product = spgemm(&device, a.view(), b.view(), options).unwrap();
    assert!(product.c.map(|&value| f64::from(value)) == wanted);
}

#[test]
fn few_nonzeros_in_nearly_2_pow_32_columns_take_the_time_of_their_number() {
    // A row of 30,000 products, more than a hash table takes, and a short one. Most columns are in two rows of B.
    let (rows, cols) = (3000_u32, u32::MAX);
    let column = |k: u32, j: u32| (k % 1500 * 10 + j) * 286_331 + u32::from(k == 1500 && j > 2) * 5;
    let mut b: Vec<Vec<u32>> = (0..rows)
        .map(|k| (0..10).map(|j| column(k, j)).collect())
        .collect();
    b[2999][9] = cols - 1;
    let a = vec![(0..rows).collect::<Vec<u32>>(), vec![], vec![5, 2999]];
    let (a, b) = (whole(&a, rows), whole(&b, cols));
    assert_eq!(b.nnz(), 30_000);
    let wanted = reference::spgemm(a.view(), b.view());
    assert_eq!(wanted.indices().last(), Some(&(cols - 1)));
    let start = Instant::now();
    for device in devices() {
        for product in products(&device, &a, &b, SpgemmOptions::default()).unwrap() {
            assert_eq!(product.cols(), cols as usize);
            assert!(product.map(|&value| f64::from(value)) == wanted);
            assert!(verify_spgemm(a.view(), b.view(), product.view()).ok());
        }
    }
    // In windows, one product alone takes minutes on the emulator.
    assert!(
        start.elapsed() < Duration::from_secs(60),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn banded_and_blocked_matrices_are_right() {
    let banded = generate::banded::<f32>(150, 170, 13, 13, 1).unwrap();
    let transposed = generate::banded::<f32>(170, 150, 9, 15, 2).unwrap();
    assert_right(&banded, &transposed);
    // Of narrow bands and of wide ones, which have rows of more than 64 columns.
    for width in [11, 20] {
        let banded = generate::banded::<f64>(90, 90, width, width, 3).unwrap();
        assert_right(&banded, &banded);
    }
    for (block, size) in [(20, 100), (70, 140)] {
        let rows: Vec<Vec<u32>> = (0..size)
            .map(|i| (i / block * block..(i / block + 1) * block).collect())
            .collect();
        let blocks = whole(&rows, size);
        assert_exact(&blocks, &blocks);
    }
}

#[test]
fn a_skewed_graph_verifies_in_both_types() {
    let a = generate::rmat::<f32>(600, 4000, SKEWED, 3).unwrap();
    assert_right(&a, &a);
    let a = generate::rmat::<f64>(401, 2500, SKEWED, 3).unwrap();
    assert_right(&a, &a);
}

#[test]
fn the_choices_of_these_tests_send_rows_to_every_kernel() {
    let device = Device::emulator(EmulatorOptions::default());
    let skewed = generate::rmat::<f32>(600, 4000, SKEWED, 3).unwrap();
    let banded = generate::banded::<f32>(150, 150, 13, 13, 1).unwrap();
    let mut rows = vec![vec![5]; 1500];
    rows[0] = (0..1500).collect();
    let one_long = whole(&rows, 1500);
    // Rows of B that are runs, of which one of A takes all but one.
    let mut holed: Vec<Vec<u32>> = (0..40_u32)
        .map(|i| (i..(i + 10).min(40)).collect())
        .collect();
    holed[0] = (20..30).filter(|&k| k != 25).collect();
    let holed = whole(&holed, 40);
    let mut plans = String::new();
    for matrix in [&skewed, &banded, &one_long, &holed] {
        let matrix = DeviceCsr::upload(&device, matrix.view()).unwrap();
        for options in choices() {
            let pattern = matrix.pattern();
            let spgemm = Spgemm::<f32>::symbolic(pattern, pattern, options).unwrap();
            plans += &spgemm.to_string();
        }
    }
    for kernel in [
        "symbolic: copied",
        "runs",
        "merged",
        "sorted",
        "hashed",
        "narrow",
        "bitmaps",
        "numeric: copied",
        "windows",
        "short",
        "ranked",
        "searched",
        "spread",
        "in order",
        "intervals",
        "neighbours",
    ] {
        assert!(
            plans.contains(&format!("{kernel} ")),
            "no {kernel}: {plans}"
        );
    }
}

#[test]
fn rows_that_are_all_copied_or_sorted_are_exact() {
    // Of the rows of A with one nonzero, some copy a row of B that is too long to be sorted.
    let rows_of_b: Vec<Vec<u32>> = (0..40)
        .map(|k| match k {
            0 => (0..1500).map(|j| 2 * j).collect(),
            _ => (0..3).map(|j| k + 900 * j).collect(),
        })
        .collect();
    let rows_of_a: Vec<Vec<u32>> = (0..300)
        .map(|i| match (i % 3, i % 2) {
            (0, 0) => vec![0],
            (0, _) => vec![5],
            _ => vec![1 + i % 30, 31 + i % 9],
        })
        .collect();
    let (a, b) = (whole(&rows_of_a, 40), whole(&rows_of_b, 3000));
    for device in unshared_devices() {
        for low_memory in [false, true] {
            let options = SpgemmOptions::new().map_tuning(|tuning| tuning.low_memory(low_memory));
            let log = device.log_launches();
            let product = spgemm(&device, a.view(), b.view(), options).unwrap();
            assert_eq!(
                product.c.map(|&value| f64::from(value)),
                reference::spgemm(a.view(), b.view()),
                "on {device}, low memory: {low_memory}"
            );
            let launched = log.launches();
            assert!(launched.contains_key("spgemm_copy_products_f32"));
            let copies = if low_memory { 2 } else { 1 };
            assert_eq!(launched["spgemm_copy_rows_f32"], copies, "{launched:?}");
        }
    }
}
