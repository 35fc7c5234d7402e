//! Rows whose columns lie close together: which kernel takes them, by their number, columns and products.

use crate::{WAYS, bin_limits, products, whole};
use std::collections::BTreeSet;
use support::unshared_devices;
use warprow::device::Device;
use warprow::spgemm::SpgemmOptions;
use warprow::{CsrMatrix, reference};
use warprow_kernels::spgemm::BinLimits;
use warprow_kernels::spgemm::products::bins::{RowWork, symbolic};

/// Columns from the first to the last that a warp's bitmap has bits for.
const SPAN: u32 = 2048;

/// The first column of each row.
const FIRST: u32 = 77;

fn row(products: u32, span: u32) -> RowWork {
    RowWork {
        products,
        span,
        nonzeros: 20,
        b_rows_are_runs: false,
        a_row_is_run: false,
        is_near: false,
    }
}

#[test]
fn rows_of_few_columns_and_not_too_many_products_are_narrow() {
    let limits = BinLimits::new(227 << 10, 4);
    let is_narrow = |products, span| limits.symbolic_bin(row(products, span)) == symbolic::NARROW;
    assert!(is_narrow(513, 100) && is_narrow(8191, SPAN));
    assert!(!is_narrow(512, 100), "few products are sorted");
    assert!(!is_narrow(8192, SPAN) && !is_narrow(8191, SPAN + 1));
    // More than the kernel has bits for is reduced to that.
    let mut more = limits;
    more.narrow_span = u32::MAX;
    assert_eq!(more.within(limits), limits);
}

/// B has rows of some 66 columns from [`FIRST`] to `last`, so that 64 of them have most columns of a span of 2048.
fn b_of(rows: u32, last: u32) -> CsrMatrix<f32> {
    let columns = |k: u32| {
        let inner = (0..64).map(move |j| FIRST + (j * 31 + k * 997) % (last - FIRST));
        inner.chain([FIRST, last]).collect::<BTreeSet<u32>>()
    };
    let rows: Vec<Vec<u32>> = (0..rows)
        .map(|k| columns(k).into_iter().collect())
        .collect();
    whole(&rows, last + 1)
}

/// A has rows of 12 to 64 nonzeros: rows of C of some hundred columns, and of nearly all.
fn a_of(rows: u32) -> CsrMatrix<f32> {
    let rows: Vec<Vec<u32>> = (0..rows)
        .map(|i| (0..64).filter(|k| i % 30 == 0 || k % 5 == i % 5).collect())
        .collect();
    whole(&rows, 64)
}

/// The kernels of bitmaps and hash tables that the symbolic phase launches on some device. Each device computes the
/// product exactly.
fn launched(a: &CsrMatrix<f32>, b: &CsrMatrix<f32>, options: SpgemmOptions) -> BTreeSet<String> {
    launched_on(&unshared_devices(), a, b, options)
}

/// As [`launched`], on these devices.
fn launched_on(
    devices: &[Device],
    a: &CsrMatrix<f32>,
    b: &CsrMatrix<f32>,
    options: SpgemmOptions,
) -> BTreeSet<String> {
    let wanted = reference::spgemm(a.view(), b.view());
    let mut names = BTreeSet::new();
    for device in devices {
        let log = device.log_launches();
        for (product, way) in products(device, a, b, options).unwrap().iter().zip(WAYS) {
            let product = product.map(|&value| f64::from(value));
            assert!(product == wanted, "{way} on {device}");
        }
        let all = log.launches();
        let of_phase = ["narrow_rows", "bitmap_rows_0", "bitmap_rows_1", "hash_rows"];
        let launched = of_phase.map(|name| (name, all.contains_key(&*format!("spgemm_{name}"))));
        names.extend(launched.iter().filter(|of| of.1).map(|of| of.0.to_owned()));
    }
    names
}

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

#[test]
fn the_widest_narrow_rows_and_wider_ones_are_exact() {
    let b = b_of(64, FIRST + SPAN - 1);
    // Some rows of C have more columns than a warp has room for positions.
    let c = reference::spgemm(a_of(3).view(), b.view());
    let lengths: Vec<usize> = c.outer_iterator().map(|row| row.nnz()).collect();
    assert!(lengths[0] > 1500 && lengths[1] < 1024, "{lengths:?}");
    let sparse = bin_limits(|b| b.hash_products = 0);
    let narrow = launched(&a_of(300), &b, sparse);
    assert_eq!(narrow, names(["narrow_rows"]));
    let wider = launched(&a_of(300), &b_of(64, FIRST + SPAN), sparse);
    assert_eq!(wider, names(["bitmap_rows_1"]));
}

#[test]
fn few_narrow_rows_are_left_to_kernels_that_are_launched_anyway() {
    let b = b_of(64, FIRST + SPAN - 1);
    let few = bin_limits(|b| b.few_rows = 128);
    assert_eq!(launched(&a_of(127), &b, few), names(["hash_rows"]));
    assert_eq!(launched(&a_of(128), &b, few), names(["narrow_rows"]));
    let without_tables = bin_limits(|b| (b.few_rows, b.hash_products) = (128, 0));
    assert_eq!(
        launched(&a_of(127), &b, without_tables),
        names(["bitmap_rows_1"])
    );
    // A row of more products, which no other kernel takes.
    let b = b_of(150, FIRST + SPAN - 1);
    let mut rows: Vec<Vec<u32>> = (0..40).map(|i| (i..i + 20).collect()).collect();
    rows.push((0..150).collect());
    assert_eq!(
        launched(&whole(&rows, 150), &b, few),
        names(["bitmap_rows_0"])
    );
}

#[test]
fn few_wider_rows_beside_narrow_ones_are_left_to_kernels_that_are_launched_anyway() {
    // One wider row of B makes 60 of 300 rows of C wider.
    let b = b_of(64, FIRST + SPAN - 1);
    let mut rows: Vec<Vec<u32>> = b
        .outer_iterator()
        .map(|row| row.indices().to_vec())
        .collect();
    rows[0].push(FIRST + 3 * SPAN);
    let wider = whole(&rows, FIRST + 3 * SPAN + 1);
    let limits = |few_rows| bin_limits(|b| b.few_rows = few_rows);
    let both = names(["bitmap_rows_1", "narrow_rows"]);
    assert_eq!(launched(&a_of(300), &wider, limits(60)), both);
    let hashed = names(["hash_rows", "narrow_rows"]);
    assert_eq!(launched(&a_of(300), &wider, limits(61)), hashed);
    // Narrow rows that are few, but not together with the wider ones.
    let together = names(["bitmap_rows_1"]);
    assert_eq!(launched(&a_of(300), &wider, limits(241)), together);
}

#[test]
fn many_rows_of_bitmaps_in_small_blocks_are_exact() {
    // Many rows of 8 products, which the kernel takes whose blocks are smaller from 8192 rows on: it has a row of more
    // products anyway. The bitmaps are of up to 1024 words and of up to 4096.
    let mut rows: Vec<Vec<u32>> = (0..8200).map(|i| vec![i % 1100, 1100 + i % 1099]).collect();
    rows.push((0..2200).collect());
    let a = whole(&rows, 2200);
    let limits = bin_limits(|b| {
        (b.few_rows, b.sort_products, b.hash_products) = (u32::MAX, 0, 0);
    });
    for (number, last) in [30_000, 120_000].into_iter().enumerate() {
        // The emulator in order has one size, that in a random order the other; a GPU has both.
        let mut devices = unshared_devices();
        devices.remove(1 - number);
        let rows: Vec<Vec<u32>> = (0..2200)
            .map(|k| vec![FIRST, 100 + k * 13, last - 1 - k % 9, last])
            .collect();
        let launched = launched_on(&devices, &a, &whole(&rows, last + 1), limits);
        assert_eq!(launched, names(["bitmap_rows_0"]));
    }
}
