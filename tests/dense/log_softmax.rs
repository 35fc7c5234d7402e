//! LogSoftmax in every type and on every device: from 1 to 4096 classes, large and infinite elements, NaN, a bias.

use ndarray::{Array2, ArrayView2, Axis};
use warprow::log_softmax::{LogSoftmax, SoftmaxElement, SoftmaxKernel};
use warprow::operand::OperandError;
use warprow::reference::verify_log_softmax;
use warprow::{Scalar, bf16, f16, generate};

fn apply<T: SoftmaxElement + Scalar>(x: ArrayView2<'_, T>) -> Vec<(Array2<T>, String)> {
    let devices = support::devices().into_iter();
    devices
        .map(|device| {
            let plan = LogSoftmax::plan(&device, x.ncols(), None).unwrap();
            (plan.apply(x).unwrap(), device.to_string())
        })
        .collect()
}

fn verifies<T: SoftmaxElement + Scalar>(x: ArrayView2<'_, T>) {
    for (y, device) in apply(x) {
        let checked = verify_log_softmax(x, y.view());
        assert!(
            checked.ok(),
            "{} {:?} on {device}: {checked}",
            T::NAME,
            x.dim()
        );
    }
}

/// Elements from -20 to 20, and a row of a wide range.
fn scaled<T: SoftmaxElement + Scalar>(rows: usize, classes: usize) -> Array2<T> {
    let mut x = generate::dense::<T>(rows, classes, 7)
        .unwrap()
        .mapv(|x| T::from_f64(20.0 * x.to_f64()));
    for (k, x) in x.row_mut(rows - 1).iter_mut().enumerate() {
        *x = T::from_f64(if k % 3 == 0 {
            2000.0
        } else {
            -500.0 - k as f64
        });
    }
    x
}

/// Applies every kernel that takes rows of so many classes; how many those are.
fn every_kernel_verifies<T: SoftmaxElement + Scalar>(rows: usize, classes: usize) -> usize {
    let x = scaled::<T>(rows, classes);
    let mut verified = 0;
    let devices = support::unshared_devices();
    for device in &devices {
        for kernel in SoftmaxKernel::ALL {
            let plan = LogSoftmax::plan(device, classes, None).unwrap();
            let Some(plan) = plan.with_kernel(kernel) else {
                continue;
            };
            let log = device.log_launches();
            let y = plan.apply(x.view());
            assert_eq!(log.launches(), [(plan.entry_point(), 1)].into());
            let checked = verify_log_softmax(x.view(), y.unwrap().view());
            assert!(
                checked.ok(),
                "{} on {device}: {checked}",
                plan.entry_point()
            );
            verified += 1;
        }
    }
    verified / devices.len()
}

#[test]
fn every_kernel_that_takes_a_row_computes_it() {
    for (classes, kernels) in [(16, 3), (40, 3), (47, 2), (600, 1)] {
        assert_eq!(every_kernel_verifies::<f32>(35, classes), kernels);
        assert_eq!(every_kernel_verifies::<f64>(35, classes), kernels);
        assert_eq!(every_kernel_verifies::<f16>(35, classes), kernels);
        assert_eq!(every_kernel_verifies::<bf16>(35, classes), kernels);
    }
}

#[test]
fn every_number_of_classes_verifies_in_every_type() {
    for (rows, classes) in [
        (67, 1),
        (300, 5),
        (257, 47),
        (129, 62),
        (40, 65),
        (17, 255),
        (17, 511),
        (9, 2),
        (33, 3),
        (5, 4),
        (65, 7),
        (70, 16),
        (9, 17),
        (9, 41),
        (9, 47),
        (40, 64),
        (3, 100),
        (5, 128),
        (3, 129),
        (2, 512),
        (3, 516),
        (2, 1001),
        (2, 4096),
    ] {
        verifies(scaled::<f32>(rows, classes).view());
        verifies(scaled::<f64>(rows, classes).view());
        verifies(scaled::<f16>(rows, classes).view());
        verifies(scaled::<bf16>(rows, classes).view());
    }
}

#[test]
fn exponentials_of_each_row_sum_to_one() {
    for classes in [5, 32, 600] {
        for (y, device) in apply(scaled::<f64>(20, classes).view()) {
            for row in y.axis_iter(Axis(0)) {
                let sum: f64 = row.iter().map(|y| y.exp()).sum();
                assert!((sum - 1.0).abs() < 1e-12, "{sum} on {device}");
            }
        }
    }
}

#[test]
fn infinities_and_nans_stay_in_their_row() {
    for classes in [3, 16, 130, 520] {
        let mut x = scaled::<f32>(9, classes);
        x[[1, 0]] = f32::NEG_INFINITY;
        x[[3, 2]] = f32::INFINITY;
        x[[5, 1]] = f32::NAN;
        x.row_mut(7).fill(f32::NEG_INFINITY);
        verifies(x.view());
        for (y, device) in apply(x.view()) {
            for row in [0, 2, 4, 6, 8] {
                assert!(
                    y.row(row).iter().all(|y| y.is_finite()),
                    "row {row} on {device}"
                );
            }
            for row in [3, 5, 7] {
                assert!(
                    y.row(row).iter().all(|y| y.is_nan()),
                    "row {row} on {device}"
                );
            }
        }
    }
}

#[test]
fn a_bias_is_added_before() {
    for classes in [3, 16, 64, 700] {
        let x = scaled::<f64>(6, classes);
        let bias = generate::dense::<f64>(1, classes, 3)
            .unwrap()
            .row(0)
            .to_owned();
        let added = &x + &bias;
        for device in support::devices() {
            let plan = LogSoftmax::plan(&device, classes, Some(bias.view())).unwrap();
            let y = plan.apply(x.view()).unwrap();
            let checked = verify_log_softmax(added.view(), y.view());
            assert!(checked.ok(), "{classes} classes on {device}: {checked}");
        }
    }
}

#[test]
fn no_rows_and_no_classes_give_nothing() {
    for device in support::devices() {
        for (rows, classes) in [(0, 5), (4, 0), (0, 0)] {
            let plan = LogSoftmax::<f32>::plan(&device, classes, None).unwrap();
            let y = plan.apply(Array2::zeros((rows, classes)).view()).unwrap();
            assert_eq!(y.dim(), (rows, classes));
        }
        let plan = LogSoftmax::<f32>::plan(&device, 3, None).unwrap();
        let refused = plan.apply(Array2::zeros((2, 4)).view()).unwrap_err();
        assert!(matches!(refused, OperandError::Columns { columns: 3, .. }));
    }
}
