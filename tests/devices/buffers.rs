//! Buffers: copies there and back, zeros, wrong lengths, too much memory.

use cuda_std::prelude::*;
use cuda_std::{bf16, f16};
use std::fmt::Debug;
use support::devices;
use warprow::device::{Device, DeviceError};

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
fn bytes_can_be_filled_and_any_part_copied() {
    for device in devices() {
        let len = 100_003;
        let mut buffer = device.uninitialized::<u32>(len).unwrap();
        buffer.fill_bytes(0x5a).unwrap();
        assert!(
            buffer.download().unwrap().iter().all(|&e| e == 0x5a5a_5a5a),
            "{device}"
        );
        let numbers: Vec<u32> = (0..len as u32).collect();
        buffer.copy_from_slice(&numbers).unwrap();
        for part in [0..0, 0..1, 17..4000, len - 1..len, len..len, 0..len] {
            let mut copied = vec![0; part.len()];
            buffer.copy_part_to_slice(part.start, &mut copied).unwrap();
            assert_eq!(copied, numbers[part], "{device}");
        }
        buffer.fill_bytes(0xff).unwrap();
        device.zeros::<f32>(0).unwrap().fill_bytes(1).unwrap();
    }
}

#[test]
fn a_part_that_is_not_in_the_buffer_is_an_error() {
    for device in devices() {
        let buffer = device.zeros::<u32>(5).unwrap();
        for start in [3, 6, usize::MAX] {
            let error = buffer.copy_part_to_slice(start, &mut [0; 3]).unwrap_err();
            assert!(matches!(error, DeviceError::SliceRange { .. }), "{error}");
        }
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
                matches!(error, DeviceError::SliceLength { wanted: 3, found, .. } if found == len),
                "{error}"
            );
        }
    }
}

#[test]
fn more_memory_than_there_is_is_an_error() {
    for device in devices() {
        let error = device.uninitialized::<u64>(usize::MAX).unwrap_err();
        assert!(
            matches!(error, DeviceError::BufferTooLarge { .. }),
            "{error}"
        );
        // 2^58 bytes fit in an address space that has 2^57.
        let error = device.uninitialized::<u64>(1 << 55).unwrap_err();
        assert!(
            matches!(error, DeviceError::OutOfMemory { wanted, .. } if wanted == 1 << 58),
            "{error}"
        );
        let works = device.upload(&[1_u8]).unwrap();
        assert_eq!(works.download().unwrap(), [1]);
    }
}
