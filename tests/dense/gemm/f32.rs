//! f32 in parts of tf32, bf16 or f16: the greatest and the smallest numbers, infinities, and the last of 24 bits.

use super::{choices, multiply};
use ndarray::Array2;
use warprow::device::Device;
use warprow::reference::{Arithmetic, DenseEpilogue, verify_gemm};
use warprow::{Gemm, GemmKernel, GemmOptions, generate};

/// f32 by all kernels but those in tf32, which have fewer bits and whose products of parts do not apply.
fn f32_verifies(x: &Array2<f32>, w: &Array2<f32>) {
    f32_verifies_on(support::devices(), x, w);
}

/// As [`f32_verifies`], on these devices.
fn f32_verifies_on(devices: Vec<Device>, x: &Array2<f32>, w: &Array2<f32>) {
    for device in devices {
        for options in choices::<f32>(&device, x.ncols()) {
            if options.tuning.kernel.unwrap().rounds_f32() {
                continue;
            }
            let y = multiply(&device, x.view(), w.view(), None, options);
            let (epilogue, arithmetic) = (DenseEpilogue::default(), Arithmetic::of::<f32>());
            let checked = verify_gemm(x.view(), w.view(), epilogue, arithmetic, y.view());
            assert!(checked.ok(), "{options:?} on {device}: {checked}");
        }
    }
}

#[test]
fn the_greatest_numbers_and_infinities_of_f32_come_out_as_on_cuda_cores() {
    for depth in [15, 16, 40] {
        let mut x = generate::dense::<f32>(70, depth, 1).unwrap();
        let w = generate::dense::<f32>(depth, 18, 2).unwrap();
        // The greatest rounds up to infinity where it is split in two.
        x[[1, 3]] = f32::MAX;
        x[[2, 4]] = -f32::MAX;
        x[[20, 2]] = f32::INFINITY;
        x[[40, 14]] = f32::NEG_INFINITY;
        x[[41, 0]] = f32::from_bits(0x7fff_ffff);
        x[[69, 1]] = f32::from_bits(0x7f80_0001);
        f32_verifies(&x, &w);
        f32_verifies(&x, &w.mapv(f32::abs));
    }
}

#[test]
fn the_smallest_numbers_of_f32_keep_their_bits_beside_great_ones() {
    let x = generate::dense::<f32>(40, 32, 1).unwrap();
    let w = generate::dense::<f32>(32, 10, 2).unwrap();
    let scaled = |matrix: &Array2<f32>, exponent: i32| {
        matrix.mapv(|x| (f64::from(x) * 2f64.powi(exponent)) as f32)
    };
    for (of_x, of_w) in [
        (-140, 0),
        (-140, 100),
        (100, -140),
        (-100, -30),
        (100, -100),
        (-60, 60),
        (-126, 9),
        // The last places of three parts beside the greatest W that they suffice for.
        (-105, 7),
        (-115, 7),
        (-126, 7),
        (-140, 7),
        // As much for two parts of f16.
        (-99, 4),
        (-105, 4),
        (-126, 4),
    ] {
        f32_verifies(&scaled(&x, of_x), &scaled(&w, of_w));
    }
}

#[test]
fn parts_lose_no_bit_that_f32_has() {
    // All 24 bits, the rest at its greatest, and all errors of one sign: in two parts, and in three of bf16, of which
    // X's are cut off and W's rounded.
    for (of_x, of_w) in [
        (0x3f80_0fff, 0x3f80_0fff),
        (0x3f80_1fff, 0x3f80_1fff),
        (0x3f80_0801, 0x3f80_0801),
        (0x3fff_ffff, 0x3fff_ffff),
        (0x3f80_ffff, 0x3f80_7fff),
        (0x3f80_ffff, 0x3f80_7f7f),
        (0x3f80_80ff, 0x3f80_7f80),
    ] {
        let x = Array2::from_elem((33, 16), f32::from_bits(of_x));
        let w = Array2::from_elem((16, 9), f32::from_bits(of_w));
        f32_verifies(&x, &w);
        f32_verifies(&x.mapv(|x| -x), &w);
    }
}

#[test]
fn small_elements_of_a_row_keep_what_shows_beside_the_greatest() {
    // Even rows of W have its least elements, which the greatest of X meets, odd ones the greatest. They are as
    // different as two parts of f16 allow.
    for (greatest, of_x) in [(32.0_f32, 0), (0.25, 100), (1.0, -126)] {
        let w = Array2::from_shape_fn((66, 66), |(k, column)| {
            let least = if k % 2 == 0 {
                2f32.powi(-22) * 1.02
            } else {
                1.0
            };
            let sign = if column % 2 == 0 || k % 4 < 2 {
                1.0
            } else {
                -1.0
            };
            sign * greatest * least * (1.0 - (k + column) as f32 / 8192.0)
        });
        let emulator = Device::emulator(Default::default());
        let plan = Gemm::plan(&emulator, w.view(), None, GemmOptions::default()).unwrap();
        assert_eq!(plan.kernel(), GemmKernel::WarpgroupHalves);
        for (turn, spread) in [0, 12, 22, 27, 28, 40, 60].into_iter().enumerate() {
            let x = Array2::from_shape_fn((35, 66), |(row, k)| {
                let all_bits = f32::from_bits(0x3fff_ffff - (row + k) as u32);
                let below = if k == row / 2 * 2 { 0 } else { spread };
                (f64::from(all_bits) * 2f64.powi(of_x - below)) as f32
            });
            f32_verifies_on(support::devices_in_turn(turn), &x, &w);
        }
    }
}
