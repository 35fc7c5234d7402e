//! Plans of an emulator of a certain GPU: they are that GPU's, and their products are right.

use super::plan::assert_right;
use support::cuda;
use warprow::device::{Checks, Device, DeviceProfile, EmulatorOptions};
use warprow::matrix_market::read_matrix_market;
use warprow::{CsrMatrix, Spmm, SpmmKernel, SpmmOptions, generate};

/// The dependency graph of the packages of a Debian release.
fn debian() -> CsrMatrix<f32> {
    let path = "../data/debian-bookworm-depends.mtx.gz";
    read_matrix_market(path).unwrap()
}

fn emulators() -> [Device; 3] {
    let options = EmulatorOptions::new().checks(Checks::BoundsOnly);
    [
        DeviceProfile::a100(),
        DeviceProfile::h100(),
        DeviceProfile::h200(),
    ]
    .map(|profile| Device::emulator_of(&profile, options))
}

fn for_features(features: u32) -> SpmmOptions {
    SpmmOptions::new().features(features)
}

#[test]
fn an_emulator_of_an_h200_plans_the_blocks_that_an_h200_plans() {
    let a = debian();
    let [.., h200] = emulators();
    let plan = Spmm::plan(&h200, a.view(), for_features(32)).unwrap();
    assert_eq!(plan.kernel(), SpmmKernel::Vector);
    assert_eq!(
        plan.launch_config(32).unwrap().unwrap().grid.x,
        794,
        "{plan}"
    );
    let x = generate::dense::<f32>(a.cols(), 32, 1).unwrap();
    let y = plan.multiply(x.view()).unwrap();
    assert_right(a.view(), x.view(), &y, &plan);
}

#[test]
fn a_gpu_and_its_emulator_make_the_same_plans() {
    let Some(gpu) = cuda() else {
        return;
    };
    let emulator = |device: &Device| device.name() == format!("emulator of {}", gpu.name());
    let Some(emulator) = emulators().into_iter().find(emulator) else {
        println!("skipped: there is no profile of {}", gpu.name());
        return;
    };
    let a = debian();
    for kernel in SpmmKernel::ALL.iter().copied().map(Some).chain([None]) {
        for features in [1, 32, 33, 128] {
            let options = for_features(features).map_tuning(|tuning| tuning.kernel(kernel));
            let [of_gpu, of_emulator] = [&gpu, &emulator].map(|device| {
                let plan = Spmm::plan(device, a.view(), options).unwrap();
                let launch = plan.launch_config(features as usize).unwrap();
                (plan.entry_points(features), launch)
            });
            assert_eq!(of_gpu, of_emulator, "{kernel:?}, {features} features");
        }
    }
}

#[test]
fn plans_of_emulated_gpus_multiply() {
    // A matrix with split rows, and one of long rows.
    let matrices = [
        generate::uniform::<f32>(2_000, 300, 9_000, 1).unwrap(),
        generate::uniform::<f32>(301, 300, 80_000, 2).unwrap(),
    ];
    let of_plans = [SpmmKernel::Vector, SpmmKernel::InStep, SpmmKernel::Narrow];
    for device in emulators() {
        for a in &matrices {
            for features in [5, 32] {
                let plan = Spmm::plan(&device, a.view(), for_features(features)).unwrap();
                assert!(of_plans.contains(&plan.kernel()), "{plan}");
                let (predicted, _) = plan.prediction(features).unwrap();
                assert!(!predicted.is_zero(), "{plan}");
                let x = generate::dense::<f32>(300, features as usize, 3).unwrap();
                let y = plan.multiply(x.view()).unwrap();
                assert_right(a.view(), x.view(), &y, &plan);
            }
        }
    }
}
