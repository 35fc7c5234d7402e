//! Scratch memory of a plan, which its runs share.

use super::error::DeviceError;
use super::{Device, DeviceBuffer};
use cuda_std::element::Element;
use cuda_std::memory::GlobalMut;
use std::sync::{Mutex, PoisonError};

impl Device {
    /// A buffer of `len` elements that only launches read and write: as [`uninitialized`](Device::uninitialized), and
    /// also while this thread records. Other buffers are refused there, since their owners could take for written what
    /// recorded launches have yet to write: the structure of a matrix, say.
    pub(crate) fn scratch<T: Element>(&self, len: usize) -> Result<DeviceBuffer<T>, DeviceError> {
        let buffer = DeviceBuffer::allocate(self, len)?;
        #[cfg(feature = "cuda")]
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

    /// Calls `launch` with memory for `rows * cols` elements. No other run launches meanwhile.
    pub fn with<R, E: From<DeviceError>>(
        &self,
        rows: u64,
        cols: u64,
        launch: impl FnOnce(GlobalMut<T>) -> Result<R, E>,
    ) -> Result<R, E> {
        let elements = u128::from(rows) * u128::from(cols);
        let len = usize::try_from(elements).unwrap_or(usize::MAX);
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let device = shared.device().clone();
        if device.is_recording() {
            drop(shared);
            return launch(device.scratch(len)?.mutable());
        }
        if shared.len() < len {
            // The old elements are freed first.
            *shared = device.scratch(0)?;
            *shared = device.scratch(len)?;
        }
        launch(shared.mutable())
    }
}
