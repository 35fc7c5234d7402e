//! What the emulator alone has: faults with their place, memory never written, progress.

use crate::kernels::{BLOCK, affine, affine_wanted, run_affine};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use support::devices;
use warprow::device::{Device, DeviceError, EmulatorOptions};
use warprow::launch;

#[test]
fn a_fault_on_the_emulator_names_kernel_and_thread() {
    for device in devices().into_iter().filter(Device::is_emulator) {
        let mut y = device.zeros::<u32>(100).unwrap();
        let affine = affine();
        // SAFETY: that `y` is too short, the emulator sees.
        let error =
            unsafe { launch!(device, affine<<<2, BLOCK, 0>>>(101, y.mutable())) }.unwrap_err();
        assert!(matches!(error, DeviceError::Fault(_)), "{error}");
        for part in [
            "`affine`",
            "block (1, 0, 0)",
            "thread (36, 0, 0)",
            "kernels.rs",
        ] {
            assert!(error.to_string().contains(part), "{error}");
        }
        assert_eq!(
            run_affine(&device, 3).unwrap().download().unwrap(),
            affine_wanted(3)
        );
    }
}

#[test]
fn an_element_that_a_kernel_forgot_cannot_be_downloaded_from_the_emulator() {
    for device in devices().into_iter().filter(Device::is_emulator) {
        let mut y = device.uninitialized::<u32>(77).unwrap();
        let affine = affine();
        // SAFETY: `y` holds more than 70 elements.
        unsafe { launch!(device, affine<<<2, BLOCK, 0>>>(70, y.mutable())).unwrap() };
        for error in [
            y.download().unwrap_err(),
            y.copy_to_slice(&mut [0; 77]).unwrap_err(),
        ] {
            assert!(matches!(error, DeviceError::EmulatorMemory(_)), "{error}");
            let place = "offset 280 of an allocation of 308 bytes";
            assert!(error.to_string().contains(place), "{error}");
        }
        // SAFETY: `y` holds 77 elements.
        unsafe { launch!(device, affine<<<2, BLOCK, 0>>>(77, y.mutable())).unwrap() };
        assert_eq!(y.download().unwrap(), affine_wanted(77));
    }
}

#[test]
fn progress_of_a_launch_on_the_emulator_ends_with_all_its_blocks() {
    let device = Device::emulator(EmulatorOptions::default());
    let (done, total) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let seen = (Arc::clone(&done), Arc::clone(&total));
    device.set_progress(Some(Arc::new(move |blocks, of| {
        seen.0.fetch_max(blocks, Ordering::Relaxed);
        seen.1.store(of, Ordering::Relaxed);
    })));
    run_affine(&device, 100 * BLOCK).unwrap();
    assert_eq!(done.load(Ordering::Relaxed), 100);
    assert_eq!(total.load(Ordering::Relaxed), 100);
}

#[test]
fn what_a_progress_function_asks_of_its_device_is_an_error_and_no_deadlock() {
    let device = Device::emulator(EmulatorOptions::default());
    let mut y = device.zeros::<u32>(3).unwrap();
    let affine = affine();
    let graph = device.record(|| {
        // SAFETY: `y` holds three elements.
        unsafe { launch!(device, affine<<<1, BLOCK, 0>>>(3, y.mutable())) }
    });
    let graph = Arc::new(graph.unwrap());
    let kept = device.zeros::<u32>(5).unwrap();
    let mut written = device.zeros::<u32>(5).unwrap();
    let dropped = Mutex::new(Some(device.zeros::<u32>(5).unwrap()));
    let (tell, told) = mpsc::channel();
    let (of_function, graph_of_function) = (device.clone(), Arc::clone(&graph));
    let asks = Mutex::new(move || {
        drop(dropped.lock().unwrap().take());
        for answer in [
            of_function.zeros::<u32>(1).map(drop),
            run_affine(&of_function, 3).map(drop),
            // SAFETY: `y` is alive.
            unsafe { graph_of_function.launch() },
            kept.download().map(drop),
            written.copy_from_slice(&[1; 5]),
            written.fill_zero(),
        ] {
            tell.send(answer.unwrap_err()).unwrap();
        }
        // The launch is the last to have this function, and the buffers that it owns.
        of_function.set_progress(None);
    });
    device.set_progress(Some(Arc::new(move |_, _| asks.lock().unwrap()())));
    // On another thread, so that a deadlock fails the test and does not stop it.
    let launch = thread::spawn(move || {
        // SAFETY: `y` is alive.
        unsafe { graph.launch().unwrap() };
        device.zeros::<u32>(1).unwrap();
        y.download().unwrap()
    });
    let mut answers = 0;
    while let Ok(error) = told.recv_timeout(Duration::from_secs(60)) {
        assert!(
            matches!(error, DeviceError::DuringProgress { .. }),
            "{error}"
        );
        answers += 1;
    }
    assert_eq!(answers, 6);
    assert_eq!(launch.join().unwrap(), affine_wanted(3));
}

#[test]
fn a_progress_function_asks_for_the_free_memory_while_another_thread_waits_to_allocate() {
    let device = Device::emulator(EmulatorOptions::new().memory(1 << 30));
    let (tell, told) = mpsc::channel();
    let (of_function, of_thread) = (device.clone(), device.clone());
    let first = Mutex::new(Some(thread::Builder::new()));
    device.set_progress(Some(Arc::new(move |_, _| {
        if let Some(builder) = first.lock().unwrap().take() {
            let device = of_thread.clone();
            builder.spawn(move || device.zeros::<u32>(1 << 10)).unwrap();
            // The other thread waits for the launch by now.
            thread::sleep(Duration::from_millis(200));
            let free = of_function.memory().unwrap().unwrap().free;
            tell.send((free, of_function.allocated_bytes())).unwrap();
        }
    })));
    // On another thread, so that a deadlock fails the test and does not stop it.
    let launch = thread::spawn(move || run_affine(&device, 3).map(drop));
    let (free, allocated) = told.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(free + allocated, 1 << 30);
    launch.join().unwrap().unwrap();
}
