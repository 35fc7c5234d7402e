//! Streams beside a device's own.

mod existing_context;
pub(super) mod queue;

use super::error::DeviceError;
use super::{Backend, Device};
use queue::Queue;
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
    kind: Kind,
    device: Device,
}

/// Whose a stream is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The device's own.
    Own,
    /// One that was made beside it.
    Made,
    /// One of someone else, who may destroy it when it is given back.
    #[cfg_attr(not(cuda), allow(dead_code, reason = "an emulator borrows none"))]
    Borrowed,
}

/// The streams of a device.
pub(super) struct Streams {
    own: Arc<Queue>,
    /// Whether there was ever another one: most programs have none, and look no further.
    any_beside: AtomicBool,
    beside: Mutex<Vec<Weak<Queue>>>,
    /// Made for handles that are dropped; the next handles get them. So there are never more than were wanted at once,
    /// however long what was used on one notes it.
    idle: Mutex<Vec<Arc<Queue>>>,
}

impl Streams {
    pub fn new(own: Arc<Queue>) -> Self {
        Self {
            own,
            any_beside: AtomicBool::new(false),
            beside: Mutex::default(),
            idle: Mutex::default(),
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

    fn idle(&self) -> MutexGuard<'_, Vec<Arc<Queue>>> {
        // A panic cannot leave it half changed.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue of that stream of someone else, if something has used it and notes that.
    #[cfg(cuda)]
    fn of_raw(&self, stream: *mut c_void) -> Option<Arc<Queue>> {
        let all = self
            .beside()
            .iter()
            .filter_map(Weak::upgrade)
            .collect::<Vec<_>>();
        all.into_iter().find(|queue| {
            let of_queue = queue.cuda().stream();
            of_queue.is_borrowed() && of_queue.as_raw() == stream.cast()
        })
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
        let idle = self.streams.idle().pop();
        if let Some(queue) = idle {
            return Ok(self.open_stream(queue, Kind::Made));
        }
        let queue = match &*self.backend {
            Backend::Emulator(_) => own.beside_of_emulator(),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => own.beside_of_cuda(cuda.new_queue()?),
        };
        self.streams.add(&queue);
        Ok(self.open_stream(queue, Kind::Made))
    }

    /// The device's own stream: where work goes outside any scope.
    pub fn own_stream(&self) -> Stream {
        Stream(Arc::new(OpenStream {
            queue: Arc::clone(&self.streams.own),
            kind: Kind::Own,
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
                if let Some(queue) = self.streams.of_raw(stream) {
                    cuda.lend_again(queue.cuda(), Box::new(owner))?;
                    return Ok(self.open_stream(queue, Kind::Borrowed));
                }
                // SAFETY: the caller's contract.
                let queue = unsafe { cuda.queue_of(stream, Box::new(owner)) };
                let queue = self.streams.own.beside_of_cuda(queue);
                self.streams.add(&queue);
                Ok(self.open_stream(queue, Kind::Borrowed))
            }
        }
    }

    fn open_stream(&self, queue: Arc<Queue>, kind: Kind) -> Stream {
        Stream(Arc::new(OpenStream {
            queue,
            kind,
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
        match self.kind {
            Kind::Own => {}
            Kind::Made => self.device.streams.idle().push(Arc::clone(&self.queue)),
            Kind::Borrowed => {
                #[cfg(cuda)]
                if self.queue.cuda().give_back().is_err() {
                    // The context is lost, or the driver has no memory for an event. The stream's work ends here.
                    let _ = self.queue.cuda().synchronize();
                }
            }
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, device) = (self.0.queue.number(), self.device().identity());
        write!(f, "Stream({number} of {device})")
    }
}
