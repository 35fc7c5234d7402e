//! Scratch memory of a plan, which its runs share.

use super::error::DeviceError;
use super::{Device, DeviceBuffer};
use cuda_std::element::Element;
use cuda_std::memory::GlobalMut;
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

/// Memory that the launches of one run write and read. Runs share it, since the launches of one come after those of
/// the other on the device. It grows when a run needs more.
///
/// A recorded run has memory of its own, which its recording keeps: when the recording is launched, another run may be
/// between two of its launches.
#[derive(Debug)]
pub(crate) struct Scratch<T: Element>(Mutex<DeviceBuffer<T>>);

impl<T: Element> Scratch<T> {
    /// Without memory so far.
    pub fn new(device: &Device) -> Result<Self, DeviceError> {
        Ok(Self(Mutex::new(device.scratch(0)?)))
    }

    /// Makes room for `rows * cols` elements, so that the next run with as many cannot fail for want of memory. A
    /// recorded run allocates its own, so there is nothing to do for one.
    pub fn make_room(&self, rows: u64, cols: u64) -> Result<(), DeviceError> {
        let mut shared = self.lock();
        if shared.device().is_recording() {
            return Ok(());
        }
        grow(&mut shared, length(rows, cols))
    }

    /// Calls `launch` with memory for `rows * cols` elements. No other run launches meanwhile.
    pub fn with<R, E: From<DeviceError>>(
        &self,
        rows: u64,
        cols: u64,
        launch: impl FnOnce(GlobalMut<T>) -> Result<R, E>,
    ) -> Result<R, E> {
        let len = length(rows, cols);
        let mut shared = self.lock();
        let device = shared.device().clone();
        if device.is_recording() {
            drop(shared);
            return launch(device.scratch(len)?.mutable());
        }
        grow(&mut shared, len)?;
        launch(shared.mutable())
    }

    fn lock(&self) -> MutexGuard<'_, DeviceBuffer<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of elements of a matrix; one beyond all memory if it does not fit.
fn length(rows: u64, cols: u64) -> usize {
    usize::try_from(u128::from(rows) * u128::from(cols)).unwrap_or(usize::MAX)
}

/// Replaces a buffer by one of `len` elements if it has fewer. The old elements are freed first.
fn grow<T: Element>(buffer: &mut DeviceBuffer<T>, len: usize) -> Result<(), DeviceError> {
    if buffer.len() < len {
        let device = buffer.device().clone();
        *buffer = device.scratch(0)?;
        *buffer = device.scratch(len)?;
    }
    Ok(())
}
