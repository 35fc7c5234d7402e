//! NaN, infinities, cancellation, and what was never written.

use crate::support::devices;
use crate::{assert_verified, cut, run, whole, whole_dense};
use ndarray::Array2;
use sprs::CsMatI;
use warprow::{Reduction, Spmm, SpmmElement, SpmmOptions, bf16, f16, generate};

fn nans_and_infinities_go_where_they_are_read<E: SpmmElement>() {
    // Rows of 40 nonzeros are cut into three or four parts.
    let rows: Vec<Vec<u32>> = (0..6).map(|i| (i..i + 40).collect()).collect();
    let ones = whole::<E>(&rows, 50).map(|_| E::ONE);
    for special in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut x = whole_dense::<E>(50, 9);
        // Column 41 is read by the rows from 2 on, column 3 by those to 3.
        x[(41, 4)] = E::from_f64(special);
        x[(3, 7)] = E::from_f64(special);
        let y = Array2::from_elem((6, 9), E::from_f64(f64::NAN));
        for device in devices() {
            for reduction in Reduction::ALL {
                let plan = Spmm::plan(&device, ones.view(), cut(reduction)).unwrap();
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
    let x = generate::dense::<f16>(20, 16, 2);
    for device in devices() {
        for reduction in Reduction::ALL {
            let plan = Spmm::plan(&device, a.view(), cut(reduction)).unwrap();
            let x = device.upload(x.as_slice().unwrap()).unwrap();
            let mut y = device.uninitialized(30 * 16).unwrap();
            plan.run_scaled(0.5, &x, 16, 0.0, &mut y).unwrap();
            assert_eq!(y.download().unwrap().len(), 30 * 16);
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
    let x = Array2::from_shape_vec((3, 1), vec![big, big, -big]).unwrap();
    for device in devices() {
        let plan = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        let y = plan.multiply(x.view()).unwrap();
        assert_eq!(y.as_slice().unwrap(), [big, f16::INFINITY], "{plan}");
        let zeros = Array2::zeros((2, 1)).mapv(f16::from_f32);
        assert_verified(&plan, &a, x.view(), [1.0, 0.0], zeros.view());
    }
}
