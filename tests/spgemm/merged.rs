//! Rows whose rows of B are merged: every number of nonzeros of A, and the limits to rows that are not merged.

use crate::{WAYS, assert_exact, bin_limits, products, whole};
use support::devices;
use warprow::device::{Device, EmulatorOptions};
use warprow::spgemm::{Spgemm, SpgemmOptions, multiply};
use warprow::{CsrMatrix, DeviceCsr, generate, reference};

/// Rows of B: every fifth is empty, the others have 1 to 12 columns of 97, many of them in several rows.
fn short_rows(count: u32) -> Vec<Vec<u32>> {
    let row = |k: u32| match k % 5 {
        4 => Vec::new(),
        _ => (0..1 + k % 12).map(|j| k % 3 + 8 * j + j % 2).collect(),
    };
    (0..count).map(row).collect()
}

/// Every row of 2 to 16 nonzeros of A is merged, wherever its columns are, if it has at most `products` products.
fn merged(products: u32, few_rows: u32) -> SpgemmOptions {
    bin_limits(|b| {
        (b.merge_nonzeros, b.merge_products) = (16, products);
        (b.merge_distance, b.few_rows) = (u32::MAX, few_rows);
        b.run_span = 0;
    })
}

/// The numbers of rows of 2 to 8 and of 9 to 16 nonzeros of A that have a product, and at most `most` products.
fn short_rows_of(a: &CsrMatrix<f32>, b: &CsrMatrix<f32>, most: u32) -> [usize; 2] {
    let mut counts = [0; 2];
    for row in a.outer_iterator() {
        let of_b = |&k: &u32| b.indptr().nnz_in_outer_sz(k as usize);
        let products: usize = row.indices().iter().map(of_b).sum();
        if (2..=16).contains(&row.nnz()) && (1..=most as usize).contains(&products) {
            counts[usize::from(row.nnz() > 8)] += 1;
        }
    }
    counts
}

/// Asserts that the product is exact, and that both phases merge the rows of at most `most` products.
fn assert_merged_exactly(a: &CsrMatrix<f32>, b: &CsrMatrix<f32>, most: u32, few_rows: u32) {
    let options = merged(most, few_rows);
    let wanted = reference::spgemm(a.view(), b.view());
    let rows: usize = short_rows_of(a, b, most).iter().sum();
    for device in devices() {
        let [there_a, there_b] = [a, b].map(|m| DeviceCsr::upload(&device, m.view()).unwrap());
        let plan = Spgemm::<f32>::symbolic(there_a.pattern(), there_b.pattern(), options).unwrap();
        let found = plan
            .to_string()
            .matches(&format!("merged {rows} rows,"))
            .count();
        assert_eq!(found, 2, "{rows} rows: {plan}");
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

/// The nonzeros of the instances for merged rows that are launched. Both phases and the whole product launch the same.
fn launched(a: &CsrMatrix<f32>, b: &CsrMatrix<f32>, options: SpgemmOptions) -> Vec<u32> {
    let device = Device::emulator(EmulatorOptions::default());
    let [a, b] = [a, b].map(|m| DeviceCsr::upload(&device, m.view()).unwrap());
    let sizes = |run: &dyn Fn()| -> Vec<u32> {
        let log = device.log_launches();
        run();
        let launches = log.launches();
        let of = |kernel: &str| -> Vec<u32> {
            let is_launched = |size: &u32| launches.contains_key(&*format!("{kernel}_{size}"));
            [8, 16].into_iter().filter(is_launched).collect()
        };
        let counted = of("spgemm_merge_rows");
        assert_eq!(counted, of("spgemm_merge_products_f32"), "{launches:?}");
        counted
    };
    let whole = sizes(&|| drop(multiply(&a, &b, options).unwrap()));
    let by_phases = sizes(&|| {
        let spgemm = Spgemm::symbolic(a.pattern(), b.pattern(), options).unwrap();
        spgemm.numeric(a.values(), b.values()).unwrap();
    });
    assert_eq!(whole, by_phases);
    whole
}

#[test]
fn bins_of_few_rows_are_merged_with_the_next_size_and_the_last_one_by_itself() {
    let b = whole(&short_rows(40), 97);
    // Rows of 3, 7, 12 and 16 nonzeros, and the instances if no bin has few rows, and if bins of 26 or 27 rows do.
    for (lengths, apart, together) in [
        ([3, 3, 3], &[8][..], &[8][..]),
        ([3, 12, 3], &[8, 16], &[16]),
        ([3, 3, 16], &[8, 16], &[16]),
        ([16, 16, 16], &[16], &[16]),
        ([16, 7, 3], &[8, 16], &[16]),
    ] {
        let a: Vec<Vec<u32>> = (0..40)
            .map(|i| (i % 9..i % 9 + lengths[i as usize % 3]).collect())
            .collect();
        let a = whole(&a, 40);
        for few_rows in [0, 26, 30, 1000] {
            let wanted = if few_rows <= 26 { apart } else { together };
            let options = merged(u32::MAX, few_rows);
            assert_eq!(launched(&a, &b, options), wanted, "{lengths:?}, {few_rows}");
            assert_merged_exactly(&a, &b, u32::MAX, few_rows);
        }
    }
}

#[test]
fn a_long_row_among_short_ones_in_a_warp_is_exact_and_one_of_more_products_is_not_merged() {
    let limit = 70;
    let mut b = short_rows(40);
    b[0] = (0..limit - 1).map(|j| 2 * j).collect();
    // Row 9 has 6 products more than row 0 of B has columns. Of the other rows that need row 0 of B, one has no product
    // more, and five have 9 to 12.
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
    let rows = |most| short_rows_of(&a, &b, most).iter().sum::<usize>();
    // Two rows have no product.
    assert_eq!((rows(limit), rows(limit + 100)), (62, 68));
    for products in [limit, limit + 100] {
        assert_merged_exactly(&a, &b, products, 0);
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
    assert_merged_exactly(&whole(&a, 3), &whole(&b, cols), u32::MAX, 0);
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
    let side = 23;
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
    assert!(plan.contains("merged 529 rows"), "{plan}");
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
    // Rows of A of up to 16 nonzeros. They have at most 70 products, fewer than the limit.
    let merged = (0..50).filter(|i| 2 + i % 20 <= 16).count();
    let text = plan(u32::MAX);
    assert_eq!(
        text.matches(&format!("merged {merged} rows")).count(),
        2,
        "{text}"
    );
    assert!(!plan(0).contains("merged"));
}
