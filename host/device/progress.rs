//! The progress of launches on the emulator.

use super::error::DeviceError;
use super::reports::Progress;
use super::{Backend, Device, emulator};

impl Device {
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
