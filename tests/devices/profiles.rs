//! Profiles of GPUs: an emulator has the figures of its profile, and a profile those of its GPU. Ranges for profilers.

use crate::kernels::{affine_wanted, devices_with_kernels, run_affine};
use support::cuda;
use warprow::device::{Device, DeviceProfile, EmulatorOptions, Hardware};

fn profiles() -> [DeviceProfile; 3] {
    [
        DeviceProfile::a100(),
        DeviceProfile::h100(),
        DeviceProfile::h200(),
    ]
}

#[test]
fn an_emulator_of_a_gpu_has_the_figures_of_its_profile() {
    for profile in profiles() {
        let options = EmulatorOptions::new().memory(1000);
        let device = Device::emulator_of(&profile, options);
        assert!(device.is_emulator());
        assert_eq!(device.name(), format!("emulator of {}", profile.name));
        let properties = device.properties();
        assert_eq!(properties.compute_capability, profile.compute_capability);
        assert_eq!(properties.multiprocessors, profile.hardware.multiprocessors);
        assert_eq!(properties.l2_bytes, Some(profile.hardware.l2_bytes));
        assert_eq!(
            properties.max_shared_bytes_per_block,
            profile.max_shared_bytes_per_block()
        );
        assert_eq!(properties.memory_bytes, Some(1000));
        assert_eq!(properties.driver, None);
        let text = device.to_string();
        let multiprocessors = profile.hardware.multiprocessors;
        assert_eq!(
            text,
            format!("{} ({multiprocessors} multiprocessors)", device.name())
        );
    }
}

#[test]
fn a_profile_has_the_figures_that_its_gpu_reports() {
    let Some(gpu) = cuda() else {
        return;
    };
    let Some(profile) = profiles()
        .into_iter()
        .find(|profile| profile.name == gpu.name())
    else {
        println!("skipped: there is no profile of {}", gpu.name());
        return;
    };
    let found = gpu.properties();
    let Hardware {
        multiprocessors,
        l2_bytes,
        ..
    } = profile.hardware;
    assert_eq!(found.compute_capability, profile.compute_capability);
    assert_eq!(found.multiprocessors, multiprocessors);
    assert_eq!(found.l2_bytes, Some(l2_bytes));
    assert_eq!(
        found.max_shared_bytes_per_block,
        profile.max_shared_bytes_per_block()
    );
}

#[test]
fn a_range_for_a_profiler_gives_what_its_work_gives() {
    for device in devices_with_kernels() {
        let y = device
            .profiled(|| run_affine(&device, 70))
            .unwrap()
            .unwrap();
        assert_eq!(y.download().unwrap(), affine_wanted(70));
    }
}
