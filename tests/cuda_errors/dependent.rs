//! Dependent launches: which kernels have them, on which GPUs and with which drivers.

use super::calls::{calls, with_log};
use super::innocent;
use super::modules::archive;
use ptx_archive::PtxVersion;
use warprow::device::{Device, DeviceError};
use warprow::launch;

/// A module with a kernel, in the form that `cuda_builder` gives it.
const KERNEL: &str = ".version 7.0\n.target sm_80\n.address_size 64\n\n\
                      .visible .entry innocent(\n\t.param .b64 innocent_param_0\n)\n{\n\tret;\n}\n";

/// The driver's calls, without their streams, that launch two kernels: one by one, and in a graph.
fn launches(device: &Device) -> Vec<String> {
    let innocent = innocent();
    let mut y = device.zeros::<u32>(1).unwrap();
    let mut twice = || -> Result<(), DeviceError> {
        for blocks in 1..=2 {
            // SAFETY: the kernel does nothing.
            unsafe { launch!(device, innocent<<<blocks, 32, 0>>>(y.mutable())) }?;
        }
        Ok(())
    };
    calls();
    twice().unwrap();
    let graph = device.record(twice).unwrap();
    // SAFETY: the buffer is alive.
    unsafe { graph.launch().unwrap() };
    let calls = calls().into_iter();
    calls
        .filter(|call| call.contains("launch") || call.contains("edge"))
        .map(|call| call.split(" in 0x").next().unwrap().to_owned())
        .collect()
}

fn with_archive(text: &str) -> Device {
    let device = Device::cuda(0).unwrap();
    let archive = archive("innocent", &["sm_80"], PtxVersion::new(7, 0), text);
    device.load_kernels(archive).unwrap();
    device
}

/// Two launches, and that of a graph, none of which is dependent.
const NORMAL: [&str; 3] = ["launch"; 3];

#[test]
fn kernels_of_an_archive_have_them_from_sm_90_on() {
    with_log(
        "dependent::kernels_of_an_archive_have_them_from_sm_90_on",
        &[("FAKE_CAPABILITY", "90"), ("FAKE_CUDA_VERSION", "12030")],
        || {
            let wanted = [
                "dependent launch of [1, 1, 1, 32, 1, 1, 0]",
                "dependent launch of [2, 1, 1, 32, 1, 1, 0]",
                "dependent edge from 1 to 2",
                "launch",
            ];
            assert_eq!(launches(&with_archive(KERNEL)), wanted);
        },
    );
}

#[test]
fn older_gpus_have_normal_launches() {
    with_log(
        "dependent::older_gpus_have_normal_launches",
        &[("FAKE_CAPABILITY", "89")],
        || assert_eq!(launches(&with_archive(KERNEL)), NORMAL),
    );
}

#[test]
fn older_drivers_have_normal_launches() {
    with_log(
        "dependent::older_drivers_have_normal_launches",
        &[("FAKE_CAPABILITY", "90"), ("FAKE_CUDA_VERSION", "12020")],
        || assert_eq!(launches(&with_archive(KERNEL)), NORMAL),
    );
}

#[test]
fn kernels_that_do_not_certainly_wait_have_normal_launches() {
    with_log(
        "dependent::kernels_that_do_not_certainly_wait_have_normal_launches",
        &[("FAKE_CAPABILITY", "90")],
        || {
            let other = KERNEL.replace(".entry innocent", ".entry\tinnocent");
            assert_eq!(launches(&with_archive(&other)), NORMAL);
        },
    );
}

#[test]
fn text_that_is_loaded_as_it_is_has_normal_launches() {
    with_log(
        "dependent::text_that_is_loaded_as_it_is_has_normal_launches",
        &[("FAKE_CAPABILITY", "90")],
        || {
            let device = Device::cuda(0).unwrap();
            device.load_ptx(KERNEL).unwrap();
            assert_eq!(launches(&device), NORMAL);
        },
    );
}
