//! Rows of runs of neighbouring columns, which a warp adds up several at a time: every way in which they overlap or
//! do not.

use crate::{assert_exact, bin_limits, products, whole};
use cuda_std::float::Real;
use sprs::CsMatI;
use std::fmt::Debug;
use std::ops::Range;
use support::devices;
use warprow::CsrMatrix;
use warprow::spgemm::SpgemmElement;

/// Rows of runs.
fn runs(count: u32, run: impl Fn(u32) -> Range<u32>) -> Vec<Vec<u32>> {
    (0..count).map(|row| run(row).collect()).collect()
}

/// A banded B of that many rows.
fn band(rows: u32) -> CsrMatrix<f32> {
    whole(&runs(rows, |k| k..k + 11), rows + 10)
}

#[test]
fn runs_that_overlap_are_exact_whatever_their_lengths() {
    // The last rows are fewer than a warp takes together.
    for count in [1, 4, 7, 38] {
        let a = whole(&runs(count, |i| i..i + 9), 50);
        assert_exact(&a, &band(50));
    }
    let a = whole(&runs(33, |i| i..i + 2 + 7 * i % 30), 70);
    assert_exact(&a, &band(70));
    let a = whole(&runs(30, |i| (3 * i) % 8..10 + (7 * i) % 17), 40);
    assert_exact(&a, &band(40));
}

#[test]
fn rows_that_are_no_runs_and_empty_ones_among_runs_are_exact() {
    let mut rows = runs(45, |i| i..i + 9);
    for i in [5, 6, 22] {
        rows[i].remove(4);
    }
    for i in [11, 12, 13, 14, 15, 30] {
        rows[i].clear();
    }
    for i in [36, 39] {
        rows[i].truncate(1);
    }
    assert_exact(&whole(&rows, 60), &band(60));
}

#[test]
fn runs_apart_are_exact_whether_they_span_few_columns_together_or_many() {
    for step in [3, 9, 20, 33, 200] {
        let a = whole(&runs(13, |i| step * i..step * i + 10), 2500);
        assert_exact(&a, &band(2500));
    }
    // Rows of A that overlap, and rows of B that are further apart.
    for (step, length) in [(12, 20), (25, 30)] {
        let a = whole(&runs(13, |i| i..i + 3), 15);
        let b = whole(&runs(15, |k| step * k..step * k + length), 400);
        assert_exact(&a, &b);
    }
    // Blocks that begin within the rows of a warp, of which one ends where the next begins.
    let blocks = whole(&runs(30, |i| i / 6 * 6..i / 6 * 6 + 6), 30);
    assert_exact(&blocks, &blocks);
}

#[test]
fn runs_of_more_rows_of_b_than_a_warp_has_lanes_are_exact() {
    for length in [28, 29, 31, 32, 33, 70, 97] {
        let a = whole(&runs(9, |i| i..i + length), 110);
        let b = whole(&runs(110, |k| k / 3..k / 3 + 9), 50);
        assert_exact(&a, &b);
    }
}

#[test]
fn columns_that_no_row_of_b_has_are_left_out() {
    // Rows of B with two columns in nine between them, and empty ones.
    let b = runs(60, |k| {
        9 * (k / 6)..9 * (k / 6) + if k % 5 == 2 { 0 } else { 7 }
    });
    assert_exact(
        &whole(&runs(21, |i| 2 * i..2 * i + 15), 60),
        &whole(&b, 100),
    );
}

/// The product with each entry added up in the order of the nonzeros of A.
fn in_order<T: SpgemmElement>(a: &CsrMatrix<T>, b: &CsrMatrix<T>) -> Vec<T> {
    let mut values = Vec::new();
    for row in a.outer_iterator() {
        let mut sums = vec![None; b.cols()];
        for (k, &factor) in row.iter() {
            for (column, &value) in b.outer_view(k).unwrap().iter() {
                let sum = sums[column].unwrap_or(T::ZERO);
                sums[column] = Some(Real::mul_add(factor, value, sum));
            }
        }
        values.extend(sums.into_iter().flatten());
    }
    values
}

/// The product of these rows of A and B, with values of very different size and, if that is wanted, infinite ones and
/// NaN.
fn assert_in_order<T: SpgemmElement + Debug>(
    (a, b): (&[Vec<u32>], &[Vec<u32>]),
    cols: u32,
    value: impl Fn(usize) -> f64,
    element: impl Fn(f64) -> T,
) {
    let with_values = |rows: &[Vec<u32>], cols: usize, seed: usize| -> CsrMatrix<T> {
        let pattern = whole(rows, cols as u32);
        let (indptr, indices, _) = pattern.into_raw_storage();
        let values = (0..indices.len()).map(|k| element(value(k + seed)));
        let values = values.collect();
        CsMatI::new((rows.len(), cols), indptr, indices, values)
    };
    let (a, b) = (with_values(a, b.len(), 0), with_values(b, cols as usize, 5));
    let bits = |values: &[T]| -> Vec<String> {
        let word = |value: &T| format!("{value:?}");
        values.iter().map(word).collect()
    };
    let wanted = bits(&in_order(&a, &b));
    for device in devices() {
        for min_neighbour_warps in [0, u32::MAX] {
            let options =
                bin_limits(|b| b.min_neighbour_warps = min_neighbour_warps).deterministic(true);
            for product in products(&device, &a, &b, options).unwrap() {
                assert_eq!(
                    bits(product.data()),
                    wanted,
                    "{min_neighbour_warps} on {device}"
                );
            }
        }
    }
}

/// Runs of which a warp's first and last rows of B are not those of all its rows.
fn staggered() -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    let a = runs(26, |i| i + i % 3..i + 12 + 5 * (i % 2));
    (a, runs(50, |k| k / 2..k / 2 + 9 + k % 4))
}

#[test]
fn sums_are_those_of_the_nonzeros_in_their_order() {
    let value = |k: usize| (1.0 + (k % 11) as f64 / 7.0) * 10_f64.powi((k * 5 % 17) as i32 - 8);
    let (a, b) = staggered();
    assert_in_order((&a, &b), 60, value, |value| value as f32);
    assert_in_order((&a, &b), 60, value, |value| value);
    // Of up to 128 columns.
    let b = runs(50, |k| k..k + 60 + k % 4);
    assert_in_order((&a, &b), 120, value, |value| value as f32);
    assert_in_order((&a, &b), 120, value, |value| value);
}

#[test]
fn infinite_values_and_nan_reach_only_the_entries_whose_products_they_are_of() {
    let value = |k: usize| match k % 37 {
        3 => f64::INFINITY,
        19 => f64::NAN,
        _ => (k % 5) as f64 - 2.0,
    };
    let (a, b) = staggered();
    assert_in_order((&a, &b), 60, value, |value| value as f32);
    assert_in_order((&a, &b), 60, value, |value| value);
}
