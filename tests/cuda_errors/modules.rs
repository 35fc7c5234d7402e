//! Modules: which one of an archive is compiled, when, and what goes on meanwhile.

use super::{PTX, guilty, innocent, with_driver};
use ptx_archive::{Arch, Module, PtxVersion};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use warprow::device::Device;
use warprow::device::DeviceError;
use warprow::launch;
use warprow::scan::exclusive_scan;

/// A text that the fake driver takes long to compile.
const SLOW: &str = ".version 7.0\n.target sm_80\n.address_size 64\n// slow.to.compile\n";
/// How long.
const LONG: Duration = Duration::from_millis(500);

/// An archive of one module of a kernel for each target, all of that text and PTX version.
pub fn archive(kernel: &str, targets: &[&str], version: PtxVersion, text: &str) -> Vec<u8> {
    let module = |target: &&str| Module {
        name: format!("{kernel}.{target}.ptx"),
        target: target.parse::<Arch>().unwrap(),
        version,
        kernels: vec![kernel.to_owned()],
    };
    ptx_archive::write(targets.iter().map(|target| (module(target), text)), "")
}

/// A device with `innocent` in an archive for these targets.
fn with_innocent(targets: &[&str]) -> Device {
    let device = Device::cuda(0).unwrap();
    let archive = archive("innocent", targets, PtxVersion::new(7, 0), PTX);
    device.load_kernels(archive).unwrap();
    device
}

fn launch_innocent(device: &Device) -> Result<(), DeviceError> {
    let innocent = innocent();
    let mut y = device.zeros::<u32>(1).unwrap();
    // SAFETY: the kernel does nothing.
    unsafe { launch!(device, innocent<<<1, 1, 0>>>(y.mutable())) }
}

/// The modules that the device has compiled.
fn compiled(device: &Device) -> Vec<String> {
    let loads = device.module_loads().into_iter();
    loads.map(|load| load.module).collect()
}

#[test]
fn a_module_is_compiled_when_its_kernel_is_first_launched_and_once() {
    with_driver(
        "modules::a_module_is_compiled_when_its_kernel_is_first_launched_and_once",
        &[],
        || {
            let device = with_innocent(&["sm_80"]);
            let other = archive("guilty", &["sm_80"], PtxVersion::new(7, 0), PTX);
            device.load_kernels(other).unwrap();
            assert_eq!(compiled(&device), [""; 0]);
            for _ in 0..2 {
                launch_innocent(&device).unwrap();
                assert_eq!(compiled(&device), ["innocent.sm_80.ptx"]);
            }
        },
    );
}

#[test]
fn an_sm_89_gets_the_module_for_the_oldest_target() {
    with_driver(
        "modules::an_sm_89_gets_the_module_for_the_oldest_target",
        &[("FAKE_CAPABILITY", "89")],
        || {
            let device = with_innocent(&["sm_80", "sm_90", "sm_90a"]);
            launch_innocent(&device).unwrap();
            assert_eq!(compiled(&device), ["innocent.sm_80.ptx"]);
        },
    );
}

#[test]
fn an_sm_90_gets_the_module_for_itself_alone() {
    with_driver(
        "modules::an_sm_90_gets_the_module_for_itself_alone",
        &[("FAKE_CAPABILITY", "90")],
        || {
            let device = with_innocent(&["sm_80", "sm_90", "sm_90a"]);
            launch_innocent(&device).unwrap();
            assert_eq!(compiled(&device), ["innocent.sm_90a.ptx"]);
        },
    );
}

#[test]
fn an_sm_100_gets_the_newest_module_that_is_not_for_another_one_alone() {
    with_driver(
        "modules::an_sm_100_gets_the_newest_module_that_is_not_for_another_one_alone",
        &[("FAKE_CAPABILITY", "100")],
        || {
            let device = with_innocent(&["sm_80", "sm_90", "sm_90a"]);
            launch_innocent(&device).unwrap();
            assert_eq!(compiled(&device), ["innocent.sm_90.ptx"]);
        },
    );
}

#[test]
fn a_kernel_for_other_gpus_is_an_error_that_names_them() {
    with_driver(
        "modules::a_kernel_for_other_gpus_is_an_error_that_names_them",
        &[("FAKE_CAPABILITY", "100")],
        || {
            let device = with_innocent(&["sm_90a", "sm_120"]);
            let error = launch_innocent(&device).unwrap_err();
            assert_eq!(
                error.to_string(),
                "kernel `innocent` does not run on Fake GPU: it is for sm_120, sm_90a, found is compute capability 10.0"
            );
        },
    );
}

#[test]
fn a_driver_older_than_a_module_s_ptx_is_told_when_the_kernel_is_launched() {
    with_driver(
        "modules::a_driver_older_than_a_module_s_ptx_is_told_when_the_kernel_is_launched",
        &[("FAKE_CUDA_VERSION", "12040")],
        || {
            let device = Device::cuda(0).unwrap();
            let new = archive("innocent", &["sm_80"], PtxVersion::new(8, 7), PTX);
            device.load_kernels(new).unwrap();
            let error = launch_innocent(&device).unwrap_err();
            assert!(matches!(error, DeviceError::DriverTooOld(_)), "{error}");
            assert_eq!(compiled(&device), [""; 0]);
        },
    );
}

#[test]
fn what_was_loaded_first_has_the_kernel() {
    with_driver("modules::what_was_loaded_first_has_the_kernel", &[], || {
        let device = Device::cuda(0).unwrap();
        device.load_ptx(PTX).unwrap();
        let archive = archive("innocent", &["sm_80"], PtxVersion::new(7, 0), PTX);
        device.load_kernels(archive).unwrap();
        launch_innocent(&device).unwrap();
        assert_eq!(compiled(&device), ["loaded PTX"]);
    });
}

#[test]
fn what_is_loaded_replaces_no_kernel_of_the_library() {
    with_driver(
        "modules::what_is_loaded_replaces_no_kernel_of_the_library",
        &[],
        || {
            let device = Device::cuda(0).unwrap();
            // The fake driver has every kernel in every module.
            device.load_ptx(PTX).unwrap();
            let archive = archive("scan_few", &["sm_90"], PtxVersion::new(7, 0), PTX);
            device.load_kernels(archive).unwrap();
            let mut counts = device.zeros::<u32>(5).unwrap();
            exclusive_scan(&device, &mut counts).unwrap();
            let compiled = compiled(&device);
            assert!(
                compiled.contains(&"scan_few.sm_80.ptx".to_owned()),
                "{compiled:?}"
            );
        },
    );
}

#[test]
fn bytes_that_are_no_archive_are_an_error_on_every_device() {
    with_driver(
        "modules::bytes_that_are_no_archive_are_an_error_on_every_device",
        &[],
        || {
            for device in [
                Device::cuda(0).unwrap(),
                Device::emulator(Default::default()),
            ] {
                let error = device.load_kernels(PTX.as_bytes()).unwrap_err();
                assert!(matches!(error, DeviceError::Archive(_)), "{error}");
            }
        },
    );
}

#[test]
fn threads_that_want_the_same_module_compile_it_once() {
    with_driver(
        "modules::threads_that_want_the_same_module_compile_it_once",
        &[],
        || {
            let device = Device::cuda(0).unwrap();
            let archive = archive("innocent", &["sm_80"], PtxVersion::new(7, 0), SLOW);
            device.load_kernels(archive).unwrap();
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| launch_innocent(&device).unwrap());
                }
            });
            assert_eq!(compiled(&device), ["innocent.sm_80.ptx"]);
        },
    );
}

#[test]
fn a_kernel_that_is_ready_is_launched_while_another_one_is_compiled() {
    with_driver(
        "modules::a_kernel_that_is_ready_is_launched_while_another_one_is_compiled",
        &[],
        || {
            let device = with_innocent(&["sm_80"]);
            let slow = archive("guilty", &["sm_80"], PtxVersion::new(7, 0), SLOW);
            device.load_kernels(slow).unwrap();
            launch_innocent(&device).unwrap();
            let begun = Barrier::new(2);
            thread::scope(|scope| {
                let compiling = scope.spawn(|| {
                    let guilty = guilty();
                    let mut y = device.zeros::<u32>(1).unwrap();
                    begun.wait();
                    let start = Instant::now();
                    // SAFETY: the kernel does nothing.
                    unsafe { launch!(device, guilty<<<1, 1, 0>>>(y.mutable())).unwrap() };
                    start.elapsed()
                });
                begun.wait();
                thread::sleep(LONG / 5);
                let start = Instant::now();
                launch_innocent(&device).unwrap();
                let launched = start.elapsed();
                assert!(!compiling.is_finished(), "{launched:?}");
                assert!(compiling.join().unwrap() >= LONG);
            });
        },
    );
}
