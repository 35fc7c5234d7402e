//! Independent launches, which may run at the same time.

use super::Device;
use super::error::DeviceError;
#[cfg(cuda)]
use super::{Backend, cuda::Cuda, stream::queue::Queue};
use cuda_std::kernel::{Kernel, KernelArgs};
use cuda_std::launch::LaunchConfig;
#[cfg(cuda)]
use std::cell::Cell;
#[cfg(cuda)]
use std::sync::Arc;

/// Independent launches. All of them come after what the device was asked to do before, and before what it is asked
/// to do after [`join`](Self::join).
///
/// If one launch does not fill a GPU, it runs several at the same time: kernels for a few long rows then take the
/// time of the longest row. Memory that is freed inside a fork may still be in use, so nothing may be allocated or
/// freed inside it.
pub(crate) struct Fork<'a> {
    device: &'a Device,
    #[cfg(cuda)]
    queue: Arc<Queue>,
    #[cfg(cuda)]
    launches: Cell<usize>,
    /// One launch runs after the other: while they are recorded, and on the emulator.
    #[cfg(cuda)]
    in_order: bool,
    joined: bool,
}

impl Device {
    /// Begins a fork.
    pub(crate) fn fork(&self) -> Fork<'_> {
        Fork {
            device: self,
            #[cfg(cuda)]
            queue: self.streams.current(),
            #[cfg(cuda)]
            launches: Cell::new(0),
            #[cfg(cuda)]
            in_order: self.is_emulator() || self.is_recording(),
            joined: false,
        }
    }
}

impl Fork<'_> {
    /// As [`Device::launch`].
    ///
    /// # Safety
    ///
    /// As for [`Device::launch`]; and it neither reads nor writes what another launch of the fork writes.
    pub unsafe fn launch<A: KernelArgs>(
        &self,
        kernel: &Kernel<A>,
        config: LaunchConfig,
        args: A,
    ) -> Result<(), DeviceError> {
        #[cfg(cuda)]
        if let Some(cuda) = self.at_the_same_time() {
            let number = self.launches.replace(self.launches.get() + 1);
            // SAFETY: the handle has the types of the entry point's arguments; the rest is the caller's contract.
            args.with_pointers(|pointers| unsafe {
                cuda.launch_beside(self.queue.cuda(), number, kernel.name(), &config, pointers)
            })?;
            self.device.launch_logs.add(&[kernel.name()]);
            return Ok(());
        }
        // SAFETY: `Device::launch` requires of its caller what this function requires.
        unsafe { self.device.launch(kernel, config, args) }
    }

    /// The GPU, if launches may run at the same time.
    #[cfg(cuda)]
    fn at_the_same_time(&self) -> Option<&Cuda> {
        match &*self.device.backend {
            Backend::Cuda(cuda) if !self.in_order => Some(cuda),
            _ => None,
        }
    }

    /// Ends the fork: what the device is asked to do from now on comes after all of its launches.
    pub fn join(mut self) -> Result<(), DeviceError> {
        self.joined = true;
        self.wait()
    }

    fn wait(&self) -> Result<(), DeviceError> {
        #[cfg(cuda)]
        if let Some(cuda) = self.at_the_same_time() {
            return cuda.join(self.queue.cuda(), self.launches.get());
        }
        Ok(())
    }
}

impl Drop for Fork<'_> {
    fn drop(&mut self) {
        if !self.joined {
            // After an error: buffers are about to be freed. What fails here is reported by another call.
            let _ = self.wait();
        }
    }
}
