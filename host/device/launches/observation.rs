//! How a program observes a device: the progress of its launches, and the modules that the driver has compiled.

use crate::device::error::DeviceError;
use crate::device::launches::reports::{ModuleLoad, Progress};
use crate::device::{Backend, Device, emulator};

impl Device {
    /// The modules that the driver has compiled for this device so far, in that order: their part of a first use.
    /// None on the emulator.
    pub fn module_loads(&self) -> Vec<ModuleLoad> {
        match &*self.backend {
            Backend::Emulator(_) => Vec::new(),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => cuda.module_loads(),
        }
    }

    /// Checks that this thread may use the device: it may not in a function that reports progress of an emulator. What
    /// holds a lock while it launches asks first.
    pub(crate) fn refuse_during_progress(&self, what: &'static str) -> Result<(), DeviceError> {
        match &*self.backend {
            Backend::Emulator(_) => emulator::refuse_during_progress(what),
            #[cfg(cuda)]
            Backend::Cuda(_) => Ok(()),
        }
    }

    /// Calls `progress` while launches run on an emulator; `None` ends that. A GPU does not report progress.
    ///
    /// The function cannot use an emulator, which runs a launch meanwhile: what it asks of one is
    /// [`DeviceError::DuringProgress`]. It must not wait for a thread that uses this device.
    pub fn set_progress(&self, progress: Option<Progress>) {
        match &*self.backend {
            Backend::Emulator(emulator) => emulator.set_progress(progress),
            #[cfg(cuda)]
            Backend::Cuda(_) => {}
        }
    }
}
