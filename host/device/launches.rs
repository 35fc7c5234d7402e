//! Launching kernels, and logs of the kernels that were launched.

mod launch_reports;
mod observation;
mod occupancy;
pub(super) mod registers;
pub(super) mod reports;

use super::error::DeviceError;
use super::{Backend, Device};
use cuda_std::kernel::{Kernel, KernelArgs};
use cuda_std::launch::LaunchConfig;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often each kernel was launched on a device while the log was alive, by the name of its entry point.
///
/// It counts the launches of all threads, and those of a recording each time that the recording is launched. A launch
/// that fails at once does not count.
#[derive(Debug)]
pub struct LaunchLog {
    launches: Arc<Launches>,
    device: Device,
}

/// Launches by the name of the entry point.
type Launches = Mutex<BTreeMap<&'static str, u64>>;

/// The logs of a device that are alive.
#[derive(Default)]
pub(super) struct LaunchLogs {
    open: Mutex<Vec<Arc<Launches>>>,
    /// How many there are: without any, a launch takes no lock.
    count: AtomicUsize,
}

impl LaunchLogs {
    /// Adds a launch of each of the kernels to all logs.
    pub fn add(&self, kernels: &[&'static str]) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        for log in &*locked(&self.open) {
            let mut log = locked(log);
            for kernel in kernels {
                *log.entry(kernel).or_default() += 1;
            }
        }
    }
}

impl Device {
    /// Starts a log of the kernels that are launched on this device.
    pub fn log_launches(&self) -> LaunchLog {
        let launches = Arc::default();
        locked(&self.launch_logs.open).push(Arc::clone(&launches));
        self.launch_logs.count.fetch_add(1, Ordering::Relaxed);
        LaunchLog {
            launches,
            device: self.clone(),
        }
    }

    /// Launches a kernel. [`launch!`](crate::launch!) is shorter to write.
    ///
    /// On a GPU it returns at once, and a later call returns the kernel's error. The emulator runs the kernel to its
    /// end. Launches of one stream run one after the other. From compute capability 9.0 and CUDA 12.3 on, the blocks of
    /// a kernel that comes from an archive may start once all blocks of the launch before have ended; they wait for
    /// what those have written before they do anything else.
    ///
    /// # Errors
    ///
    /// The launch is not within the device's limits; the kernel is in no module; the emulator saw a fault; the
    /// driver's.
    ///
    /// # Safety
    ///
    /// The kernel's own contract holds, with these arguments and these sizes; every pointer among them is into a live
    /// buffer of this device, and was taken on this thread and [stream](Self::new_stream) since the buffer was last
    /// used on another one; and until the kernel is done (see [`synchronize`](Self::synchronize)) no buffer that it
    /// uses is dropped while another thread launches on this device.
    pub unsafe fn launch<A: KernelArgs>(
        &self,
        kernel: &Kernel<A>,
        config: LaunchConfig,
        args: A,
    ) -> Result<(), DeviceError> {
        // SAFETY: the handle has the types of the entry point's arguments.
        if unsafe { self.recorded(kernel, config, args)? } {
            return Ok(());
        }
        match &*self.backend {
            // SAFETY: the caller's contract.
            Backend::Emulator(emulator) => unsafe { emulator.launch(kernel, &config, args)? },
            #[cfg(cuda)]
            // SAFETY: the handle has the types of the entry point's arguments; the rest is the caller's contract.
            Backend::Cuda(cuda) => args.with_pointers(|pointers| unsafe {
                cuda.launch(
                    self.streams.current().cuda(),
                    kernel.name(),
                    &config,
                    pointers,
                )
            })?,
        }
        self.launch_logs.add(&[kernel.name()]);
        Ok(())
    }
}

impl LaunchLog {
    /// How often each kernel was launched so far.
    pub fn launches(&self) -> BTreeMap<&'static str, u64> {
        locked(&self.launches).clone()
    }
}

impl Drop for LaunchLog {
    fn drop(&mut self) {
        let logs = &self.device.launch_logs;
        locked(&logs.open).retain(|open| !Arc::ptr_eq(open, &self.launches));
        logs.count.fetch_sub(1, Ordering::Relaxed);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic cannot leave it half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
