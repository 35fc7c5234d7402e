//! The occupancy of a launch.

use crate::device::error::DeviceError;
use crate::device::{Backend, Device};
use cuda_std::kernel::{Kernel, KernelArgs};
use cuda_std::launch::LaunchConfig;

impl Device {
    /// The number of blocks of such a launch that the device runs at the same time; `None` on an emulator of no certain
    /// GPU. It compiles the kernel if that is necessary.
    pub(crate) fn resident_blocks<A: KernelArgs>(
        &self,
        kernel: &Kernel<A>,
        config: &LaunchConfig,
    ) -> Result<Option<u64>, DeviceError> {
        match &*self.backend {
            Backend::Emulator(emulator) => Ok(emulator.resident_blocks(kernel.name(), config)),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => cuda.resident_blocks(kernel.name(), config).map(Some),
        }
    }
}
