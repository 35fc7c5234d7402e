//! Profiles of GPUs: an emulator has the figures of its profile, and a profile those of its GPU. Ranges for profilers.

use crate::kernels::{affine_wanted, devices_with_kernels, run_affine};
use support::cuda;
use warprow::device::{Device, DeviceProfile, EmulatorOptions, Hardware};

fn profiles() -> [DeviceProfile; 5] {
    DeviceProfile::all()
}

#[test]
fn a_profile_has_the_sizes_that_the_emulator_counts_with() {
    for (profile, hardware) in [
        (DeviceProfile::a100(), Hardware::A100),
        (DeviceProfile::h100(), Hardware::H100),
        (DeviceProfile::h200(), Hardware::H200),
    ] {
        assert_eq!(profile.hardware, hardware, "{}", profile.name);
        assert_eq!(profile.rates.l1_bytes, hardware.l1_bytes);
    }
    let names = profiles().map(|profile| profile.name);
    assert_eq!(
        names,
        names
            .clone()
            .map(|name| DeviceProfile::named(&name).unwrap().name)
    );
}

#[test]
fn the_profile_of_an_emulator_of_a_gpu_is_that_of_the_gpu() {
    for profile in profiles() {
        let device = Device::emulator_of(&profile, EmulatorOptions::default());
        assert_eq!(DeviceProfile::of(&device), profile);
    }
    let mut other = DeviceProfile::a100();
    other.name = "NVIDIA A10".to_owned();
    other.hardware.multiprocessors = 72;
    other.hardware.l2_bytes = 6 << 20;
    other.rates.memory_bytes_per_second = 600_000_000_000;
    let found = DeviceProfile::of(&Device::emulator_of(&other, EmulatorOptions::default()));
    assert_eq!(
        (&found.name, found.hardware, found.rates),
        (&other.name, other.hardware, other.rates)
    );
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
