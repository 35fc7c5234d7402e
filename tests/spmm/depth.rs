//! What verification catches in a very long row: the bound by a plan's summation depth, and the exact check.

use crate::has_sized_items;
use ndarray::{Array2, s};
use sprs::CsMatI;
use support::devices;
use warprow::reference::{Operation, WholeProduct, spmm};
use warprow::{
    CsrMatrix, Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning, bf16, f16, generate,
};

/// Nonzeros of the long row.
const LONG: u32 = 50_000;

/// Kernels that cut long rows.
const CUTTING: [SpmmKernel; 5] = [
    SpmmKernel::Vector,
    SpmmKernel::InStep,
    SpmmKernel::RowBins,
    SpmmKernel::Spmv,
    SpmmKernel::SlicedTwoPass,
];

fn by(kernel: SpmmKernel) -> SpmmOptions {
    SpmmOptions::new().tuning(SpmmTuning::new().kernel(kernel))
}

#[test]
fn a_sum_of_50_000_random_terms_that_is_off_by_less_than_their_sum_is_wrong() {
    let x = generate::dense::<f32>(LONG as usize, 1, 1).unwrap();
    let values = generate::dense::<f32>(1, LONG as usize, 2)
        .unwrap()
        .into_raw_vec_and_offset()
        .0;
    let a = CsMatI::new(
        (1, LONG as usize),
        vec![0, LONG],
        (0..LONG).collect(),
        values,
    );
    let exact = spmm(a.view(), x.view())[(0, 0)];
    for device in devices() {
        for (kernel, error) in CUTTING.into_iter().zip([4.0, 200.0, 4.0, 4.0, 2.0]) {
            let plan = Spmm::plan(&device, a.view(), by(kernel)).unwrap();
            let operation = Operation::new().depth(plan.summation_depth(LONG as usize, 1));
            let y = plan.multiply(x.view()).unwrap();
            let found = operation.verify(a.view(), x.view(), y.view());
            assert!(found.ok(), "{plan}: {found}");
            for wrong in [exact + error, exact - error] {
                let y = Array2::from_elem((1, 1), wrong as f32);
                let found = operation.verify(a.view(), x.view(), y.view());
                assert!(!found.ok(), "{plan}: {found}");
            }
        }
    }
}

/// Without its nonzero number `place`.
fn without<T: SpmmElement>(a: &CsrMatrix<T>, place: usize) -> CsrMatrix<T> {
    let (mut indices, mut values) = (a.indices().to_vec(), a.data().to_vec());
    indices.remove(place);
    values.remove(place);
    CsMatI::new(a.shape(), vec![0, indices.len() as u32], indices, values)
}

fn one_missing_or_doubled_term_is_found<T: SpmmElement>() {
    let structure = CsMatI::new(
        (1, LONG as usize),
        vec![0, LONG],
        (0..LONG).collect(),
        vec![(); LONG as usize],
    );
    let whole = WholeProduct::<T>::new(structure.view(), 4, 1);
    let x = whole.x();
    let a = whole.a().to_owned();
    let dropped = without(&a, 23_456);
    let mut doubled = a.clone();
    let value = doubled.data_mut().last_mut().unwrap();
    *value = *value + *value;
    for device in devices() {
        for kernel in [
            SpmmKernel::Vector,
            SpmmKernel::InStep,
            SpmmKernel::RowBins,
            SpmmKernel::RowGroups,
            SpmmKernel::Spmv,
        ] {
            let verify = |a: &CsrMatrix<T>| {
                let plan = Spmm::plan(&device, a.view(), by(kernel)).unwrap();
                whole.verify(plan.multiply(x.view()).unwrap().view())
            };
            assert!(verify(&a).ok(), "{kernel:?} on {device}: {}", verify(&a));
            for wrong in [&dropped, &doubled] {
                assert_eq!(verify(wrong).failures, 4, "{kernel:?} on {device}");
            }
        }
    }
}

#[test]
fn one_missing_or_doubled_term_of_50_000_is_found_in_f32_and_f64() {
    one_missing_or_doubled_term_is_found::<f32>();
    one_missing_or_doubled_term_is_found::<f64>();
}

#[test]
fn one_missing_or_doubled_term_of_50_000_is_found_in_16_bits() {
    one_missing_or_doubled_term_is_found::<f16>();
    one_missing_or_doubled_term_is_found::<bf16>();
}

#[test]
fn every_kernel_is_as_precise_as_its_summation_depth_says() {
    let a = generate::rmat::<f32>(400, 12_000, [0.6, 0.2, 0.15, 0.05], 3).unwrap();
    // Terms of one sign: partial sums and their errors grow all the way.
    let a = a.map(|value| value.abs());
    let x = generate::dense::<f32>(400, 9, 4).unwrap().mapv(f32::abs);
    let longest = a.outer_iterator().map(|row| row.nnz()).max().unwrap();
    for device in devices() {
        for &kernel in SpmmKernel::ALL {
            for task_size in [None, Some(7)] {
                if task_size.is_some() && !has_sized_items(kernel) {
                    continue;
                }
                let options = by(kernel).map_tuning(|tuning| tuning.task_size(task_size));
                let plan = Spmm::plan(&device, a.view(), options).unwrap();
                for x in [x.view(), x.slice(s![.., ..4])] {
                    let operation =
                        Operation::new().depth(plan.summation_depth(longest, x.ncols()));
                    let y = plan.multiply(x).unwrap();
                    let found = operation.verify(a.view(), x, y.view());
                    assert!(found.ok(), "{plan}: {found}");
                }
            }
        }
    }
}
