//! SpGEMM on every device: shapes, long and empty rows, every kernel by itself, both phases, and what is refused.

mod support;

use proptest::prelude::*;
use sprs::CsMatI;
use support::devices;
use warprow::device::{Checks, Device, EmulatorOptions};
use warprow::reference::{self, verify_spgemm};
use warprow::spgemm::{
    Borders, DeviceCsr, Spgemm, SpgemmElement, SpgemmKernel, SpgemmOptions, multiply_unsorted,
    spgemm, spgemm_in_blocks,
};
use warprow::{CsrMatrix, Error, generate};

const SKEWED: [f64; 4] = [0.57, 0.19, 0.19, 0.05];

/// A matrix of small whole numbers: products of such are exact in f32, in whatever order they are added up.
fn whole(rows: &[Vec<u32>], cols: u32) -> CsrMatrix<f32> {
    let mut indptr = vec![0_u32];
    let mut indices = Vec::new();
    for row in rows {
        indices.extend(row);
        indptr.push(indices.len() as u32);
    }
    let values = (0..indices.len()).map(|k| (k % 7) as f32 - 3.0).collect();
    CsMatI::new((rows.len(), cols as usize), indptr, indices, values)
}

/// The default borders of a device for f32, changed.
fn borders(change: impl Fn(&mut Borders)) -> SpgemmOptions {
    let mut borders = Borders::new(227 << 10, 4);
    change(&mut borders);
    SpgemmOptions {
        borders: Some(borders),
        ..SpgemmOptions::default()
    }
}

/// Options that send rows to every kernel, whatever their length.
fn choices() -> Vec<SpgemmOptions> {
    vec![
        SpgemmOptions::default(),
        SpgemmOptions {
            deterministic: true,
            ..SpgemmOptions::default()
        },
        // No runs, no windows: hash tables and searches.
        borders(|b| {
            b.run_span = 0;
            b.window_span = 0;
            b.bitmap_words = 0;
        }),
        // Blocks' hash tables and bitmaps' ranks alone.
        borders(|b| {
            b.run_span = 0;
            b.window_span = 0;
            b.warp_products = 0;
            b.bitmap_words = 0;
            b.warp_entries = 0;
            b.chunk = 1024;
        }),
        // Bitmaps, and searches in chunks.
        borders(|b| {
            b.run_span = 0;
            b.window_span = 0;
            b.warp_products = 0;
            b.block_products = 0;
            b.warp_entries = 0;
            b.rank_words = 0;
            b.chunk = 1024;
        }),
        // Windows for all rows that fit one, however short the rows of B.
        borders(|b| {
            b.run_span = u32::MAX;
            b.window_row = 0;
        }),
    ]
}

/// The product by every choice on every device, exactly that of the reference.
fn assert_exact(a: &CsrMatrix<f32>, b: &CsrMatrix<f32>) {
    let wanted = reference::spgemm(a.view(), b.view());
    for device in devices() {
        for options in choices() {
            let product = spgemm(&device, a.view(), b.view(), options)
                .unwrap_or_else(|error| panic!("{options:?} on {device}: {error}"));
            let found = product.c.map(|&value| f64::from(value));
            assert!(
                found == wanted,
                "{options:?} on {device}: {}",
                verify_spgemm(a.view(), b.view(), product.c.view())
            );
        }
    }
}

fn assert_right<T: SpgemmElement>(a: &CsrMatrix<T>, b: &CsrMatrix<T>) {
    for device in devices() {
        for options in choices() {
            let product = spgemm(&device, a.view(), b.view(), options).unwrap();
            let verification = verify_spgemm(a.view(), b.view(), product.c.view());
            assert!(verification.ok(), "{options:?} on {device}: {verification}");
        }
    }
}

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

fn sorted(mut row: Vec<u32>) -> Vec<u32> {
    row.sort_unstable();
    row.dedup();
    row
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
        1_u32, 2, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 63, 64, 65, 130, 257, 299,
    ];
    let a: Vec<Vec<u32>> = sizes.iter().map(|&size| (0..size).collect()).collect();
    assert_exact(&whole(&a, 300), &whole(&b, 5001));
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
fn a_few_long_rows_of_b_are_shared_by_the_warps_of_a_block() {
    let b: Vec<Vec<u32>> = (0..6_u32)
        .map(|k| (0..1500).map(|j| j * (k + 1) + k).collect())
        .collect();
    let a = vec![vec![0, 1, 5], vec![], vec![2], vec![0, 1, 2, 3, 4, 5]];
    assert_exact(&whole(&a, 6), &whole(&b, 10_000));
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
    let options = borders(|b| {
        b.warp_products = 0;
        b.block_products = 0;
    });
    let device = Device::emulator(EmulatorOptions::default());
    let product = spgemm(&device, a.view(), b.view(), options).unwrap();
    assert!(product.c.map(|&value| f64::from(value)) == wanted);
}

#[test]
fn banded_and_blocked_matrices_are_right() {
    let banded = generate::banded::<f32>(150, 170, 13, 13, 1).unwrap();
    let transposed = generate::banded::<f32>(170, 150, 9, 15, 2).unwrap();
    assert_right(&banded, &transposed);
    let block = 20;
    let rows: Vec<Vec<u32>> = (0..100_u32)
        .map(|i| (i / block * block..(i / block + 1) * block).collect())
        .collect();
    let blocks = whole(&rows, 100);
    assert_exact(&blocks, &blocks);
}

#[test]
fn a_skewed_graph_verifies_in_both_types() {
    let a = generate::rmat::<f32>(600, 4000, SKEWED, 3).unwrap();
    assert_right(&a, &a);
    let a = generate::rmat::<f64>(600, 4000, SKEWED, 3).unwrap();
    assert_right(&a, &a);
}

#[test]
fn the_choices_of_these_tests_send_rows_to_every_kernel() {
    let device = Device::emulator(EmulatorOptions::default());
    let skewed = generate::rmat::<f32>(600, 4000, SKEWED, 3).unwrap();
    let banded = generate::banded::<f32>(150, 150, 13, 13, 1).unwrap();
    let mut plans = String::new();
    for matrix in [&skewed, &banded] {
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
        "sorted",
        "hashed",
        "bitmaps",
        "numeric: copied",
        "windows",
        "short",
        "ranked",
        "searched",
        "in order",
    ] {
        assert!(
            plans.contains(&format!("{kernel} ")),
            "no {kernel}: {plans}"
        );
    }
}

#[test]
fn sums_that_cancel_are_kept_unless_zeros_are_to_be_dropped() {
    let a: CsrMatrix<f64> = CsMatI::new((2, 2), vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 2.0, 3.0]);
    let b: CsrMatrix<f64> = CsMatI::new(
        (2, 3),
        vec![0, 2, 4],
        vec![0, 2, 0, 2],
        vec![2.0, f64::NAN, -1.0, 0.0],
    );
    for device in devices() {
        for deterministic in [false, true] {
            let options = |drop_zeros| SpgemmOptions {
                deterministic,
                drop_zeros,
                ..SpgemmOptions::default()
            };
            let kept = spgemm(&device, a.view(), b.view(), options(false))
                .unwrap()
                .c;
            assert_eq!(kept.indices(), [0, 2, 0, 2]);
            assert_eq!(kept.data()[0], 0.0);
            assert_eq!(kept.data()[3], 0.0);
            let dropped = spgemm(&device, a.view(), b.view(), options(true))
                .unwrap()
                .c;
            assert_eq!(dropped.indptr().to_proper().as_ref(), [0, 1, 2]);
            assert_eq!(dropped.indices(), [2, 0]);
            assert!(dropped.data()[0].is_nan());
            assert_eq!(dropped.data()[1], -3.0);
        }
    }
}

#[test]
fn a_structure_serves_for_other_values() {
    let a = generate::rmat::<f32>(300, 2500, SKEWED, 3).unwrap();
    for device in devices() {
        let mut on_device = DeviceCsr::upload(&device, a.view()).unwrap();
        let pattern = on_device.pattern();
        let spgemm = Spgemm::symbolic(pattern, pattern, SpgemmOptions::default()).unwrap();
        for factor in [1.0, -3.0] {
            let scaled = a.map(|value| value * factor);
            on_device
                .values_mut()
                .copy_from_slice(scaled.data())
                .unwrap();
            let c = spgemm
                .numeric(on_device.values(), on_device.values())
                .unwrap();
            let c = c.download().unwrap();
            let verification = verify_spgemm(scaled.view(), scaled.view(), c.view());
            assert!(verification.ok(), "{spgemm}: {verification}");
        }
    }
}

#[test]
fn a_deterministic_product_is_the_same_under_every_schedule() {
    // Terms of very different size: another order gives other bits.
    let mut a = generate::rmat::<f32>(400, 5000, SKEWED, 5).unwrap();
    for (k, value) in a.data_mut().iter_mut().enumerate() {
        *value *= 10_f32.powi((k % 9) as i32);
    }
    let options = SpgemmOptions {
        deterministic: true,
        ..SpgemmOptions::default()
    };
    let products: Vec<_> = devices()
        .iter()
        .map(|device| spgemm(device, a.view(), a.view(), options).unwrap().c)
        .collect();
    for product in &products[1..] {
        assert!(*product == products[0]);
    }
}

#[test]
fn a_product_that_does_not_fit_the_memory_is_computed_in_blocks_of_rows() {
    let a = generate::rmat::<f32>(300, 2500, SKEWED, 3).unwrap();
    let device = Device::emulator(EmulatorOptions::default());
    let whole = spgemm(&device, a.view(), a.view(), SpgemmOptions::default()).unwrap();
    assert_eq!(whole.blocks, 1);
    let with = |memory| SpgemmOptions {
        memory: Some(memory),
        deterministic: true,
        ..SpgemmOptions::default()
    };
    let product = spgemm(&device, a.view(), a.view(), with(150_000)).unwrap();
    assert!(product.blocks > 2, "{}", product.blocks);
    assert_eq!(product.products, whole.products);
    let verification = verify_spgemm(a.view(), a.view(), product.c.view());
    assert!(verification.ok(), "{verification}");

    let mut next = 0;
    spgemm_in_blocks(
        &device,
        a.view(),
        a.view(),
        with(150_000),
        |rows, block, _| {
            assert_eq!((rows.start, rows.len()), (next, block.rows()));
            next = rows.end;
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(next, 300);
}

#[test]
fn too_little_memory_for_the_operands_or_one_row_is_an_error_with_the_numbers() {
    let a = generate::rmat::<f32>(300, 2500, SKEWED, 3).unwrap();
    let device = Device::emulator(EmulatorOptions::default());
    for memory in [1000, 30_000] {
        let options = SpgemmOptions {
            memory: Some(memory),
            ..SpgemmOptions::default()
        };
        match spgemm(&device, a.view(), a.view(), options) {
            Err(Error::OutOfMemory { wanted, free, .. }) => {
                assert!(wanted > memory, "{wanted}");
                assert_eq!(free, Some(memory));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn matrices_by_columns_and_views_of_rows_are_multiplied() {
    let a = generate::uniform::<f32>(50, 60, 400, 1).unwrap();
    let b = generate::uniform::<f32>(60, 70, 500, 2).unwrap();
    let device = Device::emulator(EmulatorOptions::default());
    let options = SpgemmOptions::default();
    let (a_csc, b_csc) = (a.to_csc(), b.to_csc());
    let product = spgemm(&device, a_csc.view(), b_csc.view(), options).unwrap();
    assert!(verify_spgemm(a.view(), b.view(), product.c.view()).ok());
    let rows = a.slice_outer(7..31);
    let product = spgemm(&device, rows, b.view(), options).unwrap();
    assert!(verify_spgemm(rows, b.view(), product.c.view()).ok());
}

#[test]
fn what_does_not_fit_is_refused_with_what_was_wanted() {
    let device = Device::emulator(EmulatorOptions::default());
    let other = Device::emulator(EmulatorOptions::default());
    let a = generate::uniform::<f32>(5, 6, 10, 1).unwrap();
    let options = SpgemmOptions::default();
    let error = spgemm(&device, a.view(), a.view(), options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "wrong shape: B is 5 x 6, wanted are 6 rows"
    );

    let b = generate::uniform::<f32>(6, 6, 10, 1).unwrap();
    let a = DeviceCsr::upload(&device, a.view()).unwrap();
    let b_elsewhere = DeviceCsr::upload(&other, b.view()).unwrap();
    let error = Spgemm::<f32>::symbolic(a.pattern(), b_elsewhere.pattern(), options).unwrap_err();
    assert!(
        matches!(error, Error::OtherDevice { what: "B", .. }),
        "{error}"
    );

    let b = DeviceCsr::upload(&device, b.view()).unwrap();
    let spgemm = Spgemm::<f32>::symbolic(a.pattern(), b.pattern(), options).unwrap();
    let error = spgemm
        .numeric(&device.zeros(9).unwrap(), b.values())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "wrong length: the values of A has 9 elements, wanted are 10"
    );
    let error = spgemm
        .numeric(a.values(), b_elsewhere.values())
        .unwrap_err();
    assert!(matches!(error, Error::OtherDevice { .. }), "{error}");
}

/// The product by each rung of the ladder on some devices; `None` where a row is too long for the rung.
fn by_rungs<T: SpgemmElement>(
    devices: &[Device],
    a: &CsrMatrix<T>,
    b: &CsrMatrix<T>,
) -> Vec<(SpgemmKernel, Option<CsrMatrix<T>>)> {
    let mut products = Vec::new();
    for device in devices {
        let on_device = |matrix: &CsrMatrix<T>| DeviceCsr::upload(device, matrix.view()).unwrap();
        let (a, b) = (on_device(a), on_device(b));
        for &kernel in SpgemmKernel::ALL {
            let product = match multiply_unsorted(kernel, &a, &b) {
                Ok(product) => Some(product.download_sorted().unwrap()),
                Err(Error::TooLarge { .. }) => None,
                Err(error) => panic!("{} on {device}: {error}", kernel.name()),
            };
            products.push((kernel, product));
        }
    }
    products
}

#[test]
fn every_rung_multiplies_skewed_and_rectangular_matrices() {
    let a = generate::rmat::<f32>(300, 2500, SKEWED, 3).unwrap();
    for (kernel, product) in by_rungs(&devices(), &a, &a) {
        let verification = verify_spgemm(a.view(), a.view(), product.unwrap().view());
        assert!(verification.ok(), "{}: {verification}", kernel.name());
    }
    let a = generate::uniform::<f64>(37, 41, 60, 1).unwrap();
    let b = generate::uniform::<f64>(41, 1003, 300, 2).unwrap();
    for (kernel, product) in by_rungs(&devices(), &a, &b) {
        let verification = verify_spgemm(a.view(), b.view(), product.unwrap().view());
        assert!(verification.ok(), "{}: {verification}", kernel.name());
    }
    let none = whole(&[], 0);
    for (_, product) in by_rungs(&devices(), &none, &none) {
        assert_eq!(product.unwrap().nnz(), 0);
    }
}

#[test]
fn rows_too_long_for_a_rung_are_refused_and_the_last_of_them_takes_all() {
    // Without the checks for races, which cost the emulator most of its time where one warp does much.
    let device = support::cuda().unwrap_or_else(|| {
        Device::emulator(EmulatorOptions {
            checks: Checks::BoundsOnly,
            ..EmulatorOptions::default()
        })
    });
    for (entries, refused) in [(3000, 1), (20_000, 3), (40_000, 3)] {
        let b: Vec<Vec<u32>> = (0..70)
            .map(|k| (k * entries / 70..(k + 1) * entries / 70).collect())
            .collect();
        let (a, b) = (
            whole(&[vec![0], (0..70).collect(), vec![]], 70),
            whole(&b, 40_000),
        );
        let wanted = reference::spgemm(a.view(), b.view());
        for (kernel, product) in by_rungs(std::slice::from_ref(&device), &a, &b) {
            let rung = SpgemmKernel::ALL.iter().position(|&rung| rung == kernel);
            assert_eq!(
                product.is_none(),
                rung.unwrap() < refused,
                "{}",
                kernel.name()
            );
            if let Some(product) = product {
                assert!(product.map(|&value| f64::from(value)) == wanted);
            }
        }
    }
}

/// Rows of any length over `cols` columns, some of them empty.
fn any_rows(rows: usize, cols: u32) -> impl Strategy<Value = CsrMatrix<f32>> {
    let row = proptest::collection::btree_set(0..cols, 0..=cols as usize);
    proptest::collection::vec(row, rows).prop_map(move |rows| {
        let rows: Vec<Vec<u32>> = (rows.into_iter())
            .map(|row| row.into_iter().collect())
            .collect();
        whole(&rows, cols)
    })
}

fn any_operands() -> impl Strategy<Value = (CsrMatrix<f32>, CsrMatrix<f32>)> {
    (0_usize..25, 1_u32..25, 1_u32..70)
        .prop_flat_map(|(m, k, n)| (any_rows(m, k), any_rows(k as usize, n)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn any_product_is_exact((a, b) in any_operands()) {
        assert_exact(&a, &b);
    }
}
