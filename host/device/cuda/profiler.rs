//! Ranges for NVIDIA's profilers.

use super::{Cuda, CudaQueue, driver};
use crate::device::error::DeviceError;

impl Cuda {
    /// Runs `work`, with all that it launches, as a range of a profiler that waits for one.
    pub fn profiled<R>(
        &self,
        queue: &CudaQueue,
        work: impl FnOnce() -> R,
    ) -> Result<R, DeviceError> {
        self.synchronize(queue)?;
        driver::start_profiler().map_err(|error| self.driver_error(error))?;
        let result = work();
        let done = self.synchronize(queue);
        driver::stop_profiler().map_err(|error| self.driver_error(error))?;
        done.map(|()| result)
    }
}
