//! NaN, infinities, cancellation, and what was never written.

use super::{assert_verified, cut_by_each, on_devices, run, whole, whole_dense};
use ndarray::Array2;
use sprs::CsMatI;
use support::{devices, devices_in_turn};
use warprow::{Reduction, Spmm, SpmmElement, bf16, f16, generate};

fn nans_and_infinities_go_where_they_are_read<E: SpmmElement>() {
    // Rows of 40 nonzeros are split into three or four parts.
    let rows: Vec<Vec<u32>> = (0..6).map(|i| (i..i + 40).collect()).collect();
    let ones = whole::<E>(&rows, 50).map(|_| E::ONE);
    for (number, special) in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY]
        .into_iter()
        .enumerate()
    {
        let in_turn = |(turn, features)| {
            devices_in_turn(number + turn)
                .into_iter()
                .map(move |device| (features, device))
        };
        for (features, device) in [9, 40, 136].into_iter().enumerate().flat_map(in_turn) {
            let mut x = whole_dense::<E>(50, features);
            // Column 41 is read by the rows from 2 on, column 3 by those to 3.
            x[(41, 4)] = E::from_f64(special);
            x[(3, features - 2)] = E::from_f64(special);
            let y = Array2::from_elem((6, features), E::from_f64(f64::NAN));
            for options in Reduction::ALL.iter().copied().flat_map(cut_by_each) {
                let plan = Spmm::plan(&device, ones.view(), options).unwrap();
                assert_verified(&plan, &ones, x.view(), [1.0, 0.0], y.view());
                assert_verified(&plan, &ones, x.view(), [-2.0, 0.0], y.view());
                let found = run(&plan, x.view(), [0.0, 0.0], y.view());
                assert!(found.iter().all(|v| v.to_f64() == 0.0), "alpha 0: {plan}");
            }
        }
    }
}

#[test]
fn nans_and_infinities_propagate_in_every_reduction_and_not_through_zero_factors() {
    in_every_type!(nans_and_infinities_go_where_they_are_read());
}

#[test]
fn y_need_not_be_written_before_if_beta_is_zero() {
    // The emulator reports the read of what nobody has written.
    let a = generate::uniform::<f16>(30, 20, 90, 1).unwrap();
    let x = generate::dense::<f16>(20, 40, 2).unwrap();
    for device in devices() {
        for options in Reduction::ALL.iter().copied().flat_map(cut_by_each) {
            let plan = Spmm::plan(&device, a.view(), options).unwrap();
            let x = device.upload(x.as_slice().unwrap()).unwrap();
            let mut y = device.uninitialized(30 * 40).unwrap();
            plan.run_scaled(0.5, &x, 40, 0.0, &mut y).unwrap();
            assert_eq!(y.download().unwrap().len(), 30 * 40);
        }
    }
}

#[test]
fn sums_that_cancel_and_overflow_are_those_of_f32_rounded_once() {
    // 60000 + 60000 - 60000 is beyond f16 on its way only; 60000 + 60000 at its end.
    let a = CsMatI::<f16, u32, u32>::new(
        (2, 3),
        vec![0, 3, 5],
        vec![0, 1, 2, 0, 1],
        vec![f16::ONE; 5],
    );
    let big = f16::from_f32(60000.0);
    for (features, device) in on_devices([1, 40]) {
        let x = Array2::from_shape_fn((3, features), |(row, _)| if row < 2 { big } else { -big });
        for options in cut_by_each(Reduction::Sum) {
            let plan = Spmm::plan(&device, a.view(), options).unwrap();
            let y = plan.multiply(x.view()).unwrap();
            assert!(y.row(0).iter().all(|&v| v == big), "{plan}: {y}");
            assert!(y.row(1).iter().all(|&v| v == f16::INFINITY), "{plan}: {y}");
            let zeros = Array2::zeros((2, features)).mapv(f16::from_f32);
            assert_verified(&plan, &a, x.view(), [1.0, 0.0], zeros.view());
        }
    }
}
