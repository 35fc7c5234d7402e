//! That every instance of every kernel is planned by some product, and right.

use super::{arithmetic, choices, multiply};
use std::collections::BTreeSet;
use warprow::device::Device;
use warprow::reference::{DenseEpilogue, verify_gemm};
use warprow::{Gemm, GemmElement, bf16, f16, generate};

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
