//! The emulator back end: the same kernels, run by [`simt`] on the host's cores.

use super::buffer::uses::Users;
use super::error::DeviceError;
use super::launches::registers::registers_of;
use super::launches::reports::Progress;
use super::profile::{DeviceProfile, EMULATOR_OF};
use super::properties::identity;
use super::properties::limits::{self, KernelLimits};
use super::properties::{MemoryInfo, Properties, Version};
use super::stream::queue::Queue;
use cuda_std::kernel::{Kernel, KernelArgs};
use cuda_std::launch::{Dim3, LaunchConfig};
use simt::Options as EmulatorOptions;
use simt::{CounterOptions, Hardware, Launch, LaunchReport, MemoryError, Occupancy, Parameter};
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
    /// The GPU that it emulates, if it is a certain one.
    hardware: Option<Hardware>,
    /// Locked while a launch runs.
    counting: Mutex<Counting>,
    /// Allocations to free after the running launch.
    free_later: Mutex<Vec<u64>>,
}

/// What launches count, and what they have counted.
#[derive(Default)]
struct Counting {
    options: Option<CounterOptions>,
    /// The reports that nobody has taken, the oldest first.
    reports: Vec<LaunchReport>,
}

/// The name of a matrix's column indices, as a kernel's parameter or the field of one.
const WORK: &str = "col_idx";

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
        let properties = Properties {
            name: "emulator".to_owned(),
            uuid: None,
            compute_capability: Version::new(9, 0),
            driver: None,
            kernels: None,
            clock_mhz: None,
            memory_clock_mhz: None,
            multiprocessors: u32::try_from(workers).unwrap_or(u32::MAX),
            l2_bytes: None,
            rates: None,
            memory_bytes: options.memory,
            max_threads_per_block: simt::limits::MAX_THREADS_PER_BLOCK,
            max_block: simt::limits::MAX_BLOCK_DIM,
            max_grid: simt::limits::MAX_GRID_DIM,
            shared_bytes_per_block: simt::limits::MAX_STATIC_SHARED,
            max_shared_bytes_per_block: simt::limits::MAX_SHARED,
        };
        Self {
            properties,
            hardware: None,
            identity: identity::of_emulator(),
            counting: Mutex::new(Counting {
                options: options.counters,
                reports: Vec::new(),
            }),
            free_later: Mutex::default(),
            emulator: simt::Emulator::new(options),
        }
    }

    /// An emulator of a certain GPU.
    pub fn of(profile: &DeviceProfile, options: EmulatorOptions) -> Self {
        let hardware = profile.hardware;
        let emulator = Self::new(options);
        Self {
            properties: Properties {
                name: format!("{EMULATOR_OF}{}", profile.name),
                compute_capability: profile.compute_capability,
                multiprocessors: hardware.multiprocessors,
                l2_bytes: Some(hardware.l2_bytes),
                rates: Some(profile.rates),
                max_shared_bytes_per_block: (profile.max_shared_bytes_per_block())
                    .min(simt::limits::MAX_SHARED),
                ..emulator.properties
            },
            hardware: Some(hardware),
            ..emulator
        }
    }

    /// The number of blocks of such a launch that the emulated GPU would run at the same time: its theoretical
    /// occupancy. `None` without a profile, or for a kernel of another crate.
    pub fn resident_blocks(&self, kernel: &str, config: &LaunchConfig) -> Option<u64> {
        let blocks = self.occupancy(&self.hardware?, kernel, config)?.blocks();
        Some(u64::from(blocks) * u64::from(self.properties.multiprocessors))
    }

    /// The theoretical occupancy of a launch; `None` for a kernel of another crate, whose registers are unknown.
    fn occupancy(
        &self,
        hardware: &Hardware,
        kernel: &str,
        config: &LaunchConfig,
    ) -> Option<Occupancy> {
        let kernel = registers_of(kernel, self.properties.compute_capability)?;
        let Dim3 { x, y, z } = config.block;
        let threads = x.saturating_mul(y).saturating_mul(z);
        let shared_bytes = (kernel.static_shared_bytes).saturating_add(config.shared_bytes);
        Some(Occupancy::new(
            hardware,
            threads,
            shared_bytes,
            kernel.registers,
        ))
    }

    pub fn identity(&self) -> &str {
        &self.identity
    }

    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// `bytes` bytes of elements of `element_size` bytes, not initialised.
    pub fn allocate(
        &self,
        _queue: &Queue,
        bytes: u64,
        element_size: u32,
    ) -> Result<u64, DeviceError> {
        refuse_during_progress("an allocation")?;
        (self.emulator.allocate(bytes, element_size))
            .map_err(|error| self.failed_allocation(bytes, error))
    }

    /// The error of an allocation: that of any device if memory is short, else the emulator's own.
    fn failed_allocation(&self, bytes: u64, error: MemoryError) -> DeviceError {
        match error {
            MemoryError::OutOfMemory { .. } | MemoryError::MemoryExceeded { .. } => {
                DeviceError::OutOfMemory {
                    device: self.properties.name.clone(),
                    wanted: bytes,
                    free: self.memory().map(|memory| memory.free),
                }
            }
            error => error.into(),
        }
    }

    /// The bytes of all live allocations.
    pub fn allocated_bytes(&self) -> u64 {
        self.emulator.allocated()
    }

    /// Nothing counts the peak here: the bytes of all live allocations.
    pub fn take_peak_bytes(&self) -> u64 {
        self.allocated_bytes()
    }

    /// Free and total memory, if there is a limit.
    pub fn memory(&self) -> Option<MemoryInfo> {
        let total = self.properties.memory_bytes?;
        let free = total - self.emulator.allocated();
        Some(MemoryInfo { free, total })
    }

    pub fn free(&self, address: u64, _users: Users) -> Result<(), DeviceError> {
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
        let thread = kernel.thread();
        let parameters = || args.named_buffers(kernel.parameters());
        // SAFETY: the emulator calls it for the threads of the launch; the rest is the caller's contract.
        self.run(kernel.name(), config, &parameters, &|| unsafe {
            thread(args)
        })
    }

    /// Runs a kernel's function for each thread of a launch. Only [`launch`](Self::launch) is compiled for each type of
    /// arguments.
    fn run(
        &self,
        kernel: &'static str,
        config: &LaunchConfig,
        parameters: &dyn Fn() -> Vec<Parameter>,
        thread: &(dyn Fn() + Sync),
    ) -> Result<(), DeviceError> {
        refuse_during_progress("a launch")?;
        // Registers do not count here, and static shared memory the emulator itself counts.
        let resources = KernelLimits {
            max_threads_per_block: u32::MAX,
            static_shared_bytes: 0,
        };
        limits::check(config, &self.properties, resources).map_err(|exceeded| {
            DeviceError::LaunchLimit {
                kernel: kernel.to_owned(),
                device: self.properties.name.clone(),
                exceeded,
            }
        })?;
        let extents = |Dim3 { x, y, z }| [x, y, z];
        let launch = Launch {
            kernel,
            grid: extents(config.grid),
            block: extents(config.block),
            shared_bytes: config.shared_bytes,
        };
        let mut counting = self.counting();
        let counters =
            (counting.options).map(|counters| self.counters_of_launch(counters, &parameters()));
        self.emulator.set_counters(counters);
        let launched = self.emulator.launch(launch, thread);
        // What a function that reports progress has dropped.
        let mut dropped = mem::take(&mut *self.free_later()).into_iter();
        let freed = dropped.try_for_each(|address| self.emulator.free(address));
        launched.map_err(|mut fault| {
            fault.name_parameters(&parameters());
            DeviceError::Fault(fault.into())
        })?;
        for mut report in self.emulator.take_reports() {
            let hardware = counters.and_then(|counters| counters.hardware);
            report.occupancy =
                hardware.and_then(|hardware| self.occupancy(&hardware, kernel, config));
            report.name_parameters(&parameters());
            counting.reports.push(report);
        }
        Ok(freed?)
    }

    /// What a launch counts, on the emulated GPU unless the options say another, and with the column indices of its
    /// matrix as its work unless they name another buffer.
    fn counters_of_launch(
        &self,
        counters: CounterOptions,
        parameters: &[Parameter],
    ) -> CounterOptions {
        let is_work = |parameter: &&Parameter| parameter.name.rsplit('.').next() == Some(WORK);
        let work = parameters.iter().find(is_work);
        let hardware = counters.hardware.or(self.hardware);
        let work_buffer = counters.work_buffer.or(work.map(|work| work.address));
        counters.hardware(hardware).work_buffer(work_buffer)
    }

    fn counting(&self) -> MutexGuard<'_, Counting> {
        // A panic cannot leave it half changed.
        (self.counting.lock()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what later launches count.
    pub fn set_counters(&self, counters: Option<CounterOptions>) -> Result<(), DeviceError> {
        refuse_during_progress("other counters")?;
        self.counting().options = counters;
        Ok(())
    }

    /// Calls `take` with the reports that nobody has taken, the oldest first; `None` if there are none and launches
    /// count nothing.
    pub fn with_reports<R>(
        &self,
        take: impl FnOnce(&mut Vec<LaunchReport>) -> R,
    ) -> Result<Option<R>, DeviceError> {
        refuse_during_progress("the reports of launches")?;
        let mut counting = self.counting();
        let counts = counting.options.is_some() || !counting.reports.is_empty();
        Ok(counts.then(|| take(&mut counting.reports)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocation_that_fails_for_another_reason_than_memory_says_which() {
        let emulator = EmulatorBackend::new(EmulatorOptions::default());
        let failed = |error| emulator.failed_allocation(8, error).to_string();
        let message = failed(MemoryError::TooManyEmulators { most: 5 });
        assert!(message.contains("5 emulators have memory"), "{message}");
        let message = failed(MemoryError::OutOfMemory { bytes: 8 });
        assert!(message.contains("out of memory on emulator"), "{message}");
    }
}
