//! Copies from one GPU to another, ordered by the streams of both.

use super::driver::{self, StreamEvent};
use super::{Cuda, slice};
use crate::device::error::DeviceError;
use cust::context::{ContextHandle, CurrentContext};
use cust::memory::AsyncCopyDestination;

impl Cuda {
    /// Lets this GPU read the memory of `other`; returns whether the hardware can.
    pub fn enable_peer_access(&self, other: &Self) -> Result<bool, DeviceError> {
        let ordinal = |cuda: &Self| {
            cuda.enter()?;
            cuda.check("tell a context's device", CurrentContext::get_device())
        };
        let peer = ordinal(other)?;
        let this = ordinal(self)?;
        if self.context.get_inner() == other.context.get_inner() {
            return Ok(true);
        }
        driver::enable_peer_access(this, peer, other.context.get_inner())
            .map_err(|error| self.driver_error(error))
    }

    /// Copies from a GPU, which may be this one, after all earlier work of both and before all later work of both.
    ///
    /// # Safety
    ///
    /// The bytes lie inside one allocation of this device, and inside one of `source`.
    pub unsafe fn copy_from(
        &self,
        to: u64,
        source: &Self,
        from: u64,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let is_other = !std::ptr::eq(self, source);
        let (ready, done) = match is_other {
            true => (Some(source.event_after_all()?), Some(self.event()?)),
            false => (None, None),
        };
        self.enter()?;
        let failed = |error| self.driver_error(error);
        if let Some(ready) = &ready {
            ready.wait(&self.stream).map_err(failed)?;
        }
        let contexts = [&self.context, &source.context].map(ContextHandle::get_inner);
        if contexts[0] == contexts[1] {
            // SAFETY: the caller guarantees that both lie inside one allocation each.
            let (mut to, from) = unsafe { (slice(to, bytes), slice(from, bytes)) };
            // SAFETY: whoever frees or reuses either memory does so in the order of its stream, which waits.
            let result = unsafe { to.async_copy_from(&from, &self.stream) };
            self.check("copy on the device", result)?;
        } else {
            // SAFETY: the caller guarantees that the bytes lie inside allocations of these contexts.
            unsafe { driver::copy_from_peer([to, from], contexts, bytes, &self.stream) }
                .map_err(failed)?;
        }
        if let Some(done) = &done {
            done.record(&self.stream).map_err(failed)?;
            source.enter()?;
            (done.wait(&source.stream)).map_err(|error| source.driver_error(error))?;
        }
        Ok(())
    }

    fn event(&self) -> Result<StreamEvent, DeviceError> {
        self.enter()?;
        StreamEvent::new().map_err(|error| self.driver_error(error))
    }

    /// An event after all work so far.
    fn event_after_all(&self) -> Result<StreamEvent, DeviceError> {
        let event = self.event()?;
        (event.record(&self.stream)).map_err(|error| self.driver_error(error))?;
        Ok(event)
    }
}
