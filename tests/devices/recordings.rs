//! Recorded launches: what they write and when, what cannot be recorded, and other threads.

use crate::kernels::{BLOCK, affine, affine_wanted, devices_with_kernels, through_shared};
use std::sync::Arc;
use warprow::device::{Device, DeviceError};
use warprow::{DeviceBuffer, launch};

/// Launches `affine` on the first `len` elements.
fn fill(device: &Device, y: &mut DeviceBuffer<u32>, len: u32) -> Result<(), DeviceError> {
    assert!(len as usize <= y.len());
    let affine = affine();
    // SAFETY: `y` holds `len` elements.
    unsafe { launch!(device, affine<<<len.div_ceil(BLOCK), BLOCK, 0>>>(len, y.mutable())) }
}

#[test]
fn recorded_launches_run_when_they_are_launched_and_as_often() {
    for device in devices_with_kernels() {
        let mut y = device.zeros::<u32>(1000).unwrap();
        let mut z = device.zeros::<u32>(70).unwrap();
        let through_shared = through_shared();
        let graph = device.record(|| {
            fill(&device, &mut y, 1000)?;
            fill(&device, &mut z, 70)?;
            // The one before it has written 208 there.
            // SAFETY: `z` holds more than 64 elements, the shared memory 64 words.
            unsafe { launch!(device, through_shared<<<1, 1, 256>>>(64, z.mutable())) }
        });
        let graph = graph.unwrap();
        assert_eq!(graph.launches(), 3);
        assert_eq!(y.download().unwrap(), vec![0; 1000], "{device}");
        let mut wanted = affine_wanted(70);
        wanted[63] = 7;
        for _ in 0..3 {
            y.fill_zero().unwrap();
            z.fill_zero().unwrap();
            // SAFETY: the buffers are alive.
            unsafe { graph.launch().unwrap() };
            assert_eq!(y.download().unwrap(), affine_wanted(1000), "{device}");
            assert_eq!(z.download().unwrap(), wanted, "{device}");
        }
        // The recording is over.
        y.fill_zero().unwrap();
        fill(&device, &mut y, 1000).unwrap();
        assert_eq!(y.download().unwrap(), affine_wanted(1000), "{device}");
    }
}

#[test]
fn a_recording_of_nothing_does_nothing() {
    for device in devices_with_kernels() {
        let graph = device.record(|| Ok::<_, DeviceError>(())).unwrap();
        assert_eq!(graph.launches(), 0);
        // SAFETY: there are no launches.
        unsafe { graph.launch().unwrap() };
        device.synchronize().unwrap();
    }
}

#[test]
fn what_is_no_launch_cannot_be_recorded_and_ends_the_recording() {
    for device in devices_with_kernels() {
        let mut y = device.zeros::<u32>(5).unwrap();
        let empty = device.record(|| Ok::<_, DeviceError>(())).unwrap();
        let mut refused =
            |name, tell: &mut dyn FnMut(&mut DeviceBuffer<u32>) -> Result<(), DeviceError>| {
                let error = device.record(|| tell(&mut y)).unwrap_err();
                assert!(
                    matches!(error, DeviceError::NotRecordable { .. }),
                    "{name}: {error}"
                );
                fill(&device, &mut y, 5).unwrap();
                assert_eq!(
                    y.download().unwrap(),
                    affine_wanted(5),
                    "{name} on {device}"
                );
            };
        refused("a download", &mut |y| y.download().map(drop));
        refused("an upload", &mut |y| y.copy_from_slice(&[0; 5]));
        refused("zeros", &mut |y| y.fill_zero());
        refused("bytes", &mut |y| y.fill_bytes(1));
        refused("an allocation", &mut |_| device.zeros::<u32>(1).map(drop));
        refused("memory", &mut |_| device.uninitialized::<u32>(1).map(drop));
        refused("waiting", &mut |_| device.synchronize());
        refused("a timer", &mut |_| device.start_timer().map(drop));
        refused("another library", &mut |_| device.cuda_stream().map(drop));
        // SAFETY: it has no launches.
        refused("a recording", &mut |_| unsafe { empty.launch() });
    }
}

#[test]
fn a_launch_over_the_limits_is_an_error_of_the_recording_or_of_its_launch() {
    for device in devices_with_kernels() {
        let mut y = device.zeros::<u32>(1).unwrap();
        let affine = affine();
        let graph = device.record(|| {
            // SAFETY: `y` holds one element.
            unsafe { launch!(device, affine<<<1, 1025, 0>>>(1, y.mutable())) }
        });
        // SAFETY: the buffer is alive.
        let error = graph
            .and_then(|graph| unsafe { graph.launch() })
            .unwrap_err();
        assert!(matches!(error, DeviceError::LaunchLimit { .. }), "{error}");
    }
}

#[test]
fn what_other_threads_launch_meanwhile_is_launched() {
    for device in devices_with_kernels() {
        let mut mine = device.zeros::<u32>(100).unwrap();
        let graph = device.record(|| {
            let other = device.clone();
            let thread = std::thread::spawn(move || {
                let mut theirs = other.zeros::<u32>(100)?;
                fill(&other, &mut theirs, 100)?;
                theirs.download()
            });
            assert_eq!(thread.join().unwrap()?, affine_wanted(100));
            fill(&device, &mut mine, 100)
        });
        assert_eq!(graph.unwrap().launches(), 1);
        assert_eq!(mine.download().unwrap(), vec![0; 100], "{device}");
    }
}

#[test]
fn a_panic_ends_the_recording() {
    let device = Device::emulator(Default::default());
    let recording =
        std::panic::AssertUnwindSafe(|| device.record::<DeviceError>(|| panic!("in a recording")));
    assert!(std::panic::catch_unwind(recording).is_err());
    device.zeros::<u32>(1).unwrap();
}

#[test]
fn a_recording_keeps_the_memory_of_buffers_that_are_dropped() {
    for device in devices_with_kernels() {
        let mut y = device.zeros::<u32>(70).unwrap();
        let mut dropped = device.zeros::<u32>(1000).unwrap();
        let graph = device.record(|| {
            fill(&device, &mut dropped, 1000)?;
            fill(&device, &mut y, 70)
        });
        let graph = graph.unwrap();
        drop(dropped);
        // It would get the memory if that were free.
        let other = device.zeros::<u32>(1000).unwrap();
        for _ in 0..2 {
            y.fill_zero().unwrap();
            // SAFETY: the pointers were taken in the recording.
            unsafe { graph.launch().unwrap() };
            assert_eq!(y.download().unwrap(), affine_wanted(70), "{device}");
        }
        assert_eq!(other.download().unwrap(), vec![0; 1000], "{device}");
    }
}

#[test]
fn a_recording_keeps_lent_memory_also_if_an_empty_buffer_has_its_address() {
    for device in devices_with_kernels() {
        let theirs = Arc::new(device.zeros::<u32>(70).unwrap());
        let (address, alive) = (theirs.as_slice().address(), Arc::downgrade(&theirs));
        // SAFETY: no elements.
        let empty = unsafe { device.buffer_from_raw::<u32>(address, 0, ()).unwrap() };
        // SAFETY: `theirs` has 70 elements; the buffer keeps it, and nobody else uses it.
        let mut y = unsafe { device.buffer_from_raw(address, 70, theirs).unwrap() };
        let graph = device.record(|| {
            empty.read_only();
            fill(&device, &mut y, 70)
        });
        let graph = graph.unwrap();
        drop(y);
        let kept = alive.upgrade().expect("the recording keeps it");
        // SAFETY: the pointers were taken in the recording.
        unsafe { graph.launch().unwrap() };
        assert_eq!(kept.download().unwrap(), affine_wanted(70), "{device}");
        drop((graph, kept));
        assert!(alive.upgrade().is_none(), "{device}");
    }
}
