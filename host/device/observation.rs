//! How a program observes a device: the progress of its launches, and the modules that the driver has compiled.

use super::reports::{ModuleLoad, Progress};
use super::{Backend, Device};

impl Device {
    /// The modules that the driver has compiled for this device so far, in that order: their part of a first use.
    /// None on the emulator.
    pub fn module_loads(&self) -> Vec<ModuleLoad> {
        match &*self.backend {
            Backend::Emulator(_) => Vec::new(),
            #[cfg(feature = "cuda")]
            Backend::Cuda(cuda) => cuda.module_loads(),
        }
    }

    /// Calls `progress` while launches run on an emulator; `None` ends that. A GPU does not report progress.
    ///
    /// The function cannot use the emulator, which is running a launch. A call to it returns
    /// [`DeviceError::DuringProgress`](super::DeviceError::DuringProgress). The function must not wait for a thread that
    /// uses this device.
    pub fn set_progress(&self, progress: Option<Progress>) {
        match &*self.backend {
            Backend::Emulator(emulator) => emulator.set_progress(progress),
            #[cfg(feature = "cuda")]
            Backend::Cuda(_) => {}
        }
    }
}
