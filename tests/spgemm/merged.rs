//! Rows whose rows of B are merged: every number of nonzeros of A, and the limits to rows that are not merged.

use crate::{WAYS, assert_exact, bin_limits, products, whole};
use support::devices;
use warprow::device::{Device, EmulatorOptions};
use warprow::spgemm::{Spgemm, SpgemmOptions};
use warprow::{CsrMatrix, DeviceCsr, generate, reference};

/// Rows of B: every fifth is empty, the others have 1 to 12 columns of 97, many of them in several rows.
fn short_rows(count: u32) -> Vec<Vec<u32>> {
    let row = |k: u32| match k % 5 {
        4 => Vec::new(),
        _ => (0..1 + k % 12).map(|j| k % 3 + 8 * j + j % 2).collect(),
    };
    (0..count).map(row).collect()
}

/// Every row of up to 16 nonzeros of A is merged, wherever its columns are, if it has at most `products` products.
fn merged(products: u32, few_rows: u32) -> SpgemmOptions {
    bin_limits(|b| {
        (b.merge_nonzeros, b.merge_products) = (16, products);
        (b.merge_distance, b.few_rows) = (u32::MAX, few_rows);
    })
}

fn assert_merged_exactly(a: &CsrMatrix<f32>, b: &CsrMatrix<f32>, options: SpgemmOptions) {
    let wanted = reference::spgemm(a.view(), b.view());
    for device in devices() {
        for (product, way) in products(&device, a, b, options).unwrap().iter().zip(WAYS) {
            let product = product.map(|&value| f64::from(value));
            assert!(product == wanted, "{way}, {options:?} on {device}");
        }
    }
}

#[test]
fn rows_of_every_number_of_nonzeros_up_to_one_more_than_are_merged_are_exact() {
    // 341 rows, which no block or warp divides, of 0 to 17 nonzeros.
    let a: Vec<Vec<u32>> = (0..341_u32)
        .map(|i| {
            (0..i % 18)
                .map(|j| i % 7 + 5 * j + i % (j + 1) % 5)
                .collect()
        })
        .collect();
    assert_exact(&whole(&a, 100), &whole(&short_rows(100), 97));
}

#[test]
fn bins_of_few_rows_are_merged_with_the_next_size_and_the_last_one_by_itself() {
    let b = whole(&short_rows(40), 97);
    for lengths in [[3, 3, 3], [3, 12, 3], [3, 3, 16], [16, 16, 16], [16, 7, 3]] {
        let a: Vec<Vec<u32>> = (0..40)
            .map(|i| (i % 9..i % 9 + lengths[i as usize % 3]).collect())
            .collect();
        for few_rows in [0, 30, 1000] {
            assert_merged_exactly(&whole(&a, 40), &b, merged(u32::MAX, few_rows));
        }
    }
}

#[test]
fn a_long_row_among_short_ones_in_a_warp_is_exact_and_one_of_more_products_is_not_merged() {
    let limit = 70;
    let mut b = short_rows(40);
    b[0] = (0..limit - 1).map(|j| 2 * j).collect();
    // With row 1 of B, which has two columns, the row has a product more than the limit; with row 5, of six, too.
    let a: Vec<Vec<u32>> = (0..70)
        .map(|i| {
            if i == 9 {
                vec![0, 5]
            } else {
                vec![i % 13, 20 + i % 5]
            }
        })
        .collect();
    let (a, b) = (whole(&a, 40), whole(&b, 2 * limit));
    for products in [limit, limit + 100] {
        assert_merged_exactly(&a, &b, merged(products, 0));
    }
}

#[test]
fn columns_up_to_the_last_of_2_pow_32_are_merged() {
    let cols = u32::MAX;
    let b = [
        vec![0, 1 << 31, cols - 1],
        vec![5, cols - 2, cols - 1],
        vec![cols - 1],
    ];
    let a: Vec<Vec<u32>> = vec![vec![0, 1, 2], vec![1, 2], vec![0], vec![], vec![0, 2]];
    assert_merged_exactly(&whole(&a, 3), &whole(&b, cols), merged(u32::MAX, 0));
}

#[test]
fn rows_of_a_grid_are_merged_and_rows_at_random_are_not() {
    let device = Device::emulator(EmulatorOptions::default());
    let text = |a: &CsrMatrix<f32>, options| {
        let a = DeviceCsr::upload(&device, a.view()).unwrap();
        Spgemm::<f32>::symbolic(a.pattern(), a.pattern(), options)
            .unwrap()
            .to_string()
    };
    let side = 40;
    let neighbours = |i: u32| {
        let all = [
            i.checked_sub(side),
            i.checked_sub(1),
            Some(i),
            Some(i + 1),
            Some(i + side),
        ];
        all.into_iter()
            .flatten()
            .filter(|&k| k < side * side)
            .collect()
    };
    let grid: Vec<Vec<u32>> = (0..side * side).map(neighbours).collect();
    let grid = whole(&grid, side * side);
    // Plans merge no rows of a matrix of fewer rows than resident threads, unless they are asked to.
    let asked = || bin_limits(|b| b.merge_nonzeros = 16);
    let plan = text(&grid, asked());
    assert!(plan.contains("merged 1600 rows"), "{plan}");
    let plan = text(&grid, SpgemmOptions::default());
    assert!(!plan.contains("merged"), "{plan}");
    assert_exact(&grid, &grid);
    let random = generate::uniform::<f32>(2000, 2000, 10_000, 1).unwrap();
    let plan = text(&random, asked());
    assert!(!plan.contains("merged"), "{plan}");
}

#[test]
fn a_plan_says_how_many_rows_are_merged() {
    let b = short_rows(40);
    let a: Vec<Vec<u32>> = (0..50).map(|i| (0..2 + i % 20).collect()).collect();
    let device = Device::emulator(EmulatorOptions::default());
    let [a, b] =
        [whole(&a, 40), whole(&b, 97)].map(|m| DeviceCsr::upload(&device, m.view()).unwrap());
    let plan = |merge_nonzeros| {
        let options =
            bin_limits(|b| (b.merge_nonzeros, b.merge_distance) = (merge_nonzeros, u32::MAX));
        let plan = Spgemm::<f32>::symbolic(a.pattern(), b.pattern(), options).unwrap();
        plan.to_string()
    };
    // Rows of A of up to 16 nonzeros, and their rows of B have at most 512.
    let merged = (0..50).filter(|i| 2 + i % 20 <= 16).count();
    let text = plan(u32::MAX);
    assert_eq!(
        text.matches(&format!("merged {merged} rows")).count(),
        2,
        "{text}"
    );
    assert!(!plan(0).contains("merged"));
}
