//! The rungs before the last.

use crate::{SKEWED, whole};
use support::devices;
use warprow::device::{Checks, Device, EmulatorOptions};
use warprow::operand::OperandError;
use warprow::reference::{self, verify_spgemm};
use warprow::spgemm::{SpgemmKernel, multiply_unsorted};
use warprow::{CsrMatrix, DeviceCsr, generate};

/// The product by each rung of the ladder on some devices; `None` where a row is too long for the rung.
fn by_rungs(
    devices: &[Device],
    a: &CsrMatrix<f32>,
    b: &CsrMatrix<f32>,
) -> Vec<(SpgemmKernel, Option<CsrMatrix<f32>>)> {
    let mut products = Vec::new();
    for device in devices {
        let on_device = |matrix: &CsrMatrix<f32>| DeviceCsr::upload(device, matrix.view()).unwrap();
        let (a, b) = (on_device(a), on_device(b));
        for &kernel in SpgemmKernel::ALL {
            let product = match multiply_unsorted(kernel, &a, &b) {
                Ok(product) => Some(product.download_sorted().unwrap()),
                Err(OperandError::TooLarge { .. }) => None,
                Err(error) => panic!("{} on {device}: {error}", kernel.name()),
            };
            products.push((kernel, product));
        }
    }
    products
}

#[test]
fn every_rung_multiplies_skewed_and_rectangular_matrices() {
    let a = generate::rmat::<f32>(200, 1300, SKEWED, 3).unwrap();
    for (kernel, product) in by_rungs(&devices(), &a, &a) {
        let verification = verify_spgemm(a.view(), a.view(), product.unwrap().view());
        assert!(verification.ok(), "{}: {verification}", kernel.name());
    }
    let a = generate::uniform::<f32>(37, 41, 60, 1).unwrap();
    let b = generate::uniform::<f32>(41, 1003, 300, 2).unwrap();
    for (kernel, product) in by_rungs(&devices(), &a, &b) {
        let verification = verify_spgemm(a.view(), b.view(), product.unwrap().view());
        assert!(verification.ok(), "{}: {verification}", kernel.name());
    }
    let none = whole(&[], 0);
    for (_, product) in by_rungs(&devices(), &none, &none) {
        assert_eq!(product.unwrap().nnz(), 0);
    }
}

#[test]
fn rows_too_long_for_a_rung_are_refused_and_the_last_of_them_takes_all() {
    // Without the checks for races, which cost the emulator most of its time where one warp does much.
    let device = support::cuda()
        .unwrap_or_else(|| Device::emulator(EmulatorOptions::new().checks(Checks::BoundsOnly)));
    for (entries, refused) in [(3000, 1), (20_000, 3), (40_000, 3)] {
        let b: Vec<Vec<u32>> = (0..70)
            .map(|k| (k * entries / 70..(k + 1) * entries / 70).collect())
            .collect();
        let (a, b) = (
            whole(&[vec![0], (0..70).collect(), vec![]], 70),
            whole(&b, 40_000),
        );
        let wanted = reference::spgemm(a.view(), b.view());
        for (kernel, product) in by_rungs(std::slice::from_ref(&device), &a, &b) {
            let rung = SpgemmKernel::ALL.iter().position(|&rung| rung == kernel);
            assert_eq!(
                product.is_none(),
                rung.unwrap() < refused,
                "{}",
                kernel.name()
            );
            if let Some(product) = product {
                assert!(product.map(|&value| f64::from(value)) == wanted);
            }
        }
    }
}
