//! The phases and their options: structures used again, zeros, determinism, memory, and what is refused.

use crate::support::devices;
use crate::{SKEWED, products};
use sprs::CsMatI;
use warprow::DeviceCsr;
use warprow::device::{Device, EmulatorOptions};
use warprow::reference::verify_spgemm;
use warprow::spgemm::{Spgemm, SpgemmOptions, spgemm, spgemm_in_blocks};
use warprow::{CsrMatrix, Error, generate};

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
    // The whole product and the phases do not differ either.
    let products: Vec<_> = devices()
        .iter()
        .flat_map(|device| products(device, &a, &a, options).unwrap())
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
