//! Launches that are recorded once and launched together many times: a CUDA graph on a GPU.

use super::emulator::EmulatorBackend;
use super::error::DeviceError;
use super::{Backend, Device};
use cuda_std::kernel::{Kernel, KernelArgs};
use cuda_std::launch::LaunchConfig;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// Launches of a device, recorded by [`Device::record`]. On a GPU they are one CUDA graph: one call of the driver for
/// all of them, and less time between one and the next.
pub struct LaunchGraph {
    // Dropped before the device, whose context it needs.
    recorded: Recorded,
    launches: usize,
    device: Device,
}

enum Recorded {
    Emulator(Vec<RecordedLaunch>),
    #[cfg(feature = "cuda")]
    Cuda(super::cuda::CudaGraph),
}

/// A launch with its arguments, on the emulator.
type RecordedLaunch = Box<dyn Fn(&EmulatorBackend) -> Result<(), DeviceError> + Send + Sync>;

/// A recording that has not ended.
struct Recording {
    launches: usize,
    so_far: SoFar,
}

enum SoFar {
    Emulator(Vec<RecordedLaunch>),
    #[cfg(feature = "cuda")]
    Cuda(super::cuda::CudaRecording),
}

/// The recordings of a device that have not ended, one for each thread. Launches of other threads are not recorded.
#[derive(Default)]
pub(super) struct Recordings(Mutex<HashMap<ThreadId, Recording>>);

impl Recordings {
    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, Recording>> {
        // A panic cannot leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Recording> {
        let mut recordings = self.lock();
        if recordings.is_empty() {
            return None;
        }
        recordings.remove(&thread::current().id())
    }

    fn put(&self, recording: Recording) {
        self.lock().insert(thread::current().id(), recording);
    }

    /// Checks that this thread does not record; `what` cannot be recorded.
    pub fn refuse(&self, what: &'static str) -> Result<(), DeviceError> {
        let recordings = self.lock();
        if recordings.is_empty() || !recordings.contains_key(&thread::current().id()) {
            return Ok(());
        }
        Err(DeviceError::NotRecordable { what })
    }
}

impl Device {
    /// Records the launches that `launch` makes on this device and this thread, for [`LaunchGraph::launch`]. They do
    /// not run, and anything other than a launch fails: allocations, copies, waiting. Other threads are not affected.
    ///
    /// ```
    /// # use cuda_std::prelude::*;
    /// # use warprow::{device::Device, launch};
    /// # /// Adds one to a number.
    /// # ///
    /// # /// # Safety
    /// # ///
    /// # /// `y` holds a number.
    /// # #[kernel]
    /// # pub unsafe fn increment(y: GlobalMut<u32>) {
    /// #     // SAFETY: the kernel's contract.
    /// #     unsafe { y.store(0, y.load(0) + 1) };
    /// # }
    /// # fn main() -> Result<(), warprow::Error> {
    /// # let device = Device::emulator(Default::default());
    /// let mut y = device.upload(&[5_u32])?;
    /// let increment = increment();
    /// let twice = device.record(|| {
    ///     // SAFETY: the buffer holds a number.
    ///     unsafe { launch!(device, increment<<<1, 1, 0>>>(y.mutable()))? };
    ///     unsafe { launch!(device, increment<<<1, 1, 0>>>(y.mutable())) }
    /// })?;
    /// // SAFETY: the buffer is alive.
    /// unsafe { twice.launch()? };
    /// unsafe { twice.launch()? };
    /// assert_eq!(y.download()?, [9]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`DeviceError::NotRecordable`]; those of `launch`; the driver's.
    ///
    /// # Panics
    ///
    /// Inside another recording of this device on this thread.
    pub fn record<E: From<DeviceError>>(
        &self,
        launch: impl FnOnce() -> Result<(), E>,
    ) -> Result<LaunchGraph, E> {
        /// Ends the recording if `launch` panics.
        struct Ended<'a>(&'a Recordings);

        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.take();
            }
        }

        let nested = self.recordings.refuse("another recording").is_err();
        assert!(!nested, "a recording inside another one");
        let so_far = match &*self.backend {
            Backend::Emulator(_) => SoFar::Emulator(Vec::new()),
            #[cfg(feature = "cuda")]
            Backend::Cuda(cuda) => SoFar::Cuda(cuda.start_recording()?),
        };
        self.recordings.put(Recording {
            launches: 0,
            so_far,
        });
        let ended = Ended(&self.recordings);
        launch()?;
        let recording = ended.0.take().expect("nobody else ends it");
        let recorded = match (recording.so_far, &*self.backend) {
            (SoFar::Emulator(replays), _) => Recorded::Emulator(replays),
            #[cfg(feature = "cuda")]
            (SoFar::Cuda(recording), Backend::Cuda(cuda)) => {
                Recorded::Cuda(cuda.end_recording(recording)?)
            }
            #[cfg(feature = "cuda")]
            (SoFar::Cuda(_), Backend::Emulator(_)) => unreachable!("the device has one back end"),
        };
        Ok(LaunchGraph {
            recorded,
            launches: recording.launches,
            device: self.clone(),
        })
    }

    /// Records a launch if this thread records; returns whether it does.
    ///
    /// # Safety
    ///
    /// The arguments have the types of the entry point's.
    pub(super) unsafe fn recorded<A: KernelArgs>(
        &self,
        kernel: &Kernel<A>,
        config: LaunchConfig,
        args: A,
    ) -> Result<bool, DeviceError> {
        // Taken while it is changed: a kernel may have to be compiled, and other threads launch meanwhile.
        let Some(mut recording) = self.recordings.take() else {
            return Ok(false);
        };
        let added = match (&mut recording.so_far, &*self.backend) {
            (SoFar::Emulator(replays), _) => {
                let kernel = *kernel;
                // SAFETY: only `LaunchGraph::launch` calls it, and the contract is that of its caller.
                replays.push(Box::new(move |emulator| unsafe {
                    emulator.launch(&kernel, &config, args)
                }));
                Ok(())
            }
            #[cfg(feature = "cuda")]
            // SAFETY: the caller's contract.
            (SoFar::Cuda(chain), Backend::Cuda(cuda)) => args.with_pointers(|pointers| unsafe {
                cuda.record(chain, kernel.name(), &config, pointers)
            }),
            #[cfg(feature = "cuda")]
            (SoFar::Cuda(_), Backend::Emulator(_)) => unreachable!("the device has one back end"),
        };
        recording.launches += 1;
        self.recordings.put(recording);
        added.map(|()| true)
    }
}

impl LaunchGraph {
    /// How many launches it has.
    pub fn launches(&self) -> usize {
        self.launches
    }

    /// Launches what was recorded, with the arguments that it was recorded with. On a GPU it returns at once.
    ///
    /// # Errors
    ///
    /// Those of [`Device::launch`]; [`DeviceError::NotRecordable`] while this thread records on the device.
    ///
    /// # Safety
    ///
    /// What [`Device::launch`] asks for holds for each of the launches: above all, the buffers that they use are alive.
    pub unsafe fn launch(&self) -> Result<(), DeviceError> {
        self.device.recordings.refuse("the launch of a recording")?;
        match (&self.recorded, &*self.device.backend) {
            (Recorded::Emulator(replays), Backend::Emulator(emulator)) => {
                replays.iter().try_for_each(|replay| replay(emulator))
            }
            #[cfg(feature = "cuda")]
            // SAFETY: the caller's contract.
            (Recorded::Cuda(recorded), Backend::Cuda(cuda)) => unsafe {
                cuda.launch_recorded(recorded)
            },
            #[cfg(feature = "cuda")]
            _ => unreachable!("the device has one back end"),
        }
    }
}

#[cfg(feature = "cuda")]
impl Drop for LaunchGraph {
    fn drop(&mut self) {
        if let Backend::Cuda(cuda) = &*self.device.backend {
            // The graph is destroyed next, perhaps on another thread than the one that made it.
            let _ = cuda.enter();
        }
    }
}

impl fmt::Debug for LaunchGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LaunchGraph({} on {})", self.launches, self.device)
    }
}
