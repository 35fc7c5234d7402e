//! A plan takes the instance that its options name, or refuses it.

use super::arithmetic;
use warprow::device::Device;
use warprow::gemm::GemmError;
use warprow::reference::{DenseEpilogue, verify_gemm};
use warprow::{Gemm, GemmElement, GemmKernel, GemmOptions, GemmTuning, bf16, f16, generate};

/// Multiplies with every instance that a plan takes when it is named; their number.
fn run_named<T: GemmElement>(device: &Device, (m, k, n): (usize, usize, usize)) -> usize {
    let (x, w) = (
        generate::dense::<T>(m, k, 1).unwrap(),
        generate::dense::<T>(k, n, 2).unwrap(),
    );
    let mut taken = 0;
    for name in cuda_std::kernel::instances().map(|instance| instance.name()) {
        for &kernel in GemmKernel::ALL {
            let options = GemmOptions::new()
                .tf32(true)
                .tuning(GemmTuning::new().kernel(kernel).instance(name));
            let gemm = match Gemm::plan(device, w.view(), None, options) {
                Ok(gemm) => gemm,
                Err(GemmError::Kernel { .. }) => continue,
                Err(error) => panic!("{name}: {error}"),
            };
            assert_eq!(gemm.entry_point(m).unwrap(), Some(name));
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
        7 + 3 + 2 + 3 + 5 + 4 + 2
    );
    assert_eq!(run_named::<f64>(&device, (35, 24, 19)), 2 + 2 + 7);
    assert_eq!(run_named::<f16>(&device, (35, 24, 19)), 2 + 2 + 6 + 4);
    assert_eq!(run_named::<bf16>(&device, (35, 25, 19)), 2 + 2 + 2);
    assert_eq!(run_named::<f64>(&device, (35, 24, 43)), 2 + 2 + 8);
}
