//! Downloads of few bytes, for which a GPU keeps pinned memory, and of a little more.

use crate::kernels::{BLOCK, affine, unshared_devices_with_kernels};
use std::thread;
use support::devices;
use warprow::launch;

#[test]
fn downloads_of_any_size_come_after_what_was_launched() {
    for device in unshared_devices_with_kernels() {
        for len in [1_u32, 2, 1023, 1024, 1025, 5000] {
            let mut y = device.zeros::<u32>(len as usize).unwrap();
            let (kernel, blocks) = (affine(), len.div_ceil(BLOCK));
            // SAFETY: `y` has so many elements.
            unsafe { launch!(device, kernel<<<blocks, BLOCK, 0>>>(len, y.mutable())).unwrap() };
            let wanted: Vec<u32> = (0..len).map(|i| 3 * i + 1).collect();
            assert_eq!(y.download().unwrap(), wanted, "{len} on {device}");
            let mut last = [0];
            y.copy_part_to_slice(len as usize - 1, &mut last).unwrap();
            assert_eq!(last[..], wanted[len as usize - 1..], "{len} on {device}");
        }
    }
}

#[test]
fn threads_that_download_at_the_same_time_get_their_own_numbers() {
    for device in devices() {
        thread::scope(|scope| {
            for number in 0..8_u16 {
                let device = &device;
                scope.spawn(move || {
                    let numbers: Vec<u16> = (0..300).map(|i| 1000 * number + i).collect();
                    let buffer = device.upload(&numbers).unwrap();
                    for len in (1..300).step_by(23) {
                        let part = buffer.slice(..len).unwrap();
                        assert_eq!(part.download().unwrap(), numbers[..len], "on {device}");
                    }
                });
            }
        });
    }
}
