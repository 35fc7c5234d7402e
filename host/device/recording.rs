//! Launches that are recorded once and launched together many times: a CUDA graph on a GPU.

use super::buffer::Memory;
use super::buffer::uses::Access;
use super::emulator::EmulatorBackend;
use super::error::DeviceError;
use super::{Backend, Device, DeviceSlice};
use cuda_std::element::Element;
use cuda_std::kernel::{Kernel, KernelArgs};
use cuda_std::launch::LaunchConfig;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// Launches of a device, recorded by [`Device::record`]. On a GPU they are one CUDA graph: one call of the driver for
/// all of them, and less time between one and the next.
///
/// It keeps the memory of every buffer that its launches use, also if the buffer or its plan is dropped.
pub struct LaunchGraph {
    // Dropped before the device, whose context it needs. Locked by a launch: a thread waits until another one has
    // launched all of it.
    recorded: Mutex<Recorded>,
    /// The kernel of each launch.
    kernels: Vec<&'static str>,
    memory: UsedMemory,
    device: Device,
}

enum Recorded {
    Emulator(Vec<RecordedLaunch>),
    #[cfg(cuda)]
    Cuda(super::cuda::CudaGraph),
}

/// A launch with its arguments, on the emulator.
type RecordedLaunch = Box<dyn Fn(&EmulatorBackend) -> Result<(), DeviceError> + Send + Sync>;

/// The memory whose addresses launches have, by its [`identity`], and what they do with it.
type UsedMemory = HashMap<usize, (Arc<Memory>, Access)>;

/// What tells memory from all other that is kept. Its address does not: an empty buffer of lent memory has any.
fn identity(memory: &Arc<Memory>) -> usize {
    Arc::as_ptr(memory).addr()
}

/// A recording that has not ended.
struct Recording {
    /// The kernel of each launch.
    kernels: Vec<&'static str>,
    memory: UsedMemory,
    so_far: SoFar,
}

enum SoFar {
    Emulator(Vec<RecordedLaunch>),
    #[cfg(cuda)]
    Cuda(super::cuda::CudaRecording),
}

/// The recordings of a device that have not ended, one for each thread. Launches of other threads are not recorded.
#[derive(Default)]
pub(super) struct Recordings {
    of_threads: Mutex<HashMap<ThreadId, Recording>>,
    /// How many there are: most calls need no lock to learn that there are none.
    count: AtomicUsize,
}

impl Recordings {
    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, Recording>> {
        // A panic cannot leave it half changed.
        (self.of_threads.lock()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a recording of this thread, until what it returns is dropped.
    fn begin(&self, recording: Recording) -> Open<'_> {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.put(recording);
        Open(self)
    }

    fn any(&self) -> bool {
        // A thread sees its own count.
        self.count.load(Ordering::Relaxed) > 0
    }

    fn take(&self) -> Option<Recording> {
        if !self.any() {
            return None;
        }
        self.lock().remove(&thread::current().id())
    }

    fn put(&self, recording: Recording) {
        self.lock().insert(thread::current().id(), recording);
    }

    /// Whether this thread records.
    pub fn is_open(&self) -> bool {
        self.any() && self.lock().contains_key(&thread::current().id())
    }

    /// Checks that this thread does not record; `what` cannot be recorded.
    pub fn refuse(&self, what: &'static str) -> Result<(), DeviceError> {
        if self.is_open() {
            return Err(DeviceError::NotRecordable { what });
        }
        Ok(())
    }

    /// Keeps memory for the recording of this thread, if there is one: a launch is about to have its address. Returns
    /// whether there is one.
    pub fn keep(&self, memory: &Arc<Memory>, access: Access) -> bool {
        if !self.any() {
            return false;
        }
        let mut recordings = self.lock();
        let Some(recording) = recordings.get_mut(&thread::current().id()) else {
            return false;
        };
        let kept = recording.memory.entry(identity(memory));
        let (_, kept_access) = kept.or_insert_with(|| (Arc::clone(memory), access));
        // What leaves most to be waited for counts.
        if access == Access::WritePart || *kept_access == Access::Read {
            *kept_access = access;
        }
        true
    }
}

/// A recording of this thread, which ends when it is dropped.
struct Open<'a>(&'a Recordings);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.take();
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Device {
    /// Records the launches that `launch` makes on this device and this thread, for [`LaunchGraph::launch`]. They do
    /// not run, and anything other than a launch fails: allocations, copies, waiting. Other threads are not affected.
    ///
    /// The recording keeps the memory of each buffer whose pointer `launch` takes, with
    /// [`read_only`](super::DeviceBuffer::read_only) or [`mutable`](super::DeviceBuffer::mutable), as the runs of plans
    /// do: it is freed after the recording.
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
        assert!(!self.is_recording(), "a recording inside another one");
        let so_far = match &*self.backend {
            Backend::Emulator(_) => SoFar::Emulator(Vec::new()),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => SoFar::Cuda(cuda.start_recording()?),
        };
        let open = self.recordings.begin(Recording {
            kernels: Vec::new(),
            memory: UsedMemory::new(),
            so_far,
        });
        launch()?;
        let recording = open.0.take().expect("nobody else ends it");
        let recorded = match (recording.so_far, &*self.backend) {
            (SoFar::Emulator(replays), _) => Recorded::Emulator(replays),
            #[cfg(cuda)]
            (SoFar::Cuda(recording), Backend::Cuda(cuda)) => {
                Recorded::Cuda(cuda.end_recording(recording)?)
            }
            #[cfg(cuda)]
            (SoFar::Cuda(_), Backend::Emulator(_)) => unreachable!("the device has one back end"),
        };
        Ok(LaunchGraph {
            recorded: Mutex::new(recorded),
            kernels: recording.kernels,
            memory: recording.memory,
            device: self.clone(),
        })
    }

    /// Whether this thread records launches of the device. If so, it can neither copy nor wait.
    pub(crate) fn is_recording(&self) -> bool {
        self.recordings.is_open()
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
            #[cfg(cuda)]
            // SAFETY: the caller guarantees that the arguments have the types of the entry point's.
            (SoFar::Cuda(chain), Backend::Cuda(cuda)) => args.with_pointers(|pointers| unsafe {
                cuda.record(chain, kernel.name(), &config, pointers)
            }),
            #[cfg(cuda)]
            (SoFar::Cuda(_), Backend::Emulator(_)) => unreachable!("the device has one back end"),
        };
        recording.kernels.push(kernel.name());
        self.recordings.put(recording);
        added.map(|()| true)
    }
}

impl LaunchGraph {
    /// How many launches it has.
    pub fn launches(&self) -> usize {
        self.kernels.len()
    }

    /// Gives up the memory of a slice, whose owner makes sure that it is alive in a launch.
    pub(crate) fn release<T: Element>(&mut self, slice: DeviceSlice<'_, T>) {
        if let Some(memory) = slice.memory() {
            self.memory.remove(&identity(memory));
        }
    }

    /// Launches what was recorded, with the arguments that it was recorded with, on the stream of this thread. On a GPU
    /// it returns at once. Launches of one recording come one after the other, from whatever threads and streams.
    ///
    /// # Errors
    ///
    /// Those of [`Device::launch`]; [`DeviceError::NotRecordable`] while this thread records on the device.
    ///
    /// # Safety
    ///
    /// What [`Device::launch`] asks for holds for each of the launches. The recording keeps the memory of buffers alive
    /// whose pointers were taken inside [`Device::record`] and on its thread. Buffers whose pointers were taken before,
    /// or on another thread, must still be alive, and so must memory of others
    /// ([`Device::slice_from_raw`]).
    pub unsafe fn launch(&self) -> Result<(), DeviceError> {
        let what = "the launch of a recording";
        self.device.recordings.refuse(what)?;
        self.device.refuse_during_progress(what)?;
        let recorded = self.recorded.lock();
        for (memory, access) in self.memory.values() {
            memory.use_now(*access);
        }
        match (
            &*recorded.unwrap_or_else(PoisonError::into_inner),
            &*self.device.backend,
        ) {
            (Recorded::Emulator(replays), Backend::Emulator(emulator)) => {
                replays.iter().try_for_each(|replay| replay(emulator))?;
            }
            #[cfg(cuda)]
            // SAFETY: the caller guarantees the contracts of all recorded launches.
            (Recorded::Cuda(recorded), Backend::Cuda(cuda)) => unsafe {
                cuda.launch_recorded(self.device.streams.current().cuda(), recorded)?;
            },
            #[cfg(cuda)]
            _ => unreachable!("the device has one back end"),
        }
        self.device.launch_logs.add(&self.kernels);
        Ok(())
    }
}

#[cfg(cuda)]
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
        let device = self.device.identity();
        write!(f, "LaunchGraph({} on {device})", self.launches())
    }
}
