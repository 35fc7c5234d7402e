//! `cuda_std::mma`: small matrices, each warp its own, against products computed here.

use crate::{devices, download, numbers, run};
use warprow::{Element, Scalar, bf16, f16};
use warprow_test_kernels::mma::{multiply_doubles, multiply_halves, multiply_tf32};

const BLOCKS: usize = 3;
const WARPS: usize = BLOCKS * 2;

/// Whole numbers from -8 to 7, whose sums of 16 products every type holds.
fn whole<T: Scalar>(count: usize, seed: u64) -> Vec<T> {
    let numbers = numbers(count, seed).into_iter();
    numbers
        .map(|n| T::from_f64((n % 16) as f64 - 8.0))
        .collect()
}

/// `C + A B` of each warp's matrices, m x k and k x 8.
fn products<T: Scalar, S: Scalar>(m: usize, k: usize, a: &[T], b: &[T], c: &[S]) -> Vec<f64> {
    let entry = |(place, c): (usize, &S)| {
        let (warp, row, column) = (place / (m * 8), place / 8 % m, place % 8);
        let terms = (0..k).map(|k_| {
            a[warp * m * k + row * k + k_].to_f64() * b[warp * k * 8 + k_ * 8 + column].to_f64()
        });
        c.to_f64() + terms.sum::<f64>()
    };
    c.iter().enumerate().map(entry).collect()
}

fn halves<T: Scalar + Element + cuda_std::mma::MmaElement>() {
    let (a, b) = (whole::<T>(WARPS * 256, 1), whole::<T>(WARPS * 128, 2));
    let c = whole::<f32>(WARPS * 128, 3);
    for device in devices() {
        let (a_, b_) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
        let mut c_ = device.upload(&c).unwrap();
        run!(
            device,
            multiply_halves::<T>(),
            BLOCKS as u32,
            64,
            (a_.read_only(), b_.read_only(), c_.mutable())
        );
        let found: Vec<f64> = download(&c_).into_iter().map(f64::from).collect();
        assert_eq!(
            found,
            products(16, 16, &a, &b, &c),
            "{} on {device}",
            T::NAME
        );
    }
}

#[test]
fn products_of_sixteen_bit_floats_have_every_element_in_its_place() {
    halves::<f16>();
    halves::<bf16>();
}

#[test]
fn products_in_tf32_have_every_element_in_its_place() {
    let (a, b) = (whole::<f32>(WARPS * 128, 4), whole::<f32>(WARPS * 64, 5));
    let c = whole::<f32>(WARPS * 128, 6);
    for device in devices() {
        let (a_, b_) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
        let mut c_ = device.upload(&c).unwrap();
        run!(
            device,
            multiply_tf32(),
            BLOCKS as u32,
            64,
            (a_.read_only(), b_.read_only(), c_.mutable())
        );
        let found: Vec<f64> = download(&c_).into_iter().map(f64::from).collect();
        assert_eq!(found, products(16, 8, &a, &b, &c), "on {device}");
    }
}

#[test]
fn tf32_keeps_eleven_bits_rounded_to_nearest() {
    // A has one element a row in column 0, B ones in row 0: C is A, rounded.
    let values = [
        1.0 + 0.5f32.powi(10),
        1.0 + 0.5f32.powi(11),
        1.0 + 0.5f32.powi(12),
        -3.0e-5,
        0.0,
    ];
    let wanted = [
        1.0 + 0.5f32.powi(10),
        1.0 + 0.5f32.powi(10),
        1.0,
        -3.0e-5,
        0.0,
    ];
    let mut a = vec![0.0f32; WARPS * 128];
    let mut b = vec![0.0f32; WARPS * 64];
    for (row, &value) in values.iter().cycle().take(WARPS * 16).enumerate() {
        a[8 * row] = value;
    }
    for warp in 0..WARPS {
        b[64 * warp..64 * warp + 8].fill(1.0);
    }
    for device in devices() {
        let (a_, b_) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
        let mut c_ = device.zeros::<f32>(WARPS * 128).unwrap();
        run!(
            device,
            multiply_tf32(),
            BLOCKS as u32,
            64,
            (a_.read_only(), b_.read_only(), c_.mutable())
        );
        for (row, found) in download(&c_).chunks(8).enumerate() {
            let wanted = wanted[row % wanted.len()];
            let close = |&found: &f32| (found - wanted).abs() <= 0.5f32.powi(11) * wanted.abs();
            let exact = |&found: &f32| wanted.abs() < 0.5 || found == wanted;
            assert!(
                found.iter().all(close) && found.iter().all(exact),
                "row {row}: {found:?} on {device}"
            );
        }
    }
}

#[test]
fn products_of_doubles_have_every_element_in_its_place() {
    let (a, b) = (whole::<f64>(WARPS * 32, 7), whole::<f64>(WARPS * 32, 8));
    let c = whole::<f64>(WARPS * 64, 9);
    for device in devices() {
        let (a_, b_) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
        let mut c_ = device.upload(&c).unwrap();
        run!(
            device,
            multiply_doubles(),
            BLOCKS as u32,
            64,
            (a_.read_only(), b_.read_only(), c_.mutable())
        );
        assert_eq!(download(&c_), products(8, 4, &a, &b, &c), "on {device}");
    }
}
