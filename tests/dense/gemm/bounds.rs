//! The error bound of XW: it holds for every right result, and a missing term exceeds it.

use ndarray::{Array2, aview1};
use proptest::prelude::*;
use warprow::reference::{Arithmetic, DenseEpilogue, verify_gemm};
use warprow::{Scalar, bf16, f16};

/// The greatest depth at which each term exceeds twice the bound, where all have magnitudes from 1/4 to 1.
const DEPTHS: [(Sums, usize); 3] = [
    (Sums::Nearest, 900),
    (Sums::Truncated, 450),
    (Sums::OfTf32, 100),
];

/// How a product is computed.
#[derive(Clone, Copy, Debug)]
enum Sums {
    /// Each step rounds to nearest.
    Nearest,
    /// Eight products and the sum before are cut off at the last place of the greatest, as tensor cores do.
    Truncated,
    /// The same, with factors rounded to tf32.
    OfTf32,
}

impl Sums {
    fn arithmetic<T: Scalar>(self) -> Arithmetic {
        match self {
            Self::Nearest => Arithmetic::of::<T>(),
            Self::Truncated => Arithmetic::tensor_cores(),
            Self::OfTf32 => Arithmetic::tf32(),
        }
    }

    /// The sum of the products of some factors, in the type of sums of `T`.
    fn add<T: Scalar>(self, factors: &[(T, T)]) -> f64 {
        let is_long = T::UNIT_ROUNDOFF < f32::UNIT_ROUNDOFF;
        let rounded = |x: f64| if is_long { x } else { f64::from(x as f32) };
        let products = factors.iter().map(|&(x, w)| {
            let [x, w] = [x, w].map(|factor| match self {
                Self::OfTf32 => to_tf32(factor.to_f64()),
                _ => factor.to_f64(),
            });
            x * w
        });
        let products: Vec<f64> = products.collect();
        match self {
            Self::Nearest => products
                .iter()
                .fold(0.0, |sum, product| rounded(sum + rounded(*product))),
            Self::Truncated | Self::OfTf32 => products.chunks(8).fold(0.0, |sum, products| {
                let terms = || products.iter().chain([&sum]);
                let greatest = terms().fold(0.0, |most: f64, term| most.max(term.abs()));
                if greatest == 0.0 {
                    return 0.0;
                }
                let last_place = 2f64.powi(greatest.log2().floor() as i32 - 23);
                let cut = |term: &f64| (term / last_place).trunc() * last_place;
                f64::from(terms().map(cut).sum::<f64>() as f32)
            }),
        }
    }
}

/// Rounded to 11 bits.
fn to_tf32(x: f64) -> f64 {
    if x == 0.0 {
        return 0.0;
    }
    let last_place = 2f64.powi(x.abs().log2().floor() as i32 - 10);
    (x / last_place).round() * last_place
}

/// Factors of magnitudes from 1/2 to 1 times powers of two. The signs of the products balance.
fn factors<T: Scalar>(mantissas: &[(u16, u16)], [of_x, of_w]: [i32; 2]) -> Vec<(T, T)> {
    let factor = |mantissa: u16, exponent: i32| {
        T::from_f64((0.5 + f64::from(mantissa) / 131_072.0) * 2f64.powi(exponent))
    };
    let mut sum = 0.0;
    let pairs = mantissas.iter().map(|&(x, w)| {
        let (x, w) = (factor(x, of_x), factor(w, of_w));
        let product = x.to_f64() * w.to_f64();
        let w = if sum > 0.0 {
            T::from_f64(-w.to_f64())
        } else {
            w
        };
        sum += if sum > 0.0 { -product } else { product };
        (x, w)
    });
    pairs.collect()
}

/// The right sum passes, and one without a term does not.
fn assert_bound<T: Scalar + warprow::Element>(
    sums: Sums,
    mantissas: &[(u16, u16)],
    exponents: [i32; 2],
    missing: prop::sample::Index,
) -> Result<(), TestCaseError> {
    let factors = factors::<T>(mantissas, exponents);
    let (x, w): (Vec<T>, Vec<T>) = factors.iter().copied().unzip();
    let verify = |found: f64| {
        let found = Array2::from_elem((1, 1), T::from_f64(found));
        verify_gemm(
            aview1(&x).insert_axis(ndarray::Axis(0)),
            aview1(&w).insert_axis(ndarray::Axis(1)),
            DenseEpilogue::default(),
            sums.arithmetic::<T>(),
            found.view(),
        )
    };
    let right = verify(sums.add(&factors));
    prop_assert!(right.ok(), "{} {sums:?}: {right}", T::NAME);
    let mut others = factors.clone();
    others.remove(missing.index(others.len()));
    let wrong = verify(sums.add(&others));
    prop_assert!(!wrong.ok(), "{} {sums:?}: {wrong}", T::NAME);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn right_sums_pass_and_sums_without_a_term_do_not(
        mantissas in proptest::collection::vec(any::<(u16, u16)>(), 1..=900),
        // The products are normal in f32. In f16, sums of the least ones are subnormal.
        exponents in [-7_i32..=2, -7_i32..=2],
        missing: prop::sample::Index,
    ) {
        for (sums, depth) in DEPTHS {
            let mantissas = &mantissas[..mantissas.len().min(depth)];
            match sums {
                Sums::Nearest => {
                    assert_bound::<f32>(sums, mantissas, exponents, missing)?;
                    assert_bound::<f64>(sums, mantissas, exponents, missing)?;
                }
                Sums::Truncated => {
                    assert_bound::<f16>(sums, mantissas, exponents, missing)?;
                    assert_bound::<bf16>(sums, mantissas, exponents, missing)?;
                }
                Sums::OfTf32 => assert_bound::<f32>(sums, mantissas, exponents, missing)?,
            }
        }
    }
}
