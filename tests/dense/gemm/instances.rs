//! That every instance of every kernel is planned by some product, and right.

use super::{arithmetic, choices, multiply};
use std::collections::BTreeSet;
use warprow::device::Device;
use warprow::gemm::GemmError;
use warprow::reference::{DenseEpilogue, verify_gemm};
use warprow::{Gemm, GemmElement, GemmKernel, GemmOptions, bf16, f16, generate};

/// Rows and columns of W: for each tile a product that takes it.
const SHAPES: [(usize, usize); 11] = [
    (16, 16),
    (128, 16),
    (8, 5),
    (100, 47),
    (100, 64),
    (128, 128),
    // W fits into shared memory only without padding.
    (602, 41),
    // W does not fit.
    (602, 30),
    (800, 130),
    (1100, 47),
    (1100, 17),
];

/// Multiplies with each instance that is not among `seen`, and adds it there.
fn run_new<T: GemmElement>(device: &Device, seen: &mut BTreeSet<&'static str>) {
    for (k, n) in SHAPES {
        let (x, w) = (
            generate::dense::<T>(21, k, 1).unwrap(),
            generate::dense::<T>(k, n, 2).unwrap(),
        );
        for options in choices::<T>(device, k) {
            let gemm = Gemm::plan(device, w.view(), None, options).unwrap();
            if !seen.insert(gemm.variant(x.nrows()).unwrap().unwrap()) {
                continue;
            }
            let y = multiply(device, x.view(), w.view(), None, options);
            let arithmetic = arithmetic::<T>(options.kernel.unwrap());
            let epilogue = DenseEpilogue::default();
            let checked = verify_gemm(x.view(), w.view(), epilogue, arithmetic, y.view());
            assert!(checked.ok(), "{gemm}: {checked}");
        }
    }
}

#[test]
fn every_instance_is_planned_by_some_product() {
    let device = Device::emulator(Default::default());
    let mut seen = BTreeSet::new();
    run_new::<f32>(&device, &mut seen);
    run_new::<f64>(&device, &mut seen);
    run_new::<f16>(&device, &mut seen);
    run_new::<bf16>(&device, &mut seen);
    let registered: BTreeSet<&str> = cuda_std::kernel::instances()
        .map(|instance| instance.name())
        .filter(|name| name.starts_with("gemm_"))
        .collect();
    assert_eq!(seen, registered);
}

/// Multiplies with every instance that a plan takes when it is named; their number.
fn run_named<T: GemmElement>(device: &Device, (m, k, n): (usize, usize, usize)) -> usize {
    let (x, w) = (
        generate::dense::<T>(m, k, 1).unwrap(),
        generate::dense::<T>(k, n, 2).unwrap(),
    );
    let mut taken = 0;
    for name in cuda_std::kernel::instances().map(|instance| instance.name()) {
        for &kernel in GemmKernel::ALL {
            let options = GemmOptions {
                kernel: Some(kernel),
                tf32: true,
                instance: Some(name),
                ..GemmOptions::default()
            };
            let gemm = match Gemm::plan(device, w.view(), None, options) {
                Ok(gemm) => gemm,
                Err(GemmError::Kernel { .. }) => continue,
                Err(error) => panic!("{name}: {error}"),
            };
            assert_eq!(gemm.variant(m).unwrap(), Some(name));
            let y = gemm.multiply(x.view()).unwrap();
            let epilogue = DenseEpilogue::default();
            let arithmetic = arithmetic::<T>(kernel);
            let checked = verify_gemm(x.view(), w.view(), epilogue, arithmetic, y.view());
            assert!(checked.ok(), "{name}: {checked}");
            taken += 1;
        }
    }
    taken
}

#[test]
fn an_instance_that_is_named_runs_or_is_refused() {
    let device = Device::emulator(Default::default());
    // The ladder has seven instances of f32. Of the compact tiles, that of f64 takes no W of 19 columns.
    assert_eq!(
        run_named::<f32>(&device, (35, 24, 19)),
        7 + 3 + 3 + 5 + 4 + 2
    );
    assert_eq!(run_named::<f64>(&device, (35, 24, 19)), 2 + 4);
    assert_eq!(run_named::<f16>(&device, (35, 24, 19)), 2 + 6 + 3);
    assert_eq!(run_named::<bf16>(&device, (35, 25, 19)), 2);
    assert_eq!(run_named::<f64>(&device, (35, 24, 43)), 2 + 5);
}
