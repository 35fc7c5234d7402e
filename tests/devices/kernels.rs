//! The kernels that the tests launch, and how they launch them.

use cuda_std::prelude::*;
use support::{devices, unshared_devices};
use warprow::device::{Device, DeviceBuffer, DeviceError};
use warprow::launch;

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

/// `y[0] = x[0] + 1`; on a GPU so many nanoseconds after it was started.
///
/// # Safety
///
/// `x` and `y` hold an element each, the grid has one thread.
#[kernel]
pub unsafe fn increment_late(_ns: u32, x: Global<u32>, y: GlobalMut<u32>) {
    // SAFETY: there is an element.
    unsafe { y.store(0, x.load(0) + 1) };
}

/// A kernel that no PTX has.
///
/// # Safety
///
/// None.
#[kernel]
pub unsafe fn in_no_module() {}

/// The kernels above, for a GPU.
pub const PTX: &str = include_str!("../support/devices.ptx");

pub const BLOCK: u32 = 64;

pub fn run_affine(device: &Device, len: u32) -> Result<DeviceBuffer<u32>, DeviceError> {
    let mut y = device.uninitialized(len as usize)?;
    let affine = affine();
    // SAFETY: `y` holds `len` elements.
    unsafe { launch!(device, affine<<<len.div_ceil(BLOCK), BLOCK, 0>>>(len, y.mutable()))? };
    Ok(y)
}

pub fn affine_wanted(len: u32) -> Vec<u32> {
    (0..len).map(|i| 3 * i + 1).collect()
}

/// All devices, with the kernels above.
pub fn devices_with_kernels() -> Vec<Device> {
    with_kernels(devices())
}

/// As [`devices_with_kernels`], with handles that no other test has.
pub fn unshared_devices_with_kernels() -> Vec<Device> {
    with_kernels(unshared_devices())
}

fn with_kernels(devices: Vec<Device>) -> Vec<Device> {
    for device in &devices {
        device.load_ptx(PTX).unwrap();
    }
    devices
}
