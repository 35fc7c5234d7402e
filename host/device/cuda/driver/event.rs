//! Events in streams.

use super::check;
use super::context::Context;
use super::stream::Stream;
use crate::device::error::DriverError;
use cust::sys::{self, CUevent, CUevent_flags, CUresult};
use std::ffi::c_uint;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// An event in a stream: other streams wait for it, and so does the host. `cust` destroys an event while streams still
/// wait for it.
#[derive(Debug)]
pub(in crate::device) struct Event {
    raw: CUevent,
    context: Arc<Context>,
}

// SAFETY: the driver orders what is done with an event, from whatever threads it comes.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event that is not recorded yet, to wait for.
    pub fn new(context: &Arc<Context>) -> Result<Self, DriverError> {
        Self::with_flags(context, CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    /// An event that is not recorded yet and notes the time.
    pub fn timed(context: &Arc<Context>) -> Result<Self, DriverError> {
        Self::with_flags(context, CUevent_flags::CU_EVENT_DEFAULT)
    }

    fn with_flags(context: &Arc<Context>, flags: CUevent_flags) -> Result<Self, DriverError> {
        context.make_current()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the driver writes one pointer.
        check("create an event", unsafe {
            sys::cuEventCreate(&raw mut raw, flags as c_uint)
        })?;
        Ok(Self {
            raw,
            context: Arc::clone(context),
        })
    }

    /// Records the event after all work in `stream`.
    pub fn record(&self, stream: &Stream) -> Result<(), DriverError> {
        self.context.make_current()?;
        // SAFETY: `self` keeps the event alive until it is dropped, and `stream` is borrowed, so both exist.
        let result = unsafe { sys::cuEventRecord(self.raw, stream.as_raw()) };
        check("record an event", result)
    }

    /// Makes `stream` wait for the last recording.
    pub fn make_wait(&self, stream: &Stream) -> Result<(), DriverError> {
        self.context.make_current()?;
        // SAFETY: both are alive; the flags must be 0.
        let result = unsafe { sys::cuStreamWaitEvent(stream.as_raw(), self.raw, 0) };
        check("wait for an event", result)
    }

    /// Waits until the work before the last recording is done.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        self.context.make_current()?;
        // SAFETY: the event is alive.
        let result = unsafe { sys::cuEventSynchronize(self.raw) };
        check("finish what was launched", result)
    }

    /// Whether the work before the last recording is done.
    pub fn is_done(&self) -> Result<bool, DriverError> {
        self.context.make_current()?;
        // SAFETY: the event is alive.
        match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => check("finish what was launched", result).map(|()| true),
        }
    }

    /// The time between two recordings of timed events, which are both done.
    pub fn elapsed_since(&self, start: &Self) -> Result<Duration, DriverError> {
        let mut milliseconds = 0.0;
        // SAFETY: both events are alive; the driver writes one number.
        let result = unsafe {
            sys::cuEventElapsedTime(ptr::from_mut(&mut milliseconds), start.raw, self.raw)
        };
        check("tell the time between events", result)?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds) / 1e3))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // If that fails, the context is lost, and the event with it.
        let _ = self.context.make_current();
        // SAFETY: the event is alive; streams that wait for it go on waiting.
        unsafe { sys::cuEventDestroy_v2(self.raw) };
    }
}
