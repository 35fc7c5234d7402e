//! `cuda_std::float`: fused multiply-add, maximum, fast exponentials, 16-bit floats.

use crate::{devices, download, numbers, run};
use cuda_std::float::Narrow;
use warprow::{Device, bf16, f16};
use warprow_test_kernels::floats::{conversions, exponentials, fma, maximum};

/// `count` numbers in [-1, 1).
fn units(count: usize, seed: u64) -> Vec<f64> {
    numbers(count, seed)
        .iter()
        .map(|&n| (n >> 11) as f64 * 2.0_f64.powi(-52) - 1.0)
        .collect()
}

#[test]
fn fma_rounds_once() {
    let n = 1003;
    // c cancels the product: what is left is the rounding error that a product rounded by itself would lose.
    let (a, b) = (units(n, 10), units(n, 11));
    for device in devices() {
        let (a32, b32): (Vec<f32>, Vec<f32>) = (
            a.iter().map(|&v| v as f32).collect(),
            b.iter().map(|&v| v as f32).collect(),
        );
        let c32: Vec<f32> = a32.iter().zip(&b32).map(|(a, b)| -(a * b)).collect();
        let (a_in, b_in, c_in) = (
            device.upload(&a32).unwrap(),
            device.upload(&b32).unwrap(),
            device.upload(&c32).unwrap(),
        );
        let mut out = device.uninitialized::<f32>(n).unwrap();
        run!(
            device,
            fma::<f32>(),
            8,
            128,
            (
                n as u32,
                a_in.read_only(),
                b_in.read_only(),
                c_in.read_only(),
                out.mutable()
            )
        );
        let expected: Vec<f32> = (0..n).map(|i| a32[i].mul_add(b32[i], c32[i])).collect();
        assert!(
            expected.iter().filter(|&&e| e != 0.0).count() > n / 2,
            "the test would not see a second rounding"
        );
        assert_eq!(download(&out), expected, "f32 on {device}");

        let c: Vec<f64> = a.iter().zip(&b).map(|(a, b)| -(a * b)).collect();
        let (a_in, b_in, c_in) = (
            device.upload(&a).unwrap(),
            device.upload(&b).unwrap(),
            device.upload(&c).unwrap(),
        );
        let mut out = device.uninitialized::<f64>(n).unwrap();
        run!(
            device,
            fma::<f64>(),
            8,
            128,
            (
                n as u32,
                a_in.read_only(),
                b_in.read_only(),
                c_in.read_only(),
                out.mutable()
            )
        );
        let expected: Vec<f64> = (0..n).map(|i| a[i].mul_add(b[i], c[i])).collect();
        assert_eq!(download(&out), expected, "f64 on {device}");
    }
}

macro_rules! maximum_propagates_nan_and_orders_zeros {
    ($($test:ident: $float:ty),*) => {$(
        #[test]
        fn $test() {
            let values = [
                0.0,
                -0.0,
                1.5,
                -1.5,
                <$float>::MIN_POSITIVE / 4.0,
                <$float>::MAX,
                <$float>::INFINITY,
                <$float>::NEG_INFINITY,
                <$float>::NAN,
            ];
            let a: Vec<$float> = values.iter().flat_map(|&a| [a; 9]).collect();
            let b: Vec<$float> = [values; 9].concat();
            let n = a.len();
            for device in devices() {
                let (a_in, b_in) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
                let mut out = device.uninitialized::<$float>(n).unwrap();
                run!(
                    device,
                    maximum::<$float>(),
                    3,
                    32,
                    (n as u32, a_in.read_only(), b_in.read_only(), out.mutable())
                );
                for ((&a, &b), found) in a.iter().zip(&b).zip(download(&out)) {
                    if a.is_nan() || b.is_nan() {
                        assert!(found.is_nan(), "{a} and {b}: {found} on {device}");
                    } else {
                        // The total order has -0 below 0.
                        let greater = if a.total_cmp(&b).is_ge() { a } else { b };
                        assert_eq!(
                            found.to_bits(),
                            greater.to_bits(),
                            "{a} and {b}: {found} on {device}"
                        );
                    }
                }
            }
        }
    )*};
}
maximum_propagates_nan_and_orders_zeros! {
    maximum_of_f32_propagates_nan_and_orders_zeros: f32,
    maximum_of_f64_propagates_nan_and_orders_zeros: f64
}

#[test]
fn fast_exponentials_are_within_their_documented_error() {
    let mut x: Vec<f32> = units(2000, 12)
        .iter()
        .map(|&v| (v * 100.0) as f32)
        .collect();
    x.extend([
        0.0,
        1.0,
        -1.0,
        126.0,
        -125.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        1.0001,
        0.9999,
    ]);
    for device in devices() {
        let input = device.upload(&x).unwrap();
        let mut out = device.uninitialized::<f32>(2 * x.len()).unwrap();
        run!(
            device,
            exponentials(),
            16,
            128,
            (x.len() as u32, input.read_only(), out.mutable())
        );
        for (pair, &x) in download(&out).chunks(2).zip(&x) {
            let (exp2, log2) = (f64::from(x).exp2(), f64::from(x).log2());
            if exp2.is_infinite() || exp2 == 0.0 {
                assert_eq!(f64::from(pair[0]), exp2, "2^{x} on {device}");
            } else {
                let error = (f64::from(pair[0]) - exp2).abs() / exp2;
                assert!(
                    error <= 2.0_f64.powi(-22),
                    "2^{x} is {} and not {exp2} on {device}",
                    pair[0]
                );
            }
            if log2.is_nan() {
                assert!(
                    pair[1].is_nan(),
                    "log2 {x} is {} and not NaN on {device}",
                    pair[1]
                );
            } else if log2.is_infinite() {
                assert_eq!(f64::from(pair[1]), log2, "log2 {x} on {device}");
            } else {
                let error = (f64::from(pair[1]) - log2).abs();
                let bound = 2.0_f64.powi(-22).max(log2.abs() * 2.0_f64.powi(-22));
                assert!(
                    error <= bound,
                    "log2 {x} is {} and not {log2} on {device}",
                    pair[1]
                );
            }
        }
    }
}

fn check_conversions<T: Narrow>(
    device: &Device,
    round: impl Fn(f32) -> T,
    widen: impl Fn(T) -> f32,
) {
    let mut x: Vec<f32> = units(1500, 13).iter().map(|&v| v as f32).collect();
    // Ties, overflow, subnormal results, zeros, infinities.
    x.extend([
        1.0 + 1.0 / 2048.0,
        1.0 + 3.0 / 2048.0,
        1.0 + 1.0 / 256.0,
        1.0 + 3.0 / 256.0,
        65519.0,
        65520.0,
        1e-7,
        3e-8,
        -0.0,
    ]);
    x.extend([
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN_POSITIVE,
    ]);
    let input = device.upload(&x).unwrap();
    let mut narrow = device.uninitialized::<T>(x.len()).unwrap();
    let mut wide = device.uninitialized::<f32>(x.len()).unwrap();
    let (n, grid) = (x.len() as u32, 16);
    run!(
        device,
        conversions::<T>(),
        grid,
        128,
        (n, input.read_only(), narrow.mutable(), wide.mutable())
    );
    let bits: Vec<u32> = download(&wide).iter().map(|v| v.to_bits()).collect();
    let narrowed: Vec<u32> = download(&narrow)
        .iter()
        .map(|&v| widen(v).to_bits())
        .collect();
    let expected: Vec<u32> = x.iter().map(|&v| widen(round(v)).to_bits()).collect();
    assert_eq!(narrowed, expected, "to {} on {device}", T::NAME);
    assert_eq!(bits, expected, "from {} on {device}", T::NAME);
}

#[test]
fn sixteen_bit_floats_round_to_nearest_even() {
    for device in devices() {
        check_conversions::<f16>(&device, f16::from_f32, f16::to_f32);
        check_conversions::<bf16>(&device, bf16::from_f32, bf16::to_f32);
        check_conversions::<f32>(&device, |v| v, |v| v);
    }
}
