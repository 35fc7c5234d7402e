//! Launches that may run at the same time, on streams beside a stream.

use super::{Cuda, CudaQueue};
use crate::device::error::DeviceError;
use cuda_std::launch::LaunchConfig;
use std::ffi::c_void;

impl Cuda {
    /// Launches the kernel with this number in a fork of a stream.
    ///
    /// # Safety
    ///
    /// As for [`launch`](Self::launch).
    pub unsafe fn launch_beside(
        &self,
        queue: &CudaQueue,
        number: usize,
        kernel: &str,
        config: &LaunchConfig,
        arguments: &[*mut c_void],
    ) -> Result<(), DeviceError> {
        let side = self.checked(queue.side_streams())?;
        let stream = self.checked(side.stream_of(queue.stream(), number))?;
        // SAFETY: `launch_on` requires of its caller what this function requires.
        unsafe { self.launch_on(stream, kernel, config, arguments) }
    }

    /// Makes a stream wait for a fork of so many launches.
    pub fn join(&self, queue: &CudaQueue, launches: usize) -> Result<(), DeviceError> {
        if launches < 2 {
            return Ok(());
        }
        let side = self.checked(queue.side_streams())?;
        self.checked(side.join(queue.stream(), launches))
    }
}
