//! Every kernel under many orders of threads and blocks.

use crate::gemm::{choices, multiply};
use crate::leading_dimensions::multiply_with_gaps;
use ndarray::Array2;
use std::num::NonZeroUsize;
use warprow::device::{Device, EmulatorOptions, Schedule};
use warprow::log_softmax::LogSoftmax;
use warprow::reference::verify_log_softmax;
use warprow::{Gemm, GemmElement, GemmKernel, GemmOptions, GemmTuning, bf16, f16, generate};

/// Rows and columns of X, and columns of Y: one and several tiles of columns, even and odd ones, and depths that
/// `shallow` takes.
const SHAPES: [(usize, usize, usize); 4] =
    [(70, 36, 20), (33, 130, 41), (70, 9, 150), (33, 31, 139)];

/// Operands of whole numbers, whose products are exact in all types, and their product.
fn operands<T: GemmElement>(
    (m, k, n): (usize, usize, usize),
) -> (Array2<T>, Array2<T>, Array2<f64>) {
    let x = Array2::from_shape_fn((m, k), |(i, j)| T::from_f64(((i * 5 + j) % 3) as f64));
    let w = Array2::from_shape_fn((k, n), |(i, j)| T::from_f64(((i + j * 7) % 2) as f64));
    let product = x.mapv(T::to_f64).dot(&w.mapv(T::to_f64));
    (x, w, product)
}

#[test]
fn no_kernel_has_a_fault_under_100_random_schedules() {
    fn all<T: GemmElement>(device: &Device, turn: usize) {
        // Eight turns have each type on one and on two threads of the host. Twelve times eight turns have each shape
        // with each third of the kernels.
        let (x, w, wanted) = operands::<T>(SHAPES[turn / 8 % 4]);
        let choices = choices::<T>(device, x.ncols());
        for options in choices.iter().skip(turn / 8 % 3).step_by(3) {
            let y = multiply(device, x.view(), w.view(), None, *options);
            assert_eq!(y.mapv(T::to_f64), wanted, "{options:?} on {device}");
            if options.tuning.kernel.unwrap().folder() == "ladder" {
                continue;
            }
            // Gaps that all kernels of the product take.
            let gemm = Gemm::plan(device, w.view(), None, *options).unwrap();
            let y = multiply_with_gaps(&gemm, x.view(), (6, 8));
            assert_eq!(y.mapv(T::to_f64), wanted, "gaps, {options:?} on {device}");
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

#[test]
fn blocks_of_shallow_that_take_several_tiles_in_turn_have_no_fault_and_are_exact() {
    fn one<T: GemmElement>() {
        let tuning = GemmTuning::new().kernel(GemmKernel::Shallow);
        // With these columns, a tile has at most 32 rows.
        for shape @ (m, k, n) in [(650, 31, 139), (530, 32, 1030)] {
            let (x, w, wanted) = operands::<T>(shape);
            for seed in 0..3 {
                let options = EmulatorOptions::new()
                    .workers(NonZeroUsize::new(1))
                    .schedule(Schedule::Random { seed });
                let device = Device::emulator(options);
                let options = GemmOptions::new().tuning(tuning);
                let gemm = Gemm::plan(&device, w.view(), None, options).unwrap();
                let blocks = gemm.launch_config(m).unwrap().unwrap().grid.y;
                assert!(m > 2 * 32 * blocks as usize, "{blocks} blocks");
                let y = gemm.multiply(x.view()).unwrap();
                assert_eq!(y.mapv(T::to_f64), wanted, "{k} to {n} columns on {device}");
                let y = multiply_with_gaps(&gemm, x.view(), (5, 3));
                assert_eq!(y.mapv(T::to_f64), wanted, "gaps, {k} to {n} columns");
            }
        }
    }
    one::<f32>();
    one::<f16>();
    one::<bf16>();
}

#[test]
fn warps_of_flat_fragments_that_take_several_tiles_in_turn_have_no_fault_and_are_exact() {
    fn one<T: GemmElement>() {
        let tuning = GemmTuning::new().kernel(GemmKernel::FlatFragments);
        // One, two and three steps of X. One worker counts as one multiprocessor, so the first X has four tiles of 32
        // rows for each of 32 warps.
        for shape @ (m, k, n) in [(4200, 5, 20), (1100, 31, 139), (900, 41, 50)] {
            let (x, w, wanted) = operands::<T>(shape);
            for seed in 0..2 {
                let options = EmulatorOptions::new()
                    .workers(NonZeroUsize::new(1))
                    .schedule(Schedule::Random { seed });
                let device = Device::emulator(options);
                let options = GemmOptions::new().tuning(tuning);
                let gemm = Gemm::plan(&device, w.view(), None, options).unwrap();
                let launch = gemm.launch_config(m).unwrap().unwrap();
                let warps = (launch.grid.y * launch.block.x / 32) as usize;
                assert!(m > 2 * 16 * warps, "{warps} warps");
                assert!(k > 5 || m >= 4 * 32 * warps, "{warps} warps");
                let y = gemm.multiply(x.view()).unwrap();
                assert_eq!(y.mapv(T::to_f64), wanted, "{k} to {n} columns on {device}");
                let y = multiply_with_gaps(&gemm, x.view(), (5, 3));
                assert_eq!(y.mapv(T::to_f64), wanted, "gaps, {k} to {n} columns");
            }
        }
    }
    one::<f16>();
    one::<bf16>();
}
