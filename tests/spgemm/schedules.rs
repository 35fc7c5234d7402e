//! Every kernel under many orders of threads and blocks.

use crate::{SKEWED, choices, products};
use sprs::CsMatI;
use warprow::DeviceCsr;
use warprow::spgemm::{SpgemmKernel, SpgemmOptions, multiply_unsorted, spgemm};
use warprow::{CsrMatrix, generate, reference};

/// A matrix whose products are exact in f32.
fn whole_values(a: CsrMatrix<f32>) -> CsrMatrix<f32> {
    a.map(|&value| (8.0 * value).round())
}

#[test]
fn no_kernel_has_a_fault_under_100_random_schedules() {
    let a = whole_values(generate::rmat::<f32>(60, 280, SKEWED, 5).unwrap());
    let wanted = reference::spgemm(a.view(), a.view());
    let (choices, kernels) = (choices(), SpgemmKernel::ALL);
    for (turn, device) in support::schedules().enumerate() {
        let options = choices[turn % choices.len()];
        for product in products(&device, &a, &a, options).unwrap() {
            assert!(
                product.map(|&value| f64::from(value)) == wanted,
                "{options:?} on {device}"
            );
        }
        let (a, kernel) = (
            DeviceCsr::upload(&device, a.view()).unwrap(),
            kernels[turn % kernels.len()],
        );
        let product = multiply_unsorted(kernel, &a, &a)
            .unwrap()
            .download_sorted()
            .unwrap();
        assert!(
            product.map(|&value| f64::from(value)) == wanted,
            "{} on {device}",
            kernel.name()
        );
    }
}

#[test]
fn blocks_that_look_back_at_earlier_ones_have_no_fault_under_100_random_schedules() {
    // Tiles of 1024 rows pass the number of entries before them from block to block.
    let rows = 3000_u32;
    let indptr = (0..=rows).collect();
    let a = CsMatI::new(
        (rows as usize, 7),
        indptr,
        (0..rows).map(|i| i % 7).collect(),
        vec![1.0_f32; rows as usize],
    );
    let b = CsMatI::eye(7).map(|&value: &f32| 2.0 * value);
    for device in support::schedules() {
        let product = spgemm(&device, a.view(), b.view(), SpgemmOptions::default())
            .unwrap()
            .c;
        assert!(product == a.map(|value| 2.0 * value), "on {device}");
    }
}
