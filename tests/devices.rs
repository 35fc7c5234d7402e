//! Devices: how they are chosen, their memory, launches, and what each wrong use answers.

mod support;

use cuda_std::prelude::*;
use cuda_std::{bf16, f16};
use std::env;
use std::fmt::Debug;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread as os_thread;
use support::{cuda, devices};
use warprow::device::{Device, DeviceBuffer, EmulatorOptions, MemoryInfo, Selector};
use warprow::error::CudaUnavailable;
use warprow::{Error, launch};

/// `y[i] = 3 i + 1`, a thread an element.
///
/// # Safety
///
/// `y` holds `n` elements.
#[kernel]
pub unsafe fn affine(n: u32, y: GlobalMut<u32>) {
    let i = thread::index_1d();
    if i < u64::from(n) {
        // SAFETY: `i` is below `n`.
        unsafe { y.store(i as usize, 3 * i as u32 + 1) };
    }
}

/// Stores the thread's index through the block's dynamic shared memory, from its far end.
///
/// # Safety
///
/// `y` holds `words` elements, the block has one thread, and as many words of dynamic shared memory.
#[kernel]
pub unsafe fn through_shared(words: u32, y: GlobalMut<u32>) {
    let tile = shared::dynamic_shared_mem::<u32>();
    let last = words as usize - 1;
    // SAFETY: `last` is the last word of both.
    unsafe {
        tile.store(last, 7);
        y.store(last, tile.load(last));
    }
}

/// A kernel that no PTX has.
///
/// # Safety
///
/// None.
#[kernel]
pub unsafe fn in_no_module() {}

/// The kernels above, for a GPU.
const PTX: &str = include_str!("support/devices.ptx");

const BLOCK: u32 = 64;

fn run_affine(device: &Device, len: u32) -> Result<DeviceBuffer<u32>, Error> {
    let mut y = device.uninitialized(len as usize)?;
    let affine = affine();
    // SAFETY: `y` holds `len` elements.
    unsafe { launch!(device, affine<<<len.div_ceil(BLOCK), BLOCK, 0>>>(len, y.mutable()))? };
    Ok(y)
}

fn affine_wanted(len: u32) -> Vec<u32> {
    (0..len).map(|i| 3 * i + 1).collect()
}

/// All devices, with the kernels above.
fn devices_with_kernels() -> Vec<Device> {
    let devices = devices();
    for device in &devices {
        device.load_ptx(PTX).unwrap();
    }
    devices
}

#[test]
fn a_selector_is_what_it_prints() {
    for (text, selector) in [
        ("auto", Selector::Auto),
        ("cuda", Selector::Cuda(None)),
        ("cuda:0", Selector::Cuda(Some(0))),
        ("cuda:17", Selector::Cuda(Some(17))),
        ("emulator", Selector::Emulator),
    ] {
        assert_eq!(text.parse(), Ok(selector));
        assert_eq!(selector.to_string(), text);
    }
}

#[test]
fn what_names_no_device_is_an_error_that_lists_what_does() {
    for text in [
        "",
        "gpu",
        "CUDA",
        " cuda",
        "cuda:",
        "cuda:x",
        "cuda:+1",
        "cuda:-1",
        "cuda:1:2",
        "cuda:4294967296",
    ] {
        let error = text.parse::<Selector>().unwrap_err().to_string();
        for part in [&format!("`{text}`"), "auto", "cuda", "cuda:1", "emulator"] {
            assert!(error.contains(part), "{error}");
        }
    }
}

#[test]
fn an_unset_or_empty_variable_is_auto() {
    assert_eq!(Selector::from_value(None), Ok(Selector::Auto));
    assert_eq!(Selector::from_value(Some("".as_ref())), Ok(Selector::Auto));
    let cuda = Selector::from_value(Some("cuda:1".as_ref()));
    assert_eq!(cuda, Ok(Selector::Cuda(Some(1))));
    assert!(Selector::from_value(Some("cpu".as_ref())).is_err());
}

/// Not a test of its own: what the tests below run in a process with another `WARPROW_DEVICE`.
#[test]
fn opens_the_device_of_the_environment() {
    match Device::open() {
        Ok(device) => println!("opened: {device}"),
        Err(error) => println!("refused: {error}"),
    }
}

/// What [`opens_the_device_of_the_environment`] prints with `WARPROW_DEVICE` set to `value`.
fn opened_with(value: &str) -> String {
    let output = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "opens_the_device_of_the_environment",
            "--nocapture",
        ])
        .env("WARPROW_DEVICE", value)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text
        .lines()
        .find_map(|line| Some(&line[line.find("opened: ").or_else(|| line.find("refused: "))?..]));
    line.unwrap_or_else(|| panic!("no answer in {text}"))
        .to_owned()
}

#[test]
fn the_environment_chooses_the_device() {
    let emulator = opened_with("emulator");
    assert!(emulator.starts_with("opened: emulator ("), "{emulator}");
    let (auto, insisted) = (opened_with("auto"), opened_with("cuda"));
    match cuda() {
        Some(_) => assert_eq!(auto, insisted),
        None => assert_eq!(auto, emulator),
    }
    assert_eq!(opened_with(""), auto);
}

#[test]
fn a_variable_that_names_no_device_is_an_error() {
    let answer = opened_with("gpu");
    assert!(
        answer.starts_with("refused: unknown device `gpu`: wanted `auto`"),
        "{answer}"
    );
}

#[test]
fn a_cuda_device_that_is_not_there_is_an_error_that_says_why() {
    let answer = opened_with("cuda:99");
    assert!(
        answer.starts_with("refused: no device `cuda:99`: "),
        "{answer}"
    );
    let error = Device::select(Selector::Cuda(Some(99))).unwrap_err();
    assert_eq!(format!("refused: {error}"), answer);
    let Error::NoCuda { selector, reason } = error else {
        panic!("{error}");
    };
    assert_eq!(selector, Selector::Cuda(Some(99)));
    match reason {
        CudaUnavailable::NoSuchOrdinal { ordinal, count, .. } => {
            assert_eq!(ordinal, 99);
            assert!(count < 99);
        }
        CudaUnavailable::NoDriver { reason } => assert!(reason.contains("libcuda"), "{reason}"),
        CudaUnavailable::NoDevice { .. } => {}
        CudaUnavailable::NotBuilt if cfg!(not(feature = "cuda")) => {}
        other => panic!("{other}"),
    }
}

#[test]
fn auto_says_why_it_took_the_emulator() {
    let (device, reason) = Device::select_with_reason(Selector::Auto).unwrap();
    assert_eq!(device.is_emulator(), reason.is_some());
    assert!(reason.is_none_or(|reason| !reason.to_string().is_empty()));
    let (device, reason) = Device::select_with_reason(Selector::Emulator).unwrap();
    assert!(device.is_emulator() && reason.is_none());
}

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
            Some(MemoryInfo { free, total }) => assert!(0 < free && free <= total),
        }
    }
}

fn survives_a_round_trip<T: Element + PartialEq + Debug>(
    device: &Device,
    element: impl Fn(usize) -> T,
) {
    for len in [0, 1, 2, 3, 31, 33, 257, 1001] {
        let elements: Vec<T> = (0..len).map(&element).collect();
        let mut buffer = device.upload(&elements).unwrap();
        assert_eq!((buffer.len(), buffer.is_empty()), (len, len == 0));
        assert_eq!(buffer.download().unwrap(), elements, "{buffer:?}");
        let reversed: Vec<T> = elements.iter().rev().copied().collect();
        buffer.copy_from_slice(&reversed).unwrap();
        let mut copy = elements.clone();
        buffer.copy_to_slice(&mut copy).unwrap();
        assert_eq!(copy, reversed, "{buffer:?}");
    }
}

#[test]
fn every_element_type_survives_a_round_trip() {
    for device in devices() {
        survives_a_round_trip(&device, |i| i as u8);
        survives_a_round_trip(&device, |i| (i as i8).wrapping_neg());
        survives_a_round_trip(&device, |i| i as u16);
        survives_a_round_trip(&device, |i| -(i as i16));
        survives_a_round_trip(&device, |i| u32::MAX - i as u32);
        survives_a_round_trip(&device, |i| -(i as i32));
        survives_a_round_trip(&device, |i| u64::MAX - i as u64);
        survives_a_round_trip(&device, |i| -(i as i64));
        survives_a_round_trip(&device, |i| f16::from_f32(i as f32));
        survives_a_round_trip(&device, |i| bf16::from_f32(i as f32));
        survives_a_round_trip(&device, |i| 0.5 - i as f32);
        survives_a_round_trip(&device, |i| 0.5 - i as f64);
    }
}

#[test]
fn zeros_are_zero_and_a_buffer_can_be_zeroed_again() {
    for device in devices() {
        let mut buffer = device.zeros::<u16>(1001).unwrap();
        assert_eq!(buffer.download().unwrap(), [0; 1001]);
        buffer.copy_from_slice(&[9; 1001]).unwrap();
        buffer.fill_zero().unwrap();
        assert_eq!(buffer.download().unwrap(), [0; 1001]);
        assert!(
            device
                .zeros::<f64>(0)
                .unwrap()
                .download()
                .unwrap()
                .is_empty()
        );
    }
}

#[test]
fn a_slice_of_another_length_is_an_error() {
    for device in devices() {
        let mut buffer = device.zeros::<u32>(3).unwrap();
        let errors = [
            buffer.copy_from_slice(&[1, 2]).unwrap_err(),
            buffer.copy_to_slice(&mut [0; 4]).unwrap_err(),
        ];
        for (error, len) in errors.into_iter().zip([2, 4]) {
            assert!(
                matches!(error, Error::Length { wanted: 3, found, .. } if found == len),
                "{error}"
            );
        }
    }
}

#[test]
fn more_memory_than_there_is_is_an_error() {
    for device in devices() {
        let error = device.uninitialized::<u64>(usize::MAX).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        // 2^58 bytes fit in an address space that has 2^57.
        let error = device.uninitialized::<u64>(1 << 55).unwrap_err();
        assert!(
            matches!(error, Error::OutOfMemory { wanted, .. } if wanted == 1 << 58),
            "{error}"
        );
        let works = device.upload(&[1_u8]).unwrap();
        assert_eq!(works.download().unwrap(), [1]);
    }
}

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
            let Error::LaunchLimit {
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
fn a_kernel_that_no_module_has_is_an_error_that_names_it() {
    let Some(device) = cuda() else { return };
    device.load_ptx(PTX).unwrap();
    let in_no_module = in_no_module();
    // SAFETY: nothing is launched.
    let error = unsafe { launch!(device, in_no_module<<<1, 1, 0>>>()) }.unwrap_err();
    assert!(
        matches!(&error, Error::NoKernel { kernel, loaded } if kernel == "in_no_module" && *loaded >= 1),
        "{error}"
    );
}

#[test]
fn ptx_that_does_not_compile_is_an_error_with_the_compiler_s_words() {
    let Some(device) = cuda() else { return };
    let wrong = PTX.replacen("ld.param.u32", "no.such.instruction", 1);
    let error = device.load_ptx(&wrong).unwrap_err();
    assert!(
        matches!(&error, Error::Ptx { log, .. } if !log.is_empty()),
        "{error}"
    );
    let error = device.load_ptx(".version 7.0\0").unwrap_err();
    assert!(matches!(error, Error::NotPtx { position: 12 }), "{error}");
    assert_eq!(
        run_affine(&device, 5).unwrap().download().unwrap(),
        affine_wanted(5)
    );
}

#[test]
fn a_fault_on_the_emulator_names_kernel_and_thread() {
    for device in devices().into_iter().filter(Device::is_emulator) {
        let mut y = device.zeros::<u32>(100).unwrap();
        let affine = affine();
        // SAFETY: that `y` is too short, the emulator sees.
        let error =
            unsafe { launch!(device, affine<<<2, BLOCK, 0>>>(101, y.mutable())) }.unwrap_err();
        assert!(matches!(error, Error::Fault(_)), "{error}");
        for part in [
            "`affine`",
            "block (1, 0, 0)",
            "thread (36, 0, 0)",
            "devices.rs",
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
            assert!(matches!(error, Error::EmulatorMemory(_)), "{error}");
            let place = "offset 280 of an allocation of 308 bytes";
            assert!(error.to_string().contains(place), "{error}");
        }
        // SAFETY: `y` holds 77 elements.
        unsafe { launch!(device, affine<<<2, BLOCK, 0>>>(77, y.mutable())).unwrap() };
        assert_eq!(y.download().unwrap(), affine_wanted(77));
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
        let read = os_thread::spawn(move || buffer.download().unwrap());
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
fn many_threads_use_one_device_at_once() {
    const THREADS: u32 = 8;
    for device in devices_with_kernels() {
        let start = Barrier::new(THREADS as usize);
        os_thread::scope(|scope| {
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
    os_thread::scope(|scope| {
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
