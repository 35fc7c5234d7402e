//! Handles of devices: what they say, what keeps a device open, several devices, many threads.

use crate::kernels::{PTX, affine_wanted, devices_with_kernels, run_affine};
use std::sync::Barrier;
use std::thread;
use support::{cuda, devices};
use warprow::device::{Device, EmulatorOptions, MemoryInfo, Selector};

#[test]
fn a_device_describes_itself() {
    for device in devices() {
        let (text, properties) = (device.to_string(), device.properties());
        assert!(text.starts_with(device.name()), "{text}");
        assert_eq!(device.is_emulator(), device.name() == "emulator");
        assert_eq!(device.is_emulator(), properties.driver.is_none());
        assert_eq!(
            text.contains("driver CUDA "),
            !device.is_emulator(),
            "{text}"
        );
        assert!(properties.multiprocessors >= 1);
        assert_eq!(properties.max_threads_per_block, 1024);
        assert!(properties.max_shared_bytes_per_block >= properties.shared_bytes_per_block);
        assert!(properties.shared_bytes_per_block >= 48 << 10);
        match device.memory().unwrap() {
            None => assert!(device.is_emulator()),
            Some(MemoryInfo { free, total, .. }) => assert!(0 < free && free <= total),
        }
    }
}

#[test]
fn a_buffer_keeps_its_device_open() {
    let mut buffers = vec![];
    for selector in [Selector::Emulator, Selector::Auto] {
        let device = Device::select(selector).unwrap();
        let timer = device.start_timer().unwrap();
        buffers.push(device.upload(&[1_u32, 2, 3]).unwrap());
        drop(device);
        drop(timer);
    }
    for buffer in buffers {
        let read = thread::spawn(move || buffer.download().unwrap());
        assert_eq!(read.join().unwrap(), [1, 2, 3]);
    }
}

#[test]
fn a_handle_equals_its_clones_alone() {
    let [one, other] = [(); 2].map(|()| Device::emulator(EmulatorOptions::default()));
    assert_eq!(one, one.clone());
    assert_ne!(one, other);
}

#[test]
fn devices_are_told_apart_by_their_identities() {
    let devices = devices();
    let mut identities: Vec<&str> = devices.iter().map(Device::identity).collect();
    for (device, identity) in devices.iter().zip(&identities) {
        assert_eq!(device.clone().identity(), *identity);
        let kind = if device.is_emulator() {
            "emulator "
        } else {
            "CUDA device "
        };
        assert!(identity.starts_with(kind), "{identity}");
    }
    identities.sort_unstable();
    identities.dedup();
    assert_eq!(identities.len(), devices.len(), "{identities:?}");
}

#[test]
fn many_threads_use_one_device_at_once() {
    const THREADS: u32 = 8;
    for device in devices_with_kernels() {
        let start = Barrier::new(THREADS as usize);
        thread::scope(|scope| {
            for i in 0..THREADS {
                let (device, start) = (&device, &start);
                scope.spawn(move || {
                    start.wait();
                    for len in [1 + i, 100 + i] {
                        let y = run_affine(device, len).unwrap();
                        assert_eq!(y.download().unwrap(), affine_wanted(len));
                    }
                });
            }
        });
    }
}

#[test]
fn several_devices_are_open_at_once_with_memory_of_their_own() {
    let mut devices: Vec<Device> = (0..4)
        .map(|_| Device::emulator(EmulatorOptions::default()))
        .collect();
    if let Some(cuda) = cuda() {
        devices.push(cuda);
        devices.push(Device::select(Selector::Auto).unwrap());
    }
    thread::scope(|scope| {
        for (i, device) in devices.iter().enumerate() {
            device.load_ptx(PTX).unwrap();
            scope.spawn(move || {
                let len = 50 + i as u32;
                let (y, z) = (
                    run_affine(device, len).unwrap(),
                    device.upload(&[i].map(|i| i as u64)).unwrap(),
                );
                assert_eq!(y.download().unwrap(), affine_wanted(len));
                assert_eq!(z.download().unwrap(), [i as u64]);
            });
        }
    });
}
