//! What a device is and what it allows.

pub(super) mod host_memory;
pub(super) mod identity;
pub(super) mod limits;
pub(super) mod selector;

use std::fmt;

/// Two numbers, major and minor, compared in this order: a compute capability, a CUDA version, a PTX ISA version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs, reason = "a version is these two numbers")]
pub struct Version {
    /// The number before the dot.
    pub major: u32,
    /// The number after the dot.
    pub minor: u32,
}

impl Version {
    /// `major.minor`.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A device's description and limits. Fields that only a GPU has are `None` on a plain emulator. An
/// [emulator of a GPU](super::Device::emulator_of) has the sizes and rates of that GPU's profile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Properties {
    /// The device's name: `NVIDIA H200`, `emulator`, or `emulator of NVIDIA H200`.
    pub name: String,
    /// What tells the GPU from all others, of every machine.
    pub uuid: Option<[u8; 16]>,
    /// The compute capability; of the emulator, that whose instructions it has.
    pub compute_capability: Version,
    /// The newest CUDA version that the driver supports.
    pub driver: Option<Version>,
    /// A checksum of the PTX of this crate's kernels: measurements are of the same kernels if it is the same.
    pub kernels: Option<u32>,
    /// The greatest clock frequency of the multiprocessors, in MHz.
    pub clock_mhz: Option<u32>,
    /// The greatest clock frequency of the memory, in MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Streaming multiprocessors; of the emulator, the threads that it runs blocks on.
    pub multiprocessors: u32,
    /// Bytes of the L2 cache.
    pub l2_bytes: Option<u64>,
    /// The rates that models of time depend on; `None` on an emulator of no certain GPU.
    pub rates: Option<DeviceRates>,
    /// Bytes of device memory; of the emulator, the limit of its options.
    pub memory_bytes: Option<u64>,
    /// Threads of a block, at most.
    pub max_threads_per_block: u32,
    /// Threads of a block along x, y, z, at most.
    pub max_block: [u32; 3],
    /// Blocks of a grid along x, y, z, at most.
    pub max_grid: [u32; 3],
    /// Bytes of shared memory of a block, static and dynamic together, that every kernel may have.
    pub shared_bytes_per_block: u32,
    /// Bytes of shared memory of a block, static and dynamic together, for a launch that asks for more;
    /// [`Device::launch`](super::Device::launch) does the asking.
    pub max_shared_bytes_per_block: u32,
}

/// What models of time need to know about a GPU: rates, the size of an L1 cache, the time of a launch, and how the L2
/// cache is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceRates {
    /// Cycles of a multiprocessor in a second, at its highest clock.
    pub clock_hz: u64,
    /// The peak rate of the memory.
    pub memory_bytes_per_second: u64,
    /// Bytes a second that all multiprocessors together load from the L2 cache: rows of 512 bytes, at random places in
    /// 16 MiB. `None` if it was not measured; plans then assume the H200's 33.8 bytes a cycle and multiprocessor.
    pub l2_bytes_per_second: Option<u64>,
    /// Nanoseconds from the start of one small launch to the start of the next in a stream; `None` if they were not
    /// measured. Plans then assume 3000.
    pub launch_nanoseconds: Option<u32>,
    /// Bytes of a multiprocessor's L1 cache, shared memory included.
    pub l1_bytes: u32,
    /// Partitions of the L2 cache, one or two: two if each half of the multiprocessors has its own, as in the A100, H100,
    /// H200 and B200.
    pub l2_partitions: u32,
}

impl DeviceRates {
    /// The partitions of the L2 cache by compute capability: two for GPUs for data centers, which have 8.0, 9.x and 10.x.
    pub(super) const fn l2_partitions_of(compute_capability: Version) -> u32 {
        match (compute_capability.major, compute_capability.minor) {
            (8, 0) | (9, _) | (10, _) => 2,
            _ => 1,
        }
    }
}

impl fmt::Display for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            multiprocessors,
            ..
        } = self;
        match (self.driver, self.memory_bytes) {
            (Some(driver), Some(bytes)) => {
                let Version { major, minor } = self.compute_capability;
                // Rounded to the nearest GiB, so that a device of 141 GB reads the same on every driver.
                let gib = (bytes + (1 << 29)) >> 30;
                write!(
                    f,
                    "{name} (sm_{major}{minor}, driver CUDA {driver}, {gib} GiB)"
                )
            }
            _ if self.l2_bytes.is_some() => write!(f, "{name} ({multiprocessors} multiprocessors)"),
            _ if *multiprocessors == 1 => write!(f, "{name} (1 core)"),
            _ => write!(f, "{name} ({multiprocessors} cores)"),
        }
    }
}

/// Bytes of device memory at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryInfo {
    /// Bytes that can be allocated, fragmentation apart.
    pub free: u64,
    /// Bytes that the device has.
    pub total: u64,
}
