//! Streams beside a device's own.

use super::error::DeviceError;
use super::queue::Queue;
use super::{Backend, Device};
use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A stream: work of a device that runs in order, beside the work of its other streams. See [`Device::new_stream`].
///
/// Clones are the same stream.
#[derive(Clone)]
pub struct Stream(Arc<OpenStream>);

/// A stream until the last handle of it is dropped.
struct OpenStream {
    queue: Arc<Queue>,
    /// Whether it belongs to someone else, who may destroy it then.
    borrowed: bool,
    device: Device,
}

/// The streams of a device.
pub(super) struct Streams {
    own: Arc<Queue>,
    /// Whether there was ever another one: most programs have none, and look no further.
    any_beside: AtomicBool,
    beside: Mutex<Vec<Weak<Queue>>>,
}

impl Streams {
    pub fn new(own: Arc<Queue>) -> Self {
        Self {
            own,
            any_beside: AtomicBool::new(false),
            beside: Mutex::default(),
        }
    }

    /// Whether the device has more streams than its own.
    pub fn are_many(&self) -> bool {
        // Work on another stream came here through a buffer or a handle, and with it what its thread has seen.
        self.any_beside.load(Ordering::Relaxed)
    }

    /// The stream on which this thread's work is.
    pub fn current(&self) -> Arc<Queue> {
        if self.are_many() {
            self.own.current()
        } else {
            Arc::clone(&self.own)
        }
    }

    fn add(&self, queue: &Arc<Queue>) {
        let mut beside = self.beside();
        beside.retain(|queue| queue.strong_count() > 0);
        beside.push(Arc::downgrade(queue));
        self.any_beside.store(true, Ordering::Relaxed);
    }

    /// All streams.
    #[cfg(cuda)]
    pub fn all(&self) -> Vec<Arc<Queue>> {
        let beside = self.beside();
        let beside = beside.iter().filter_map(Weak::upgrade);
        std::iter::once(Arc::clone(&self.own))
            .chain(beside)
            .collect()
    }

    fn beside(&self) -> MutexGuard<'_, Vec<Weak<Queue>>> {
        // A panic cannot leave it half changed.
        self.beside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device {
    /// A stream beside this device's own. Work of different streams may run at the same time on a GPU; the emulator
    /// does everything in the order of the calls.
    ///
    /// What a thread does with this device inside [`Stream::scope`] goes to that stream: runs, launches, copies,
    /// allocations. Everything else goes to the device's own stream.
    ///
    /// Streams share buffers and plans. Nothing has to be synchronised: a stream that reads a buffer first waits for
    /// the stream that has written it, and one that writes it for all that have used it. Runs of one plan share its
    /// matrix, so they may run at the same time on two streams.
    ///
    /// ```
    /// use warprow::{Device, Spmm, SpmmOptions, generate};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Device::open()?;
    /// let a = generate::uniform::<f32>(100, 100, 900, 1)?;
    /// let spmm = Spmm::plan(&device, a.view(), SpmmOptions::default())?;
    /// let x = device.upload(&vec![1.0; 100 * 8])?;
    /// let mut y = [device.zeros(100 * 8)?, device.zeros(100 * 8)?];
    /// let streams = [device.new_stream()?, device.new_stream()?];
    /// for (stream, y) in streams.iter().zip(&mut y) {
    ///     stream.scope(|| spmm.run(&x, 8, y))?;
    /// }
    /// // The device's own stream waits for both.
    /// assert_eq!(y[0].download()?, y[1].download()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn new_stream(&self) -> Result<Stream, DeviceError> {
        let own = &self.streams.own;
        let queue = match &*self.backend {
            Backend::Emulator(_) => own.beside_of_emulator(),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => own.beside_of_cuda(cuda.new_queue()?),
        };
        Ok(self.open_stream(queue, false))
    }

    /// The device's own stream: where work goes outside any scope.
    pub fn own_stream(&self) -> Stream {
        Stream(Arc::new(OpenStream {
            queue: Arc::clone(&self.streams.own),
            borrowed: false,
            device: self.clone(),
        }))
    }

    /// A stream of this device that belongs to someone else: a `CUstream`, which is also a `cudaStream_t`, such as
    /// PyTorch's `torch.cuda.current_stream().cuda_stream`. Null is the legacy default stream. It is not destroyed
    /// here; `owner` is dropped when nothing uses it any more. Pass what keeps the stream alive, or `()`.
    ///
    /// Work that others put into the stream keeps its order with the work that goes there from here. Buffers of this
    /// device are ordered among all its streams, as with [`new_stream`](Self::new_stream).
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoCudaStream`] on an emulator.
    ///
    /// # Safety
    ///
    /// The stream is of this device's context, and is not being captured. It lives until `owner` is dropped, or else
    /// until the handle, its clones, and timers that were started on it are dropped.
    pub unsafe fn stream_from_raw(
        &self,
        stream: *mut c_void,
        owner: impl Any + Send + Sync,
    ) -> Result<Stream, DeviceError> {
        match &*self.backend {
            Backend::Emulator(_) => {
                let (_, _, device) = (stream, owner, self.identity().to_owned());
                Err(DeviceError::NoCudaStream { device })
            }
            #[cfg(cuda)]
            Backend::Cuda(cuda) => {
                // SAFETY: the caller's contract.
                let queue = unsafe { cuda.queue_of(stream, Box::new(owner)) };
                Ok(self.open_stream(self.streams.own.beside_of_cuda(queue), true))
            }
        }
    }

    fn open_stream(&self, queue: Arc<Queue>, borrowed: bool) -> Stream {
        self.streams.add(&queue);
        Stream(Arc::new(OpenStream {
            queue,
            borrowed,
            device: self.clone(),
        }))
    }
}

impl Stream {
    /// Calls `work`. What this thread does with the stream's device meanwhile goes to this stream. A scope inside it
    /// takes over until it ends.
    pub fn scope<R>(&self, work: impl FnOnce() -> R) -> R {
        self.0.queue.enter(work)
    }

    /// The device that it is a stream of.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Waits until all work of this stream is done.
    ///
    /// # Errors
    ///
    /// A launch that failed since; [`DeviceError::NotRecordable`] while this thread records.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.scope(|| self.0.device.synchronize_stream())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        #[cfg(cuda)]
        if let Backend::Cuda(_) = &*self.device.backend
            && self.borrowed
        {
            let queue = self.queue.cuda();
            if queue.end().is_err() {
                // The context is lost, or the driver has no memory for an event. The stream's work ends here.
                let _ = queue.synchronize();
            }
        }
        #[cfg(not(cuda))]
        let _ = self.borrowed;
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, device) = (self.0.queue.number(), self.device().identity());
        write!(f, "Stream({number} of {device})")
    }
}
