//! `cuda_std::memory` and `cuda_std::shared`: every element type, width and space.

use crate::{devices, download, numbers, run};
use warprow::{Device, Element, Kernel, bf16, f16};
use warprow_test_kernels::memories::{copy, fill_dynamic, halves, reverse_twice};

fn check_copies<T: Element + PartialEq + std::fmt::Debug>(
    device: &Device,
    value: impl Fn(u64) -> T,
) {
    let (blocks, threads) = (7, 50);
    for (width, kernel) in [
        (1, copy::<T, 1>()),
        (2, copy::<T, 2>()),
        (4, copy::<T, 4>()),
    ] {
        let values: Vec<T> = numbers(blocks * threads * width, 7)
            .into_iter()
            .map(&value)
            .collect();
        let input = device.upload(&values).unwrap();
        let mut out = device.uninitialized::<T>(values.len()).unwrap();
        run!(
            device,
            kernel,
            blocks as u32,
            threads as u32,
            (input.read_only(), out.mutable())
        );
        assert_eq!(download(&out), values, "{} by {width} on {device}", T::NAME);
    }
}

#[test]
fn every_element_type_survives_every_space_at_every_width() {
    for device in devices() {
        check_copies::<u8>(&device, |n| n as u8);
        check_copies::<i8>(&device, |n| n as i8);
        check_copies::<u16>(&device, |n| n as u16);
        check_copies::<i16>(&device, |n| n as i16);
        check_copies::<u32>(&device, |n| n as u32);
        check_copies::<i32>(&device, |n| n as i32);
        check_copies::<u64>(&device, |n| n);
        check_copies::<i64>(&device, |n| n as i64);
        check_copies::<f32>(&device, |n| n as f32);
        check_copies::<f64>(&device, |n| n as f64);
        check_copies::<f16>(&device, |n| f16::from_f32((n % 1000) as f32));
        check_copies::<bf16>(&device, |n| bf16::from_f32((n % 200) as f32));
    }
}

fn check_reverse<T: Element + PartialEq + std::fmt::Debug>(
    device: &Device,
    value: impl Fn(u64) -> T,
) {
    let (blocks, threads) = (11, 96);
    let values: Vec<T> = numbers(blocks * threads, 8)
        .into_iter()
        .map(value)
        .collect();
    let mut data = device.upload(&values).unwrap();
    let bytes = (threads * size_of::<T>()) as u32;
    run!(device, reverse_twice::<T>(), blocks as u32, threads as u32, shared bytes, (data.mutable()));
    let expected: Vec<T> = values
        .chunks(threads)
        .flat_map(|block| block.iter().rev().copied())
        .collect();
    assert_eq!(download(&data), expected, "{} on {device}", T::NAME);
}

#[test]
fn static_and_dynamic_shared_memory_lie_side_by_side() {
    for device in devices() {
        check_reverse::<u16>(&device, |n| n as u16);
        check_reverse::<u32>(&device, |n| n as u32);
        check_reverse::<f64>(&device, |n| n as f64);
    }
}

#[test]
fn pointers_can_be_offset_and_cast() {
    let (blocks, threads) = (5, 33);
    let words: Vec<u32> = numbers(2 * blocks * threads, 9)
        .iter()
        .map(|&n| n as u32)
        .collect();
    for device in devices() {
        let input = device.upload(&words).unwrap();
        let mut out = device.uninitialized::<u16>(2 * words.len()).unwrap();
        run!(
            device,
            halves(),
            blocks as u32,
            threads as u32,
            (input.read_only(), out.mutable())
        );
        let expected: Vec<u16> = words
            .iter()
            .flat_map(|&word| [word as u16, (word >> 16) as u16])
            .map(|half| half.wrapping_add(1))
            .collect();
        assert_eq!(download(&out), expected, "on {device}");
    }
}

#[test]
fn dynamic_shared_memory_goes_beyond_48_kib() {
    let blocks = 3_u32;
    for device in devices() {
        for bytes in [4, 48 << 10, 96 << 10] {
            let words: u32 = bytes / 4;
            let mut out = device.uninitialized::<u32>(blocks as usize).unwrap();
            let kernel: Kernel<_> = fill_dynamic();
            run!(device, kernel, blocks, 128, shared bytes, (words, out.mutable()));
            let expected: Vec<u32> = (0..blocks)
                .map(|block| (0..words).fold(0, |sum: u32, i| sum.wrapping_add(i ^ block)))
                .collect();
            assert_eq!(download(&out), expected, "{bytes} B on {device}");
        }
    }
}
