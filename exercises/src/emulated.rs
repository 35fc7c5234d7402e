//! Runs cases on the emulator: its memory, its launches, and their counters.

use cuda_std::kernel::{Kernel, KernelArgs};
use cuda_std::launch::{Dim3, LaunchConfig};
use simt::{Emulator, Launch, LaunchReport, MemoryError, Options};

use crate::verdict::Failure;

/// The memory of an emulator for the runs of a case.
pub(crate) struct EmulatedMemory(Emulator);

impl EmulatedMemory {
    pub fn new(options: Options) -> Self {
        Self(Emulator::new(options))
    }

    pub fn allocate(&self, bytes: u64, element: u32) -> u64 {
        let address = self.0.allocate(bytes, element);
        address.expect("cases are small")
    }

    pub fn write(&self, address: u64, bytes: &[u8]) {
        let written = self.0.write(address, bytes);
        written.expect("the buffer has as many bytes");
    }

    pub fn zero(&self, address: u64, bytes: u64) {
        let written = self.0.zero(address, bytes);
        written.expect("the buffer has as many bytes");
    }

    /// Copies bytes to the host. The error is the offset of a byte that nobody has written.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), usize> {
        match self.0.read(address, bytes) {
            Ok(()) => Ok(()),
            Err(MemoryError::Uninitialised { offset, .. }) => Err(offset as usize),
            Err(error) => panic!("the buffer is alive: {error}"),
        }
    }

    pub fn launch<A: KernelArgs>(
        &self,
        kernel: &Kernel<A>,
        config: LaunchConfig,
        arguments: A,
    ) -> Result<(), Failure> {
        let extents = |dim: Dim3| [dim.x, dim.y, dim.z];
        let launch = Launch {
            kernel: kernel.name(),
            grid: extents(config.grid),
            block: extents(config.block),
            shared_bytes: config.shared_bytes,
        };
        let thread = kernel.thread();
        // SAFETY: the emulator checks each access of the kernel, also one that its contract forbids.
        let run = || unsafe { thread(arguments) };
        match self.0.launch(launch, &run) {
            Ok(_) => Ok(()),
            Err(mut fault) => {
                fault.name_parameters(&arguments.named_buffers(kernel.parameters()));
                Err(Failure::Fault(fault))
            }
        }
    }

    /// The counters of the launches, if the options ask for them.
    pub fn reports(&self) -> Vec<LaunchReport> {
        self.0.take_reports()
    }
}
