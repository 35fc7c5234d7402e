//! Every function of the device library, through small kernels, on every device: many blocks, expected values
//! computed here.

mod async_copies;
mod atomics;
mod floats;
mod memories;
mod mma;
mod threads;
mod warps;

use warprow::{Device, DeviceBuffer};
use warprow_test_kernels::PTX;

/// The devices to test on, with the test kernels loaded.
fn devices() -> Vec<Device> {
    let devices = support::devices();
    for device in &devices {
        device.load_kernels(PTX).expect("the test kernels load");
    }
    devices
}

/// A launch that must succeed, and have ended when the next line runs.
macro_rules! run {
    ($device:ident, $kernel:expr, $grid:expr, $block:expr, ($($argument:expr),* $(,)?)) => {
        run!($device, $kernel, $grid, $block, shared 0, ($($argument),*))
    };
    ($device:ident, $kernel:expr, $grid:expr, $block:expr, shared $bytes:expr, ($($argument:expr),* $(,)?)) => {{
        let config = warprow::LaunchConfig::new($grid, $block).shared_bytes($bytes);
        // SAFETY: the buffers have the lengths that the kernel's contract asks for.
        unsafe { $device.launch(&$kernel, config, ($($argument,)*)) }.expect("the launch succeeds");
        $device.synchronize().expect("the kernel ends");
    }};
}
use run;

/// What is in a buffer.
fn download<T: warprow::Element>(buffer: &DeviceBuffer<T>) -> Vec<T> {
    buffer.download().expect("the buffer comes back")
}

/// `count` numbers that look random and are the same every time (SplitMix64).
fn numbers(count: usize, seed: u64) -> Vec<u64> {
    (1..=count as u64)
        .map(|i| {
            let mut z = seed.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        })
        .collect()
}
