//! Scratch memory of a plan, which its runs share.

use super::error::DeviceError;
use super::{Device, DeviceBuffer};
use cuda_std::element::Element;
use cuda_std::memory::GlobalMut;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

impl Device {
    /// A buffer of `len` elements that only launches read and write: as [`uninitialized`](Device::uninitialized), and
    /// also while this thread records. Other buffers are refused there, since their owners could take for written what
    /// recorded launches have yet to write: the structure of a matrix, say.
    pub(crate) fn scratch<T: Element>(&self, len: usize) -> Result<DeviceBuffer<T>, DeviceError> {
        let buffer = DeviceBuffer::allocate(self, len)?;
        #[cfg(cuda)]
        if cfg!(debug_assertions) {
            buffer.fill_with_ones_on_cuda()?;
        }
        Ok(buffer)
    }
}

/// Memory that the launches of one run write and read. Runs of one stream share it, since the launches of one come
/// after those of the other. It grows when a run needs more.
///
/// A recorded run has memory of its own, which its recording keeps: when the recording is launched, another run may be
/// between two of its launches.
#[derive(Debug)]
pub(crate) struct Scratch<T: Element> {
    device: Device,
    /// By the number of the stream.
    of_streams: Mutex<HashMap<u64, DeviceBuffer<T>>>,
}

impl<T: Element> Scratch<T> {
    /// Without memory so far.
    pub fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            of_streams: Mutex::default(),
        }
    }

    /// Makes room for `rows * cols` elements, so that the next run with as many cannot fail for want of memory. A
    /// recorded run allocates its own, so there is nothing to do for one.
    pub fn make_room(&self, rows: u64, cols: u64) -> Result<(), DeviceError> {
        if self.device.is_recording() {
            return Ok(());
        }
        self.grown(&mut self.lock(), length(rows, cols)).map(drop)
    }

    /// Calls `launch` with memory for `rows * cols` elements. No other run launches meanwhile.
    pub fn with<R, E: From<DeviceError>>(
        &self,
        rows: u64,
        cols: u64,
        launch: impl FnOnce(GlobalMut<T>) -> Result<R, E>,
    ) -> Result<R, E> {
        let len = length(rows, cols);
        if self.device.is_recording() {
            return launch(self.device.scratch(len)?.mutable());
        }
        let mut of_streams = self.lock();
        let memory = self.grown(&mut of_streams, len)?;
        launch(memory.mutable())
    }

    /// The memory of this thread's stream, of at least `len` elements. What is too small is freed first.
    fn grown<'a>(
        &self,
        of_streams: &'a mut HashMap<u64, DeviceBuffer<T>>,
        len: usize,
    ) -> Result<&'a mut DeviceBuffer<T>, DeviceError> {
        let stream = self.device.streams.current().number();
        if of_streams
            .get(&stream)
            .is_none_or(|memory| memory.len() < len)
        {
            of_streams.remove(&stream);
            of_streams.insert(stream, self.device.scratch(len)?);
        }
        Ok(of_streams.get_mut(&stream).expect("there is one now"))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, DeviceBuffer<T>>> {
        self.of_streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of elements of a matrix; one beyond all memory if it does not fit.
fn length(rows: u64, cols: u64) -> usize {
    usize::try_from(u128::from(rows) * u128::from(cols)).unwrap_or(usize::MAX)
}
