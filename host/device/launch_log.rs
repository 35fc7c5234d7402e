//! The names of the kernels that a device launches while someone asks for them.

use super::Device;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Notes the launches of a device between the beginning and the end of [`Device::log_launches`].
#[derive(Default)]
pub(super) struct LaunchLog {
    /// Whether launches are noted. If not, a launch reads this and no more.
    is_on: AtomicBool,
    names: Mutex<Vec<&'static str>>,
}

impl LaunchLog {
    /// Notes a launch, if launches are noted.
    pub fn note(&self, kernel: &'static str) {
        if self.is_on.load(Ordering::Relaxed) {
            self.names().push(kernel);
        }
    }

    fn names(&self) -> MutexGuard<'_, Vec<&'static str>> {
        // A panic cannot leave the list half changed.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Switches the log off and empties it, also if the logged function panics.
struct Logging<'a>(&'a LaunchLog);

impl Logging<'_> {
    fn take(&self) -> Vec<&'static str> {
        self.0.is_on.store(false, Ordering::Relaxed);
        mem::take(&mut *self.0.names())
    }
}

impl Drop for Logging<'_> {
    fn drop(&mut self) {
        self.take();
    }
}

impl Device {
    /// Calls `run`, and returns also the PTX entry points of the kernels that were launched on this device meanwhile,
    /// in the order of the launches. Launches of other threads are among them. A launch that is recorded counts when
    /// it is recorded, not when the recording is launched.
    ///
    /// Outside of this function a launch costs no more for it than one load of a flag.
    ///
    /// # Panics
    ///
    /// If launches of this device are logged already.
    pub fn log_launches<R>(&self, run: impl FnOnce() -> R) -> (R, Vec<&'static str>) {
        let was_on = self.launch_log.is_on.swap(true, Ordering::Relaxed);
        assert!(!was_on, "the launches of {self:?} are logged already");
        let logging = Logging(&self.launch_log);
        let result = run();
        (result, logging.take())
    }
}
