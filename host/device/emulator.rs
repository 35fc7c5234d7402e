//! The emulator back end: the same kernels, run by [`simt`] on the host's cores.

use super::error::DeviceError;
use super::identity;
use super::limits::{self, KernelLimits};
use super::properties::{MemoryInfo, Properties, Version};
use super::reports::Progress;
use cuda_std::kernel::{Kernel, KernelArgs};
use cuda_std::launch::{Dim3, LaunchConfig};
use simt::Launch;
use simt::Options as EmulatorOptions;
use std::cell::Cell;
use std::mem;
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// An emulated GPU with its own memory.
pub(super) struct EmulatorBackend {
    emulator: simt::Emulator,
    identity: String,
    properties: Properties,
    /// Allocations to free after the running launch.
    free_later: Mutex<Vec<u64>>,
}

thread_local! {
    /// Whether this thread is in a function that reports progress.
    static REPORTS_PROGRESS: Cell<bool> = const { Cell::new(false) };
}

/// Checks that this thread is not in a function that reports progress: the launch that calls it holds the emulator.
pub(super) fn refuse_during_progress(what: &'static str) -> Result<(), DeviceError> {
    if REPORTS_PROGRESS.get() {
        return Err(DeviceError::DuringProgress { what });
    }
    Ok(())
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
                memory_bytes: options.memory,
                max_threads_per_block: simt::limits::MAX_THREADS_PER_BLOCK,
                max_block: simt::limits::MAX_BLOCK_DIM,
                max_grid: simt::limits::MAX_GRID_DIM,
                shared_bytes_per_block: simt::limits::MAX_STATIC_SHARED,
                max_shared_bytes_per_block: simt::limits::MAX_SHARED,
            },
            identity: identity::of_emulator(),
            free_later: Mutex::default(),
            emulator: simt::Emulator::new(options),
        }
    }

    pub fn take_reports(&self) -> Vec<simt::LaunchReport> {
        self.emulator.take_reports()
    }

    pub fn identity(&self) -> &str {
        &self.identity
    }

    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// `bytes` bytes of elements of `element_size` bytes, not initialised.
    pub fn allocate(&self, bytes: u64, element_size: u32) -> Result<u64, DeviceError> {
        refuse_during_progress("an allocation")?;
        self.emulator
            .allocate(bytes, element_size)
            .map_err(|_| DeviceError::OutOfMemory {
                device: self.properties.name.clone(),
                wanted: bytes,
                free: self.memory().map(|memory| memory.free),
            })
    }

    /// The bytes of all live allocations.
    pub fn allocated_bytes(&self) -> u64 {
        self.emulator.allocated()
    }

    /// Free and total memory, if there is a limit.
    pub fn memory(&self) -> Option<MemoryInfo> {
        let total = self.properties.memory_bytes?;
        let free = total - self.emulator.allocated();
        Some(MemoryInfo { free, total })
    }

    pub fn free(&self, address: u64) -> Result<(), DeviceError> {
        if REPORTS_PROGRESS.get() {
            self.free_later().push(address);
            return Ok(());
        }
        Ok(self.emulator.free(address)?)
    }

    fn free_later(&self) -> MutexGuard<'_, Vec<u64>> {
        // A panic cannot leave it half changed.
        (self.free_later.lock()).unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        refuse_during_progress("a copy to the device")?;
        Ok(self.emulator.write(address, bytes)?)
    }

    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        refuse_during_progress("a copy from the device")?;
        Ok(self.emulator.read(address, bytes)?)
    }

    pub fn zero(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        refuse_during_progress("to set a buffer's bytes")?;
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

    /// # Safety
    ///
    /// The kernel's own contract holds, with these arguments and this shape.
    pub unsafe fn launch<A: KernelArgs>(
        &self,
        kernel: &Kernel<A>,
        config: &LaunchConfig,
        args: A,
    ) -> Result<(), DeviceError> {
        refuse_during_progress("a launch")?;
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
        let launched = self
            .emulator
            // SAFETY: the emulator calls it for the threads of the launch; the rest is the caller's contract.
            .launch(launch, &|| unsafe { thread(args) });
        // What a function that reports progress has dropped.
        let mut dropped = mem::take(&mut *self.free_later()).into_iter();
        let freed = dropped.try_for_each(|address| self.emulator.free(address));
        launched.map_err(|mut fault| {
            fault.name_parameters(&args.named_buffers(kernel.parameters()));
            DeviceError::Fault(fault.into())
        })?;
        Ok(freed?)
    }

    pub fn set_progress(&self, progress: Option<Progress>) {
        /// Notes the end of a report, also if it panics.
        struct Ended;

        impl Drop for Ended {
            fn drop(&mut self) {
                REPORTS_PROGRESS.set(false);
            }
        }

        let reporting = |progress: Progress| -> Progress {
            Arc::new(move |done, total| {
                REPORTS_PROGRESS.set(true);
                let _ended = Ended;
                progress(done, total);
            })
        };
        self.emulator.set_progress(progress.map(reporting));
    }
}
