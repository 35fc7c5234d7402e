//! Runs cases on a GPU: its memory, its launches, and their time.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use cuda_std::kernel::{Kernel, KernelArgs};
use cuda_std::launch::LaunchConfig;
use simt::Schedule;
use warprow::device::{Device, DeviceBuffer, DeviceError, Selector};

use crate::check::Case;
use crate::description::Exercise;
use crate::gpu::Gpu;
use crate::verdict::{Failure, Rejection};

/// What stands in front of the time in the output of an attempt: microseconds, then the name of the GPU.
pub const TIME: &str = "time: ";

/// Number of runs whose median is the time.
const RUNS: usize = 21;

/// The memory of a GPU for the runs of a case.
pub(crate) struct CudaMemory {
    device: Device,
    buffers: RefCell<HashMap<u64, DeviceBuffer<u8>>>,
    /// The time of all launches.
    time: Cell<Duration>,
}

impl CudaMemory {
    pub fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            buffers: RefCell::default(),
            time: Cell::default(),
        }
    }

    pub fn allocate(&self, bytes: u64, _element: u32) -> u64 {
        // An allocation has an address of its own only if it has bytes.
        let length = usize::try_from(bytes.max(1)).expect("cases are small");
        let buffer = self.device.uninitialized(length).and_then(|mut buffer| {
            buffer.fill_bytes(u8::MAX)?;
            Ok(buffer)
        });
        let buffer: DeviceBuffer<u8> = buffer.expect("cases are small");
        let address = buffer.read_only().address();
        self.buffers.borrow_mut().insert(address, buffer);
        address
    }

    /// Changes the buffer at an address that `allocate` has returned.
    fn change(
        &self,
        address: u64,
        with: impl FnOnce(&mut DeviceBuffer<u8>) -> Result<(), DeviceError>,
    ) {
        let mut buffers = self.buffers.borrow_mut();
        let buffer = buffers
            .get_mut(&address)
            .expect("a buffer lives as long as its GPU");
        with(buffer).expect("the GPU takes bytes for its buffer");
    }

    pub fn write(&self, address: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.change(address, |buffer| buffer.copy_from_slice(bytes));
        }
    }

    pub fn zero(&self, address: u64, _bytes: u64) {
        self.change(address, DeviceBuffer::fill_zero);
    }

    /// Copies bytes to the host. A GPU does not know which bytes nobody has written.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), usize> {
        let buffers = self.buffers.borrow();
        let buffer = buffers
            .get(&address)
            .expect("a buffer lives as long as its GPU");
        if !bytes.is_empty() {
            let copied = buffer.copy_to_slice(bytes);
            copied.expect("the launches before it have succeeded");
        }
        Ok(())
    }

    /// The time of all launches.
    pub fn time(&self) -> Duration {
        self.time.get()
    }

    pub fn launch<A: KernelArgs>(
        &self,
        kernel: &Kernel<A>,
        config: LaunchConfig,
        arguments: A,
    ) -> Result<(), Failure> {
        let timer = self.device.start_timer().map_err(failure)?;
        // SAFETY: the kernel has passed the check on the emulator, which looks at each access. That it also keeps its
        // contract with the timed size, which is larger, is the learner's promise.
        unsafe { self.device.launch(kernel, config, arguments) }.map_err(failure)?;
        let elapsed = timer.stop().map_err(failure)?.unwrap_or_default();
        self.time.set(self.time.get() + elapsed);
        Ok(())
    }
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "it is the function of `map_err`"
)]
fn failure(error: DeviceError) -> Failure {
    Failure::Device(error.to_string())
}

/// The main function of an attempt on a GPU: runs all sizes, then measures the time.
pub(crate) fn attempt_main(exercise: &Exercise, case: Case, archive: &Path) -> ExitCode {
    let opened = open(archive);
    let device = match opened {
        Ok(device) => device,
        Err(message) => {
            println!("{message}");
            return ExitCode::FAILURE;
        }
    };
    match check(exercise, case, &device) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(time)) => {
            println!("{TIME}{:.2} {}", 1e6 * time.as_secs_f64(), device.name());
            ExitCode::SUCCESS
        }
        Err(rejection) => {
            println!("On {}. {rejection}", device.name());
            ExitCode::FAILURE
        }
    }
}

/// The first GPU, with the kernels of an archive.
///
/// # Errors
///
/// The archive cannot be read, or there is no GPU.
pub fn open(archive: &Path) -> Result<Device, String> {
    let bytes = fs::read(archive).map_err(|error| format!("{}: {error}", archive.display()))?;
    let device = Device::select(Selector::Cuda(None)).map_err(|error| error.to_string())?;
    let loaded = device.load_kernels(bytes);
    loaded.map_err(|error| error.to_string())?;
    Ok(device)
}

/// Runs all sizes, and returns the median time of the launches of the timed size, if the exercise has one.
///
/// # Errors
///
/// A wrong result, or an error of the GPU.
pub fn check(
    exercise: &Exercise,
    case: Case,
    device: &Device,
) -> Result<Option<Duration>, Box<Rejection>> {
    let run = |size| {
        let memory = CudaMemory::new(device);
        match case(&Gpu::cuda(&memory), size) {
            Ok(()) => Ok(memory.time()),
            Err(failure) => Err(Box::new(Rejection {
                size,
                schedule: Schedule::InOrder,
                failure,
                formula: exercise.description.formula.clone(),
            })),
        }
    };
    for &size in &exercise.description.sizes {
        run(size)?;
    }
    let Some(size) = exercise.description.timed_size else {
        return Ok(None);
    };
    let mut times = (0..RUNS)
        .map(|_| run(size))
        .collect::<Result<Vec<_>, _>>()?;
    times.sort_unstable();
    Ok(times.get(RUNS / 2).copied())
}
