//! Products over several parts: the division of a matrix, and several devices against one.

mod division;
mod gcn;
mod host_memory;
mod partition;
mod spgemm;
mod spmm;
mod transfer;
mod volume;

use std::num::NonZeroUsize;
use warprow::device::{CudaUnavailable, Device, EmulatorOptions};
use warprow::multi::Devices;

/// Sets of devices: 1, 2, 3 and 5 emulators, each with its own memory; and as many handles of the GPUs in turn, each
/// with a stream of its own.
fn device_sets() -> Vec<Devices> {
    let counts = [1, 2, 3, 5];
    let emulators = counts.map(|count| {
        let count = NonZeroUsize::new(count as usize).unwrap();
        Devices::emulators(count, EmulatorOptions::default()).unwrap()
    });
    let mut sets = emulators.to_vec();
    if support::cuda().is_some() {
        sets.extend(counts.map(|count| {
            let gpus = gpus();
            let handles = (0..count).map(|number| Device::cuda(number % gpus).unwrap());
            Devices::of(handles.collect()).unwrap()
        }));
    }
    sets
}

/// The number of GPUs.
fn gpus() -> u32 {
    match Device::cuda(u32::MAX) {
        Err(CudaUnavailable::NoSuchOrdinal { count, .. }) => count,
        other => panic!("{other:?}"),
    }
}
