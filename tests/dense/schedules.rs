//! Every kernel under many orders of threads and blocks.

use crate::gemm::{choices, multiply};
use ndarray::Array2;
use warprow::log_softmax::LogSoftmax;
use warprow::reference::verify_log_softmax;
use warprow::{GemmElement, bf16, f16, generate};

#[test]
fn no_kernel_has_a_fault_under_100_random_schedules() {
    fn all<T: GemmElement>(device: &warprow::Device, turn: usize) {
        let (m, k, n) = [(70, 36, 20), (33, 130, 41)][turn % 2];
        // Whole numbers: products are exact in all types.
        let x = Array2::from_shape_fn((m, k), |(i, j)| T::from_f64(((i * 5 + j) % 3) as f64));
        let w = Array2::from_shape_fn((k, n), |(i, j)| T::from_f64(((i + j * 7) % 2) as f64));
        let wanted = x.mapv(T::to_f64).dot(&w.mapv(T::to_f64));
        let choices = choices::<T>(device, k);
        for options in choices.iter().skip(turn / 8 % 3).step_by(3) {
            let y = multiply(device, x.view(), w.view(), None, *options);
            assert_eq!(y.mapv(T::to_f64), wanted, "{options:?} on {device}");
        }
    }
    for (turn, device) in support::schedules().enumerate() {
        match turn / 2 % 4 {
            0 => all::<f32>(&device, turn),
            1 => all::<f64>(&device, turn),
            2 => all::<f16>(&device, turn),
            _ => all::<bf16>(&device, turn),
        }
        for classes in [7, 60, 300] {
            let x = generate::dense::<f32>(9, classes, 7).unwrap();
            let y = LogSoftmax::plan(&device, classes, None).and_then(|plan| plan.apply(x.view()));
            let checked = verify_log_softmax(x.view(), y.unwrap().view());
            assert!(checked.ok(), "{classes} classes on {device}: {checked}");
        }
    }
}
