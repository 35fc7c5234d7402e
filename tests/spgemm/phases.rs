//! The phases and their options: structures used again, zeros, determinism, memory, and what is refused.

use crate::{SKEWED, bin_limits, products};
use sprs::{CsMatI, TriMatI};
use std::sync::Arc;
use support::devices;
use warprow::DeviceCsr;
use warprow::device::{Device, DeviceError, EmulatorOptions};
use warprow::operand::OperandError;
use warprow::reference::verify_spgemm;
use warprow::spgemm::{
    Spgemm, SpgemmElement, SpgemmOptions, SpgemmTuning, spgemm, spgemm_in_blocks,
};
use warprow::{CsrMatrix, generate};

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
            let options = |drop_zeros| {
                SpgemmOptions::new()
                    .deterministic(deterministic)
                    .drop_zeros(drop_zeros)
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

/// Options that make all rows of more than a few products chunks, found by ranks and by searches.
fn chunks_alone() -> [SpgemmOptions; 2] {
    [u32::MAX, 0].map(|rank_words| {
        bin_limits(|b| {
            b.spread_products = 0;
            b.window_span = 0;
            b.numeric_sort_products = 0;
            b.search_row_entries = 0;
            b.chunk_entries = 1024;
            b.rank_words = rank_words;
        })
    })
}

/// Operands whose product has rows of several chunks, with empty rows of A and of B.
fn of_several_chunks<T: SpgemmElement>() -> (CsrMatrix<T>, CsrMatrix<T>) {
    let a = generate::uniform::<T>(12, 70, 350, 1).unwrap();
    let b = generate::uniform::<T>(70, 3000, 5000, 2).unwrap();
    let without = |matrix: CsrMatrix<T>, left_out: usize| {
        let (rows, cols) = matrix.shape();
        let mut kept = TriMatI::new((rows, cols));
        for (&value, (row, col)) in matrix.iter() {
            if row as usize % left_out != 2 {
                kept.add_triplet(row as usize, col as usize, value);
            }
        }
        kept.to_csr::<u32>()
    };
    (without(a, 9), without(b, 5))
}

pub fn upload<T: SpgemmElement>(
    device: &Device,
    a: &CsrMatrix<T>,
    b: &CsrMatrix<T>,
) -> (DeviceCsr<T>, DeviceCsr<T>) {
    let there = |matrix: &CsrMatrix<T>| DeviceCsr::upload(device, matrix.view()).unwrap();
    (there(a), there(b))
}

fn assert_serves_for_other_values<T: SpgemmElement>() {
    let (a, b) = of_several_chunks::<T>();
    for device in devices() {
        let (mut a_there, mut b_there) = upload(&device, &a, &b);
        for options in [[SpgemmOptions::default(); 2], chunks_alone()].concat() {
            let spgemm = Spgemm::<T>::symbolic(a_there.pattern(), b_there.pattern(), options);
            let spgemm = spgemm.unwrap();
            for factor in [1.0, -3.0, 0.5] {
                let a = a.map(|&value| value * T::from_f64(factor));
                let b = b.map(|&value| value * value);
                a_there
                    .values_mut()
                    .unwrap()
                    .copy_from_slice(a.data())
                    .unwrap();
                b_there
                    .values_mut()
                    .unwrap()
                    .copy_from_slice(b.data())
                    .unwrap();
                let c = spgemm.numeric(a_there.values(), b_there.values()).unwrap();
                let c = c.download().unwrap();
                let verification = verify_spgemm(a.view(), b.view(), c.view());
                assert!(verification.ok(), "{spgemm}: {verification}");
            }
        }
    }
}

#[test]
fn a_structure_serves_for_other_values() {
    assert_serves_for_other_values::<f32>();
    assert_serves_for_other_values::<f64>();
}

#[test]
fn places_are_kept_from_the_first_run_on_if_they_fit_the_memory_and_are_wanted() {
    let (a, b) = of_several_chunks::<f32>();
    for device in devices() {
        let (a, b) = upload(&device, &a, &b);
        for chunks in chunks_alone() {
            let with = |memory, low_memory| {
                chunks.map_tuning(|tuning| tuning.memory(memory).low_memory(low_memory))
            };
            let deterministic = chunks.deterministic(true);
            for (options, are_kept) in [
                (chunks, true),
                (with(Some(10_000_000), false), true),
                (with(Some(10_000), false), false),
                (with(None, true), false),
                (deterministic, false),
            ] {
                let spgemm = Spgemm::<f32>::symbolic(a.pattern(), b.pattern(), options).unwrap();
                let says_so = || spgemm.to_string().contains("bytes of product map cached");
                assert!(!says_so(), "{spgemm}");
                for _ in 0..2 {
                    spgemm.numeric(a.values(), b.values()).unwrap();
                    assert_eq!(says_so(), are_kept, "{spgemm}");
                }
            }
        }
    }
}

#[test]
fn zeros_are_dropped_from_every_run() {
    let (a, b) = of_several_chunks::<f64>();
    let device = Device::emulator(EmulatorOptions::default());
    let (a, b) = upload(&device, &a, &b);
    let options = chunks_alone()[0].drop_zeros(true);
    let spgemm = Spgemm::<f64>::symbolic(a.pattern(), b.pattern(), options).unwrap();
    let zeros = device.zeros(b.values().len()).unwrap();
    for _ in 0..2 {
        let c = spgemm.numeric(a.values(), &zeros).unwrap();
        assert_eq!(c.pattern().nnz(), 0);
        let c = spgemm.numeric(a.values(), b.values()).unwrap();
        assert_eq!(c.pattern().nnz(), spgemm.entries());
    }
}

#[test]
fn many_threads_run_one_structure_and_launch_their_recordings_at_once() {
    let short_rows = || {
        let matrix = |seed| generate::uniform::<f32>(300, 300, 2000, seed).unwrap();
        (matrix(1), matrix(2))
    };
    let [chunks, _] = chunks_alone();
    for ((a, b), options, kernel, phases) in [
        (of_several_chunks::<f32>(), chunks, " chunks,", 1),
        (short_rows(), bin_limits(|_| ()), " sorted ", 2),
    ] {
        for device in devices() {
            let (a_there, b_there) = upload(&device, &a, &b);
            let spgemm = Spgemm::symbolic(a_there.pattern(), b_there.pattern(), options).unwrap();
            let text = spgemm.to_string();
            assert!(text.matches(kernel).count() >= phases, "{text}");
            let run = |thread: u32| {
                // Each thread has other values, so that none may take those of another.
                let b = b.map(|&value| value * (1 + thread) as f32);
                let b_values = device.upload(b.data()).unwrap();
                let mut c = device.zeros::<f32>(spgemm.entries()).unwrap();
                let mut run = || spgemm.numeric_into(a_there.values(), &b_values, &mut c);
                if thread.is_multiple_of(2) {
                    let graph = device.record(run).unwrap();
                    // SAFETY: the pointers were taken in the recording; c is this thread's.
                    (0..4).for_each(|_| unsafe { graph.launch().unwrap() });
                } else {
                    (0..4).for_each(|_| run().unwrap());
                }
                let c = DeviceCsr::new(Arc::clone(spgemm.pattern()), c).unwrap();
                let verification = verify_spgemm(a.view(), b.view(), c.download().unwrap().view());
                assert!(verification.ok(), "{spgemm}: {verification}");
            };
            std::thread::scope(|scope| {
                for thread in 0..6 {
                    let run = &run;
                    scope.spawn(move || run(thread));
                }
            });
        }
    }
}

#[test]
fn runs_are_recorded_before_the_first_run_and_after_it() {
    let (a, b) = of_several_chunks::<f32>();
    for device in devices() {
        let (a_there, b_there) = upload(&device, &a, &b);
        let [options, _] = chunks_alone();
        let spgemm = Spgemm::symbolic(a_there.pattern(), b_there.pattern(), options).unwrap();
        for are_kept in [false, true] {
            let mut values = device.zeros::<f32>(spgemm.entries()).unwrap();
            let graph = device
                .record(|| spgemm.numeric_into(a_there.values(), b_there.values(), &mut values))
                .unwrap();
            // SAFETY: the buffers are alive.
            unsafe { graph.launch().unwrap() };
            assert_eq!(spgemm.to_string().contains("product map cached"), are_kept);
            let c = DeviceCsr::new(Arc::clone(spgemm.pattern()), values).unwrap();
            let verification = verify_spgemm(a.view(), b.view(), c.download().unwrap().view());
            assert!(verification.ok(), "{verification}");
            spgemm.numeric(a_there.values(), b_there.values()).unwrap();
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
    let options = SpgemmOptions::new().deterministic(true);
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
    let with = |memory| {
        SpgemmOptions::new()
            .deterministic(true)
            .tuning(SpgemmTuning::new().memory(memory))
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
            Ok::<_, OperandError>(())
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
        let options = SpgemmOptions::new().tuning(SpgemmTuning::new().memory(memory));
        match spgemm(&device, a.view(), a.view(), options) {
            Err(OperandError::Device(DeviceError::OutOfMemory { wanted, free, .. })) => {
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
        matches!(error, OperandError::OtherDevice { what: "B", .. }),
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
    assert!(matches!(error, OperandError::OtherDevice { .. }), "{error}");
}
