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
use warprow::device::{Device, EmulatorOptions};
use warprow::multi::Devices;

/// Sets of devices: 1, 2, 3 and 5 emulators, each with its own memory; and on a GPU as many handles of it, each with a
/// stream of its own.
fn device_sets() -> Vec<Devices> {
    let counts = [1, 2, 3, 5];
    let emulators = counts.map(|count| {
        let count = NonZeroUsize::new(count).unwrap();
        Devices::emulators(count, EmulatorOptions::default()).unwrap()
    });
    let mut sets = emulators.to_vec();
    if support::cuda().is_some() {
        sets.extend(counts.map(|count| {
            let handles = (0..count).map(|_| Device::open().unwrap()).collect();
            Devices::of(handles).unwrap()
        }));
    }
    sets
}
