//! Launches: what they write and in which order, shared memory, limits, timers.

use crate::kernels::{
    BLOCK, affine, affine_wanted, devices_with_kernels, run_affine, through_shared,
    unshared_devices_with_kernels,
};
use cuda_std::prelude::*;
use warprow::device::{Device, DeviceError};
use warprow::launch;

#[test]
fn a_launch_writes_what_the_kernel_says() {
    for device in devices_with_kernels() {
        for len in [1, 63, 64, 65, 1000] {
            let y = run_affine(&device, len).unwrap();
            assert_eq!(y.download().unwrap(), affine_wanted(len), "{device}");
        }
        device.synchronize().unwrap();
    }
}

#[test]
fn launches_and_copies_happen_in_the_order_in_which_they_were_asked_for() {
    for device in devices_with_kernels() {
        let len = 4096;
        let mut y = run_affine(&device, len).unwrap();
        y.fill_zero().unwrap();
        let affine = affine();
        // SAFETY: `y` holds more than 64 elements.
        unsafe { launch!(device, affine<<<1, BLOCK, 0>>>(BLOCK, y.mutable())).unwrap() };
        let mut wanted = affine_wanted(BLOCK);
        wanted.resize(len as usize, 0);
        assert_eq!(y.download().unwrap(), wanted, "{device}");
    }
}

#[test]
fn a_launch_may_have_all_the_shared_memory_of_a_block() {
    for device in devices_with_kernels() {
        let properties = device.properties();
        let (least, most) = (
            properties.shared_bytes_per_block,
            properties.max_shared_bytes_per_block,
        );
        for bytes in [4, least, most, 4] {
            let words = bytes / 4;
            let mut y = device.zeros::<u32>(words as usize).unwrap();
            let through_shared = through_shared();
            // SAFETY: `y` and the shared memory have `words` words.
            unsafe {
                launch!(device, through_shared<<<1, 1, bytes>>>(words, y.mutable())).unwrap()
            };
            assert_eq!(y.download().unwrap().last(), Some(&7), "{device}");
        }
    }
}

#[test]
fn a_launch_over_the_limits_is_an_error_with_both_numbers() {
    for device in devices_with_kernels() {
        let mut y = device.zeros::<u32>(1).unwrap();
        let most_shared = device.properties().max_shared_bytes_per_block;
        let cases = [
            (
                LaunchConfig::new(1, 1025),
                "threads of a block along x",
                1025,
                1,
                1024,
            ),
            (
                LaunchConfig::new(1, (32, 33)),
                "threads of a block",
                1056,
                1,
                1024,
            ),
            (
                LaunchConfig::new(1, (1, 1, 65)),
                "threads of a block along z",
                65,
                1,
                64,
            ),
            (
                LaunchConfig::new((1, 65536), 1),
                "blocks along y",
                65536,
                1,
                65535,
            ),
            (
                LaunchConfig::new(1 << 31, 1),
                "blocks along x",
                1 << 31,
                1,
                (1 << 31) - 1,
            ),
            (
                LaunchConfig::new(0, 1),
                "blocks along x",
                0,
                1,
                (1 << 31) - 1,
            ),
            (
                LaunchConfig::new(1, (1, 0)),
                "threads of a block along y",
                0,
                1,
                1024,
            ),
            (
                LaunchConfig::new(1, 1).shared_bytes(most_shared + 1),
                "bytes of dynamic shared memory",
                u64::from(most_shared) + 1,
                0,
                u64::from(most_shared),
            ),
        ];
        for (config, what, found, least, most) in cases {
            // SAFETY: `y` holds one element.
            let error = unsafe { device.launch(&affine(), config, (1, y.mutable())) }.unwrap_err();
            let DeviceError::LaunchLimit {
                kernel, exceeded, ..
            } = &error
            else {
                panic!("{config}: {error}");
            };
            assert_eq!(kernel, "affine");
            let numbers = (exceeded.what, exceeded.found, exceeded.least, exceeded.most);
            assert_eq!(numbers, (what, found, least, most), "{device}");
            for part in [
                what,
                &found.to_string(),
                &most.to_string(),
                "`affine`",
                device.name(),
            ] {
                assert!(error.to_string().contains(part), "{error}");
            }
        }
        assert_eq!(y.download().unwrap(), [0]);
    }
}

#[test]
fn a_timer_gives_a_gpu_s_time_and_none_of_the_emulator() {
    for device in devices_with_kernels() {
        let timer = device.start_timer().unwrap();
        let y = run_affine(&device, 1000).unwrap();
        let elapsed = timer.stop().unwrap();
        assert_eq!(elapsed.is_none(), device.is_emulator());
        assert!(elapsed.is_none_or(|elapsed| !elapsed.is_zero() && elapsed.as_secs() < 60));
        assert_eq!(y.download().unwrap(), affine_wanted(1000));
    }
}

#[test]
fn a_log_counts_the_launches_of_each_kernel_while_it_is_alive() {
    for device in unshared_devices_with_kernels() {
        run_affine(&device, 10).unwrap();
        let log = device.log_launches();
        assert!(log.launches().is_empty(), "{device}");
        let mut y = device.zeros::<u32>(64).unwrap();
        let affine = affine();
        // SAFETY: `y` holds 64 elements.
        let mut launch = || unsafe { launch!(device, affine<<<1, BLOCK, 0>>>(64, y.mutable())) };
        launch().unwrap();
        let inner = device.log_launches();
        // Not launched when it is recorded, but each time that the recording is launched.
        let graph = device
            .record(|| {
                launch()?;
                launch()
            })
            .unwrap();
        for _ in 0..3 {
            // SAFETY: the buffer is alive.
            unsafe { graph.launch().unwrap() };
        }
        let name = affine.name();
        assert_eq!(inner.launches(), [(name, 6)].into(), "{device}");
        drop(inner);
        let other = Device::emulator(Default::default());
        run_affine(&other, 10).unwrap();
        assert_eq!(log.launches(), [(name, 7)].into(), "{device}");
        drop(log);
        assert!(device.log_launches().launches().is_empty(), "{device}");
    }
}
