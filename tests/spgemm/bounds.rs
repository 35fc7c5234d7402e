//! The error bound of SpGEMM: it is that of each entry's own number of products, holds for every right result, and a
//! missing product exceeds it.

use proptest::prelude::*;
use sprs::CsMatI;
use warprow::reference::verify_spgemm;
use warprow::spgemm::SpgemmElement;
use warprow::{CsrMatrix, Element};

/// The product of two matrices of `lengths.len()` and one row: entry i has `lengths[i]` products.
struct Product<T> {
    a: CsrMatrix<T>,
    b: CsrMatrix<T>,
    /// The products of each entry.
    products: Vec<Vec<(T, T)>>,
}

impl<T: SpgemmElement> Product<T> {
    /// Factors of magnitudes from 1/2 to 1, whose products' signs balance.
    fn new(lengths: &[usize], mantissas: &[(u16, u16)]) -> Self {
        let longest = *lengths.iter().max().unwrap();
        let factor = |mantissa: u16| 0.5 + f64::from(mantissa) / 131_072.0;
        let of_b: Vec<T> = (0..longest)
            .map(|k| T::from_f64(factor(mantissas[k % mantissas.len()].1)))
            .collect();
        let mut number = 0;
        let products = lengths.iter().map(|&length| {
            let mut sum = 0.0;
            let of_entry = of_b[..length].iter().map(|&b| {
                number += 1;
                let sign = if sum > 0.0 { -1.0 } else { 1.0 };
                let a = T::from_f64(sign * factor(mantissas[number % mantissas.len()].0));
                sum += a.to_f64() * b.to_f64();
                (a, b)
            });
            of_entry.collect()
        });
        let products: Vec<Vec<(T, T)>> = products.collect();
        let mut row_ptr = vec![0];
        row_ptr.extend(lengths.iter().scan(0, |end, &length| {
            *end += length as u32;
            Some(*end)
        }));
        let columns = lengths.iter().flat_map(|&length| 0..length as u32);
        let of_a = products.iter().flatten().map(|&(a, _)| a);
        let shape = (lengths.len(), longest);
        Self {
            a: CsMatI::new(shape, row_ptr, columns.collect(), of_a.collect()),
            b: CsMatI::new(
                (longest, 1),
                (0..=longest as u32).collect(),
                vec![0; longest],
                of_b,
            ),
            products,
        }
    }

    /// Whether these sums are right.
    fn accepts(&self, sums: Vec<T>) -> bool {
        let rows = sums.len();
        let row_ptr = (0..=rows as u32).collect();
        let c = CsMatI::new((rows, 1), row_ptr, vec![0; rows], sums);
        verify_spgemm(self.a.view(), self.b.view(), c.view()).ok()
    }
}

/// The sum of products in an order that starts in the middle, with or without fused multiplications and additions.
fn sum<T: SpgemmElement>(products: &[(T, T)], first: usize, is_fused: bool) -> T {
    let (before, after) = products.split_at(first % products.len().max(1));
    let terms = after.iter().chain(before);
    terms.fold(T::from_f64(0.0), |sum, &(a, b)| {
        let product = a.to_f64() * b.to_f64();
        let term = if is_fused {
            product
        } else {
            T::from_f64(product).to_f64()
        };
        T::from_f64(sum.to_f64() + term)
    })
}

fn assert_bounds<T: SpgemmElement + Element>(
    lengths: &[usize],
    mantissas: &[(u16, u16)],
    first: usize,
    missing: prop::sample::Index,
) -> Result<(), TestCaseError> {
    let product = Product::<T>::new(lengths, mantissas);
    for is_fused in [false, true] {
        let sums = product.products.iter();
        let sums: Vec<T> = sums.map(|terms| sum(terms, first, is_fused)).collect();
        prop_assert!(product.accepts(sums.clone()), "{} {lengths:?}", T::NAME);
        for (entry, terms) in product.products.iter().enumerate() {
            let mut others = terms.clone();
            others.remove(missing.index(others.len()));
            let mut without_one = sums.clone();
            without_one[entry] = sum(&others, first, is_fused);
            prop_assert!(!product.accepts(without_one), "{} entry {entry}", T::NAME);
        }
        // An entry of one product is rounded twice at most, however many products the others have.
        let place = lengths.iter().position(|&length| length == 1).unwrap();
        let mut less_exact = sums.clone();
        less_exact[place] = T::from_f64(sums[place].to_f64() * (1.0 + 8.0 * T::UNIT_ROUNDOFF));
        prop_assert!(!product.accepts(less_exact), "{}", T::NAME);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn right_sums_pass_and_sums_without_a_product_do_not(
        lengths in proptest::collection::vec(1_usize..1000, 1..5),
        mantissas in proptest::collection::vec(any::<(u16, u16)>(), 1..2000),
        first in 0_usize..1000,
        missing: prop::sample::Index,
    ) {
        let lengths = [&[1], &lengths[..]].concat();
        assert_bounds::<f32>(&lengths, &mantissas, first, missing)?;
        assert_bounds::<f64>(&lengths, &mantissas, first, missing)?;
    }
}
