//! Every kernel under many orders of threads and blocks.

use crate::gemm::{choices, multiply};
use crate::leading_dimensions::multiply_with_gaps;
use ndarray::Array2;
use std::num::NonZeroUsize;
use warprow::device::{Device, EmulatorOptions, Schedule};
use warprow::log_softmax::LogSoftmax;
use warprow::reference::verify_log_softmax;
use warprow::{
    Gemm, GemmElement, GemmKernel, GemmOptions, GemmTuning, LaunchConfig, bf16, f16, generate,
};

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

/// Multiplies whole numbers by the kernel under random schedules, on one worker, which counts as one multiprocessor. X
/// has so many rows that each block, or each warp, takes several tiles: `check_launch` asserts it.
fn several_tiles_in_turn<T: GemmElement>(
    kernel: GemmKernel,
    shape @ (m, k, n): (usize, usize, usize),
    seeds: u64,
    check_launch: impl Fn(LaunchConfig),
) {
    let (x, w, wanted) = operands::<T>(shape);
    for seed in 0..seeds {
        let options = EmulatorOptions::new()
            .workers(NonZeroUsize::new(1))
            .schedule(Schedule::Random { seed });
        let device = Device::emulator(options);
        let options = GemmOptions::new().tuning(GemmTuning::new().kernel(kernel));
        let gemm = Gemm::plan(&device, w.view(), None, options).unwrap();
        check_launch(gemm.launch_config(m).unwrap().unwrap());
        let y = gemm.multiply(x.view()).unwrap();
        assert_eq!(y.mapv(T::to_f64), wanted, "{k} to {n} columns on {device}");
        let y = multiply_with_gaps(&gemm, x.view(), (5, 3));
        assert_eq!(y.mapv(T::to_f64), wanted, "gaps, {k} to {n} columns");
    }
}

#[test]
fn blocks_of_shallow_that_take_several_tiles_in_turn_have_no_fault_and_are_exact() {
    fn one<T: GemmElement>() {
        // With these columns, a tile has at most 32 rows.
        for shape in [(650, 31, 139), (530, 32, 1030)] {
            several_tiles_in_turn::<T>(GemmKernel::Shallow, shape, 3, |launch| {
                let blocks = launch.grid.y as usize;
                assert!(shape.0 > 2 * 32 * blocks, "{blocks} blocks");
            });
        }
    }
    one::<f32>();
    one::<f16>();
    one::<bf16>();
}

#[test]
fn warps_of_flat_fragments_that_take_several_tiles_in_turn_have_no_fault_and_are_exact() {
    fn one<T: GemmElement>() {
        // One, two and three steps of X. Each of the 32 warps has four tiles of 32 rows of the first X, and more than
        // two of 16 rows of the others.
        for (shape, least) in [
            ((4200, 5, 20), 4 * 32),
            ((1100, 31, 139), 2 * 16 + 1),
            ((900, 41, 50), 2 * 16 + 1),
        ] {
            several_tiles_in_turn::<T>(GemmKernel::FlatFragments, shape, 2, |launch| {
                let warps = (launch.grid.y * launch.block.x / 32) as usize;
                assert!(shape.0 >= least * warps, "{warps} warps");
            });
        }
    }
    one::<f16>();
    one::<bf16>();
}

#[test]
fn warps_of_inner_products_that_take_rows_in_turn_have_no_fault_and_are_exact() {
    fn one<T: GemmElement>() {
        // A warp has at most 32, 8 and 4 rows at a time. Some warps share the rows that begin at the same element of a
        // vector.
        for (shape, most) in [
            ((2101, 93, 1), 32),
            ((1301, 301, 2), 8),
            ((700, 1030, 3), 4),
        ] {
            several_tiles_in_turn::<T>(GemmKernel::InnerProducts, shape, 2, |launch| {
                let warps = (launch.grid.y * launch.block.x / 32) as usize;
                assert!(shape.0 > most * warps, "{warps} warps");
            });
        }
    }
    one::<f32>();
    one::<f64>();
    one::<f16>();
}
