//! The emulator back end: the same kernels, run by [`simt`] on the host's cores.

use super::error::DeviceError;
use super::limits::{self, KernelLimits};
use super::properties::{Properties, Version};
use super::reports::Progress;
use cuda_std::kernel::{Kernel, KernelArgs};
use cuda_std::launch::{Dim3, LaunchConfig};
use simt::Launch;
use simt::Options as EmulatorOptions;
use std::num::NonZero;
use std::thread;

/// An emulated GPU with its own memory.
pub(super) struct EmulatorBackend {
    emulator: simt::Emulator,
    properties: Properties,
}

impl EmulatorBackend {
    pub fn new(options: EmulatorOptions) -> Self {
        let workers = options
            .workers
            .or_else(|| thread::available_parallelism().ok())
            .map_or(1, NonZero::get);
        Self {
            properties: Properties {
                name: "emulator".to_owned(),
                compute_capability: Version::new(9, 0),
                driver: None,
                multiprocessors: u32::try_from(workers).unwrap_or(u32::MAX),
                l2_bytes: None,
                memory_bytes: None,
                max_threads_per_block: simt::limits::MAX_THREADS_PER_BLOCK,
                max_block: simt::limits::MAX_BLOCK_DIM,
                max_grid: simt::limits::MAX_GRID_DIM,
                shared_bytes_per_block: simt::limits::MAX_STATIC_SHARED,
                max_shared_bytes_per_block: simt::limits::MAX_SHARED,
            },
            emulator: simt::Emulator::new(options),
        }
    }

    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// `bytes` bytes of elements of `element_size` bytes, not initialised.
    pub fn allocate(&self, bytes: u64, element_size: u32) -> Result<u64, DeviceError> {
        self.emulator
            .allocate(bytes, element_size)
            .map_err(|_| DeviceError::OutOfMemory {
                device: self.properties.name.clone(),
                wanted: bytes,
                free: None,
            })
    }

    pub fn free(&self, address: u64) -> Result<(), DeviceError> {
        Ok(self.emulator.free(address)?)
    }

    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        Ok(self.emulator.write(address, bytes)?)
    }

    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        Ok(self.emulator.read(address, bytes)?)
    }

    pub fn zero(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        Ok(self.emulator.zero(address, bytes as u64)?)
    }

    pub fn fill(&self, address: u64, bytes: usize, value: u8) -> Result<(), DeviceError> {
        const CHUNK: usize = 1 << 16;
        let chunk = vec![value; bytes.min(CHUNK)];
        for start in (0..bytes).step_by(CHUNK) {
            let length = CHUNK.min(bytes - start);
            self.write(address + start as u64, &chunk[..length])?;
        }
        Ok(())
    }

    /// Kernels come with their handles, so there is nothing to load.
    pub fn load_ptx(&self, _ptx: &str) -> Result<(), DeviceError> {
        Ok(())
    }

    pub fn launch<A: KernelArgs>(
        &self,
        kernel: &Kernel<A>,
        config: &LaunchConfig,
        args: A,
    ) -> Result<(), DeviceError> {
        // Registers do not count here, and static shared memory the emulator itself counts.
        let resources = KernelLimits {
            max_threads_per_block: u32::MAX,
            static_shared_bytes: 0,
        };
        limits::check(config, &self.properties, resources).map_err(|exceeded| {
            DeviceError::LaunchLimit {
                kernel: kernel.name().to_owned(),
                device: self.properties.name.clone(),
                exceeded,
            }
        })?;
        let extents = |Dim3 { x, y, z }| [x, y, z];
        let launch = Launch {
            kernel: kernel.name(),
            grid: extents(config.grid),
            block: extents(config.block),
            shared_bytes: config.shared_bytes,
        };
        let thread = kernel.thread();
        self.emulator
            .launch(launch, &|| thread(args))
            .map_err(|mut fault| {
                fault.name_parameters(&args.named_buffers(kernel.parameters()));
                DeviceError::Fault(fault.into())
            })?;
        Ok(())
    }

    pub fn set_progress(&self, progress: Option<Progress>) {
        self.emulator.set_progress(progress);
    }
}
