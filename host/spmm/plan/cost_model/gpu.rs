//! The figures of a GPU that the cost model needs.

use crate::device::Device;

/// Seconds of a launch after another one, where the GPU's rates do not have it.
const LAUNCH_SECONDS: f64 = 3e-6;

/// Bytes that a multiprocessor gets from the L2 cache in a cycle by `DeviceRates::l2_bytes_per_second` of the H200.
/// The constants were fitted to the times of an H200 and an H100, with one rate for both.
const FITTED_L2_BYTES_PER_CYCLE: f64 = 33.84;

/// The figures of a GPU.
#[derive(Clone, Copy, Debug)]
pub struct Gpu {
    /// Multiprocessors.
    pub multiprocessors: f64,
    /// Their cycles in a second.
    pub clock: f64,
    /// The peak rate of the memory, in bytes per second.
    pub memory_rate: f64,
    /// The L2 cache's bytes for each multiprocessor and cycle, over those of an H200.
    pub relative_l2_rate: f64,
    /// Seconds of a launch after another one.
    pub launch_seconds: f64,
    /// Bytes of a multiprocessor's L1 cache.
    pub l1_bytes: f64,
    /// Bytes of shared memory that a block can have.
    pub shared_bytes: u32,
    /// Bytes of the L2 cache.
    pub l2_bytes: f64,
    /// Its partitions: one or two.
    pub l2_partitions: u32,
}

impl Gpu {
    /// Those of a device, if it knows them.
    pub fn of(device: &Device) -> Option<Self> {
        let properties = device.properties();
        let rates = properties.rates?;
        let multiprocessors = f64::from(properties.multiprocessors.max(1));
        let clock = rates.clock_hz as f64;
        let of_h200 = multiprocessors * clock * FITTED_L2_BYTES_PER_CYCLE;
        let relative = |rate: u64| rate as f64 / of_h200;
        let seconds = |nanoseconds| f64::from(nanoseconds) * 1e-9;
        Some(Self {
            multiprocessors,
            clock,
            relative_l2_rate: rates.l2_bytes_per_second.map_or(1.0, relative),
            launch_seconds: rates.launch_nanoseconds.map_or(LAUNCH_SECONDS, seconds),
            memory_rate: rates.memory_bytes_per_second as f64,
            l1_bytes: rates.l1_bytes as f64,
            shared_bytes: properties.max_shared_bytes_per_block,
            l2_bytes: properties.l2_bytes? as f64,
            l2_partitions: rates.l2_partitions.clamp(1, 2),
        })
    }
}
