//! Plans of an emulator of a certain GPU: they are that GPU's, and their products are right.

use super::plan::{assert_right, with_long_row};
use support::cuda;
use warprow::device::{Checks, Device, DeviceProfile, EmulatorOptions};
use warprow::matrix_market::read_matrix_market;
use warprow::{CsrMatrix, Spmm, SpmmKernel, SpmmOptions, generate};

/// The dependency graph of the packages of a Debian release.
fn debian() -> CsrMatrix<f32> {
    let path = "../data/debian-bookworm-depends.mtx.gz";
    read_matrix_market(path).unwrap()
}

fn emulator_of(profile: &DeviceProfile) -> Device {
    Device::emulator_of(profile, EmulatorOptions::new().checks(Checks::BoundsOnly))
}

fn emulators() -> [Device; 5] {
    DeviceProfile::all().map(|profile| emulator_of(&profile))
}

fn for_features(features: u32) -> SpmmOptions {
    SpmmOptions::new().features(features)
}

#[test]
fn an_emulator_of_an_h200_plans_the_blocks_that_an_h200_plans() {
    let a = debian();
    let h200 = emulator_of(&DeviceProfile::h200());
    let plan = Spmm::plan(&h200, a.view(), for_features(32)).unwrap();
    assert_eq!(plan.kernel(), SpmmKernel::RowBins);
    assert_eq!(
        plan.launch_config(32).unwrap().unwrap().grid.x,
        4212,
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
    let of_plans = [
        SpmmKernel::Vector,
        SpmmKernel::InStep,
        SpmmKernel::RowBins,
        SpmmKernel::RowGroups,
    ];
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

#[test]
fn a_rate_of_zero_leaves_a_plan_without_a_prediction() {
    let a = generate::uniform::<f32>(301, 300, 9_000, 1).unwrap();
    let x = generate::dense::<f32>(300, 32, 3).unwrap();
    let zeroes: [fn(&mut DeviceProfile); 3] = [
        |profile| profile.rates.memory_bytes_per_second = 0,
        |profile| profile.rates.l2_bytes_per_second = Some(0),
        |profile| profile.rates.clock_hz = 0,
    ];
    for (number, zero) in zeroes.into_iter().enumerate() {
        let mut profile = DeviceProfile::h200();
        zero(&mut profile);
        let plan = Spmm::plan(&emulator_of(&profile), a.view(), for_features(32)).unwrap();
        assert_eq!(plan.prediction(32), None, "rate {number}: {plan}");
        let y = plan.multiply(x.view()).unwrap();
        assert_right(a.view(), x.view(), &y, &plan);
    }
}

#[test]
fn plans_for_one_run_multiply_matrices_of_many_split_rows_with_any_features() {
    let device = emulator_of(&DeviceProfile::h200());
    // Long rows that many tasks share, short ones, and rows without nonzeros.
    let skewed = generate::rmat::<f32>(3_000, 60_000, [0.57, 0.19, 0.19, 0.05], 1).unwrap();
    let long_rows = generate::uniform(70, 900, 50_000, 2).unwrap();
    for a in [&skewed, &long_rows] {
        let once = Spmm::plan(&device, a.view(), for_features(64).runs(1)).unwrap();
        let text = once.to_string();
        assert!(text.contains("without statistics"), "{text}");
        assert!(!text.contains(" 0 split rows"), "{text}");
        for features in [1, 7, 33, 64, 128, 200] {
            let x = generate::dense::<f32>(a.cols(), features, 3).unwrap();
            let y = once.multiply(x.view()).unwrap();
            assert_right(a.view(), x.view(), &y, &once);
        }
    }
}

/// An H200 with a slow memory and small caches, which are to small matrices what an H200's are to large ones.
fn small_h200(l2_bytes: u64) -> Device {
    let mut profile = DeviceProfile::h200();
    profile.hardware.l2_bytes = l2_bytes;
    profile.rates.memory_bytes_per_second /= 100;
    emulator_of(&profile)
}

#[test]
fn each_kernel_that_plans_choose_from_is_chosen_and_its_products_are_right() {
    let communities = |shuffled| generate::Communities {
        sizes: 40..=160,
        inside: 0.85,
        shuffled,
    };
    let shuffled = generate::communities(2_000, 40_000, &communities(true), 1).unwrap();
    let together = generate::communities(2_000, 40_000, &communities(false), 1).unwrap();
    let uniform = generate::uniform(1_000, 1_000, 40_000, 2).unwrap();
    let long_rows = generate::uniform(1_100, 1_100, 550_000, 3).unwrap();
    let one_long_row = with_long_row(&generate::uniform(1_000, 20_000, 40_000, 2).unwrap());
    let cases: [(&CsrMatrix<f32>, u64, u32); 9] = [
        (&shuffled, 64 << 10, 64),
        (&together, 256 << 10, 33),
        (&together, 64 << 10, 128),
        (&uniform, 60 << 20, 4),
        (&uniform, 256 << 10, 32),
        (&uniform, 128 << 10, 32),
        (&uniform, 64 << 10, 32),
        (&long_rows, 60 << 20, 128),
        (&one_long_row, 60 << 20, 4),
    ];
    let mut kernels = vec![];
    for (a, l2_bytes, features) in cases {
        let device = small_h200(l2_bytes);
        let plan = Spmm::plan(&device, a.view(), for_features(features).runs(1_000)).unwrap();
        kernels.push(plan.kernel());
        let x = generate::dense::<f32>(a.cols(), features as usize, 3).unwrap();
        let y = plan.multiply(x.view()).unwrap();
        assert_right(a.view(), x.view(), &y, &plan);
    }
    for kernel in [
        SpmmKernel::Vector,
        SpmmKernel::InStep,
        SpmmKernel::RowBins,
        SpmmKernel::RowGroups,
    ] {
        assert!(kernels.contains(&kernel), "{kernel:?} of {kernels:?}");
    }
}
