//! LogSoftmax: every kernel in every type, with a bias.

use crate::assert_all_run;
use warprow::log_softmax::{LogSoftmax, SoftmaxElement};
use warprow::reference::verify_log_softmax;
use warprow::{Device, Scalar, bf16, f16, generate};

#[test]
fn every_entry_point_runs() {
    assert_all_run("log_softmax", |device| {
        every_kernel::<f32>(device);
        every_kernel::<f64>(device);
        every_kernel::<f16>(device);
        every_kernel::<bf16>(device);
    });
}

/// Rows that registers hold, that shared memory holds, and longer ones.
fn every_kernel<T: SoftmaxElement + Scalar>(device: &Device) {
    for (rows, classes) in [(333, 40), (555, 47), (37, 4096)] {
        let x = generate::dense::<T>(rows, classes, 1).unwrap();
        // Sums of quarters are exact, also in 16 bits.
        let quarters = |x: T| T::from_f64((4.0 * x.to_f64()).round() / 4.0);
        let x = x.mapv(quarters);
        let bias = generate::dense::<T>(1, classes, 2).unwrap().mapv(quarters);
        let plan = LogSoftmax::plan(device, classes, Some(bias.row(0))).unwrap();
        let sums = ndarray::Zip::from(&x)
            .and_broadcast(&bias)
            .map_collect(|x, bias| T::from_f64(x.to_f64() + bias.to_f64()));
        let checked = verify_log_softmax(sums.view(), plan.apply(x.view()).unwrap().view());
        assert!(checked.ok(), "{} {rows} x {classes}: {checked}", T::NAME);
    }
}
