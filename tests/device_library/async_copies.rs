//! `cuda_std::async_copy`: what arrives, and what the emulator says of those who do not wait.

use crate::{devices, download, numbers, run};
use warprow::device::Device;
use warprow::{Kernel, LaunchConfig};
use warprow_test_kernels::async_copies::{
    copy_over, copy_parts, copy_thirds, read_too_early, reverse_async,
};

#[test]
fn copies_of_every_size_arrive_group_by_group() {
    let blocks = 5;
    for device in devices() {
        for (width, kernel) in [
            (1, reverse_async::<u32, 1>()),
            (2, reverse_async::<u32, 2>()),
            (4, reverse_async::<u32, 4>()),
        ] {
            let values: Vec<u32> = numbers(blocks * 4 * 64 * width, 3)
                .into_iter()
                .map(|n| n as u32)
                .collect();
            let input = device.upload(&values).unwrap();
            let mut out = device.uninitialized::<u32>(values.len()).unwrap();
            run!(
                device,
                kernel,
                blocks as u32,
                64,
                (input.read_only(), out.mutable())
            );
            let expected: Vec<u32> = values
                .chunks(64 * width)
                .flat_map(|group| group.chunks(width).rev().flatten().copied())
                .collect();
            assert_eq!(download(&out), expected, "{width} words on {device}");
        }
    }
}

#[test]
fn copies_without_a_source_are_zeros_and_read_nothing() {
    let blocks = 5;
    for device in devices() {
        for (width, kernel) in [
            (1, copy_thirds::<u32, 1>()),
            (2, copy_thirds::<u32, 2>()),
            (4, copy_thirds::<u32, 4>()),
        ] {
            let threads: usize = blocks * 64;
            let values: Vec<u32> = (1..=threads.div_ceil(3) * width)
                .map(|n| n as u32)
                .collect();
            let input = device.upload(&values).unwrap();
            let mut out = device.uninitialized::<u32>(threads * width).unwrap();
            run!(
                device,
                kernel,
                blocks as u32,
                64,
                (input.read_only(), out.mutable())
            );
            let expected: Vec<u32> = (0..threads * width)
                .map(|i| match i / width % 3 {
                    0 => values[i / width / 3 * width + i % width],
                    _ => 0,
                })
                .collect();
            assert_eq!(download(&out), expected, "{width} words on {device}");
        }
    }
}

#[test]
fn copies_of_a_part_read_no_more_and_fill_up_with_zeros() {
    // The last thread copies 12 bytes, with which the input ends.
    let blocks = 6;
    for device in devices() {
        let elements: usize = blocks * 64 * 4;
        let values: Vec<u32> = (1..elements as u32).collect();
        let input = device.upload(&values).unwrap();
        let mut out = device.uninitialized::<u32>(elements).unwrap();
        run!(
            device,
            copy_parts(),
            blocks as u32,
            64,
            (input.read_only(), out.mutable())
        );
        let expected: Vec<u32> = (0..elements)
            .map(|i| if i % 4 < i / 4 % 5 { values[i] } else { 0 })
            .collect();
        assert_eq!(download(&out), expected, "{device}");
    }
}

/// What the emulator says of a launch of one block.
fn fault(kernel: Kernel<(warprow::Global<u32>, warprow::GlobalMut<u32>)>, threads: u32) -> String {
    let device = Device::emulator(Default::default());
    let input = device.zeros::<u32>(64).unwrap();
    let mut out = device.zeros::<u32>(64).unwrap();
    let config = LaunchConfig::new(1, threads);
    // SAFETY: the buffers are large enough; what else is wrong the emulator reports.
    let launched = unsafe { device.launch(&kernel, config, (input.read_only(), out.mutable())) };
    launched.expect_err("the bug is planted").to_string()
}

#[test]
fn a_read_of_what_is_on_its_way_is_reported() {
    let text = fault(read_too_early(), 32);
    assert!(
        text.contains("copy is in flight") && text.contains("async_copies.rs"),
        "{text}"
    );
}

#[test]
fn a_copy_over_what_others_read_is_reported() {
    let text = fault(copy_over(), 64);
    assert!(
        text.contains("race") && text.contains("async_copies.rs"),
        "{text}"
    );
}
