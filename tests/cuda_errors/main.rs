//! What the CUDA back end answers when driver or device do not serve, seen through a fake driver.
//!
//! A process opens its driver once, so each test runs itself again in a process of its own, with the environment that
//! tells the fake driver how to fail.

#![cfg(all(feature = "cuda", target_os = "linux"))]

mod calls;
mod dependent;
mod modules;

use cuda_std::prelude::*;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, id};
use std::sync::OnceLock;
use warprow::device::{CudaUnavailable, Device, DeviceError, DriverTooOld, Selector, Version};
use warprow::launch;

/// A module for the fake driver, which has every kernel in every module.
const PTX: &str = ".version 7.0\n.target sm_80\n.address_size 64\n";

/// Does nothing: what happens in a launch the fake driver decides.
///
/// # Safety
///
/// None.
#[kernel]
pub unsafe fn innocent(_y: GlobalMut<u32>) {}

/// Does nothing either.
///
/// # Safety
///
/// None.
#[kernel]
pub unsafe fn guilty(_y: GlobalMut<u32>) {}

/// Set in the processes that the tests start.
const CHILD: &str = "CUDA_ERRORS_TEST_CHILD";

/// The fake driver, compiled once for the tests of a process, in a directory of its own; an error on a
/// machine without rustc, where this program was carried to.
fn fake_driver() -> Result<&'static Path, &'static str> {
    static FILE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        let rustc = env::var_os("RUSTC").unwrap_or("rustc".into());
        if let Err(error) = Command::new(&rustc).arg("--version").output() {
            return Err(format!(
                "no rustc that compiles a driver to test with: {error}"
            ));
        }
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fake-cuda-{}", id()));
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("libcuda.so.1");
        let status = Command::new(rustc)
            .args(["--edition=2024", "--crate-type=cdylib", "--crate-name=cuda"])
            .args(["-Cpanic=abort", "-Dwarnings", "-o"])
            .arg(&file)
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/cuda_errors/fake_driver.rs"
            ))
            .status()
            .unwrap();
        assert!(status.success(), "the fake driver does not compile");
        Ok(file)
    });
    file.as_deref().map_err(String::as_str)
}

/// Runs `body` in a process of its own, which runs the test `name` alone, with the fake driver and these environment
/// variables for it.
fn with_driver(name: &str, environment: &[(&str, &str)], body: impl FnOnce()) {
    const DONE: &str = "the test's body has run to its end";
    if env::var_os(CHILD).is_some() {
        body();
        println!("{DONE}");
        return;
    }
    let file = match fake_driver() {
        Ok(file) => file,
        Err(reason) => return println!("skipped: {name}: {reason}"),
    };
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env_remove("CUDA_VISIBLE_DEVICES")
        .env(CHILD, "1")
        .env(libcuda::LIBRARY_VARIABLE, AsRef::<OsStr>::as_ref(file))
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stdout.contains(DONE),
        "{name} in its own process: {}\n{stdout}\n{stderr}",
        output.status
    );
}

/// Why device 0 does not serve.
#[track_caller]
fn unavailable() -> CudaUnavailable {
    match Device::cuda(0) {
        Err(reason) => reason,
        Ok(device) => panic!("{device} serves"),
    }
}

#[test]
fn a_device_that_serves_is_opened_and_named() {
    with_driver("a_device_that_serves_is_opened_and_named", &[], || {
        let device = Device::cuda(0).unwrap();
        assert_eq!(
            device.to_string(),
            "Fake GPU (sm_90, driver CUDA 13.0, 80 GiB)"
        );
        let mut y = device.zeros::<u32>(1).unwrap();
        device.load_ptx(PTX).unwrap();
        let innocent = innocent();
        // SAFETY: the kernel does nothing.
        unsafe { launch!(device, innocent<<<1, 1, 0>>>(y.mutable())).unwrap() };
        device.synchronize().unwrap();
    });
}

#[test]
fn a_driver_without_devices_is_told() {
    with_driver(
        "a_driver_without_devices_is_told",
        &[("FAKE_DEVICES", "0")],
        || {
            let reason = unavailable();
            assert_eq!(reason, CudaUnavailable::NoDevice { visible: None });
            assert_eq!(reason.to_string(), "the CUDA driver has no device");
        },
    );
}

#[test]
fn a_driver_that_does_not_start_without_devices_shows_cuda_visible_devices() {
    with_driver(
        "a_driver_that_does_not_start_without_devices_shows_cuda_visible_devices",
        &[("FAKE_INIT_FAILS", "1"), ("CUDA_VISIBLE_DEVICES", "-1")],
        || {
            assert_eq!(
                unavailable().to_string(),
                "the CUDA driver has no device (CUDA_VISIBLE_DEVICES is `-1`)"
            );
            let (device, reason) = Device::select_with_reason(Selector::Auto).unwrap();
            assert!(device.is_emulator());
            assert_eq!(reason, Some(unavailable()));
        },
    );
}

#[test]
fn an_ordinal_out_of_range_is_told_with_the_number_of_devices() {
    with_driver(
        "an_ordinal_out_of_range_is_told_with_the_number_of_devices",
        &[("FAKE_DEVICES", "2"), ("CUDA_VISIBLE_DEVICES", "3,1")],
        || {
            assert!(Device::cuda(1).is_ok());
            let error = Device::select(Selector::Cuda(Some(2))).unwrap_err();
            assert_eq!(
                error.to_string(),
                "no device `cuda:2`: the CUDA driver has 2 devices, wanted is ordinal 2, counted from 0 \
                 (CUDA_VISIBLE_DEVICES is `3,1`)"
            );
        },
    );
}

#[test]
fn a_device_older_than_the_kernels_is_told_with_both_capabilities() {
    with_driver(
        "a_device_older_than_the_kernels_is_told_with_both_capabilities",
        &[("FAKE_CAPABILITY", "75")],
        || {
            assert_eq!(
                unavailable().to_string(),
                "Fake GPU has compute capability 7.5, at least 8.0 is wanted"
            );
        },
    );
}

#[test]
fn a_driver_older_than_the_kernels_ptx_is_told_with_both_versions() {
    with_driver(
        "a_driver_older_than_the_kernels_ptx_is_told_with_both_versions",
        &[("FAKE_CUDA_VERSION", "10020")],
        || {
            let reason = unavailable();
            let CudaUnavailable::DriverTooOld(DriverTooOld { wanted, found, .. }) = reason else {
                panic!("{reason}");
            };
            assert_eq!(found, Version::new(10, 2));
            assert!(wanted >= Version::new(11, 0), "{reason}");
            for version in [found, wanted] {
                let version = format!("CUDA {version}");
                assert!(reason.to_string().contains(&version), "{reason}");
            }
        },
    );
}

#[test]
fn a_driver_older_than_loaded_ptx_is_told_with_both_versions() {
    with_driver(
        "a_driver_older_than_loaded_ptx_is_told_with_both_versions",
        &[("FAKE_CUDA_VERSION", "12040")],
        || {
            let device = Device::cuda(0).unwrap();
            device.load_ptx(".version 8.4\n.target sm_80\n").unwrap();
            let error = device
                .load_ptx(".version 9.0\n.target sm_80\n")
                .unwrap_err();
            assert_eq!(
                error.to_string(),
                "the CUDA driver is too old: it supports CUDA 12.4, and PTX version 9.0 wants a driver for CUDA 13.0 \
                 or newer"
            );
        },
    );
}

#[test]
fn ptx_that_does_not_compile_is_told_with_the_compilers_log() {
    with_driver(
        "ptx_that_does_not_compile_is_told_with_the_compilers_log",
        &[],
        || {
            let device = Device::cuda(0).unwrap();
            let error = device
                .load_ptx(".version 7.0\nno.such.instruction;\n")
                .unwrap_err();
            let DeviceError::Ptx {
                error: answer, log, ..
            } = &error
            else {
                panic!("{error}");
            };
            assert_eq!(answer.code, 218);
            assert!(
                log.starts_with("ptxas application ptx input, line 7"),
                "{log}"
            );
            let text = error.to_string();
            assert!(
                text.starts_with("Fake GPU does not take the PTX: "),
                "{text}"
            );
            assert!(text.contains("CUDA_ERROR_INVALID_PTX (218)"), "{text}");
            assert!(text.ends_with(log.as_str()), "{text}");
        },
    );
}

#[test]
fn a_lost_context_is_told_with_the_kernel_launched_last() {
    with_driver(
        "a_lost_context_is_told_with_the_kernel_launched_last",
        &[("FAKE_FATAL_LAUNCH", "2")],
        || {
            let device = Device::cuda(0).unwrap();
            let mut y = device.zeros::<u32>(1).unwrap();
            device.load_ptx(PTX).unwrap();
            let (innocent, guilty) = (innocent(), guilty());
            // SAFETY: the kernels do nothing.
            unsafe {
                launch!(device, innocent<<<1, 1, 0>>>(y.mutable())).unwrap();
                launch!(device, guilty<<<1, 1, 0>>>(y.mutable())).unwrap();
            }
            for error in [
                device.synchronize().unwrap_err(),
                y.download().unwrap_err(),
                device.zeros::<u32>(1).unwrap_err(),
            ] {
                assert!(
                    matches!(&error, DeviceError::ContextLost { kernel: Some(kernel), .. } if kernel == "guilty"),
                    "{error}"
                );
                let text = error.to_string();
                for part in [
                    "Fake GPU has lost its context",
                    "CUDA_ERROR_ILLEGAL_ADDRESS (700)",
                    "`guilty`",
                ] {
                    assert!(text.contains(part), "{text}");
                }
            }
        },
    );
}

#[test]
fn a_context_lost_in_a_recording_is_told_with_its_last_kernel() {
    with_driver(
        "a_context_lost_in_a_recording_is_told_with_its_last_kernel",
        &[("FAKE_FATAL_LAUNCH", "5")],
        || {
            let device = Device::cuda(0).unwrap();
            let mut y = device.zeros::<u32>(1).unwrap();
            device.load_ptx(PTX).unwrap();
            let (innocent, guilty) = (innocent(), guilty());
            // SAFETY: the kernels do nothing.
            let graph = device.record(|| unsafe {
                launch!(device, innocent<<<1, 1, 0>>>(y.mutable()))?;
                launch!(device, innocent<<<1, 1, 0>>>(y.mutable()))?;
                launch!(device, guilty<<<1, 1, 0>>>(y.mutable()))
            });
            let graph = graph.unwrap();
            device.synchronize().unwrap();
            // SAFETY: the buffer is alive.
            unsafe { graph.launch().unwrap() };
            device.synchronize().unwrap();
            // SAFETY: as above.
            unsafe { graph.launch().unwrap() };
            let error = device.synchronize().unwrap_err();
            assert!(
                matches!(&error, DeviceError::ContextLost { kernel: Some(kernel), .. } if kernel == "guilty"),
                "{error}"
            );
        },
    );
}

#[test]
fn a_code_that_cust_does_not_know_is_told_with_its_number_and_the_drivers_text() {
    with_driver(
        "a_code_that_cust_does_not_know_is_told_with_its_number_and_the_drivers_text",
        &[
            // The first is received by a function of cust, the second by one of warprow.
            ("FAKE_SYNCHRONIZE_ANSWER", "123456"),
            ("FAKE_GRAPH_LAUNCH_ANSWER", "810"),
        ],
        || {
            let device = Device::cuda(0).unwrap();
            let graph = device.record(|| Ok::<_, DeviceError>(())).unwrap();
            // SAFETY: it has no launches.
            let launched = unsafe { graph.launch() };
            for (error, code, name) in [
                (device.synchronize(), 123_456, "CUDA_ERROR_OF_THE_FUTURE"),
                (launched, 810, "CUDA_ERROR_MPS_CLIENT_TERMINATED"),
            ] {
                let error = error.unwrap_err();
                let DeviceError::Driver { error: answer, .. } = &error else {
                    panic!("{error}");
                };
                assert_eq!((answer.code, answer.name.as_str()), (code, name));
                let text = format!("{name} ({code}), described by the fake driver");
                assert!(error.to_string().ends_with(&text), "{error}");
            }
        },
    );
}

#[test]
fn handles_of_one_gpu_are_told_apart_in_errors() {
    with_driver("handles_of_one_gpu_are_told_apart_in_errors", &[], || {
        let [one, other] = [(); 2].map(|()| Device::cuda(0).unwrap());
        assert_eq!(one.identity(), "CUDA device 0 (Fake GPU)");
        assert_eq!(other.identity(), "CUDA device 0 (Fake GPU), handle 2");
        let mut counts = other.zeros::<u32>(1).unwrap();
        let error = warprow::scan::exclusive_scan(&one, &mut counts).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the counts is on another device: it is on CUDA device 0 (Fake GPU), handle 2, the operation on CUDA \
             device 0 (Fake GPU)"
        );
    });
}
