//! The context of a device: its primary one, or one that belongs to someone else.

use super::{check, describe};
use crate::device::error::DriverError;
use cust::device::Device;
use cust::sys::{self, CUcontext};
use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::ptr;

/// A context. What is made in it keeps it.
pub(in crate::device) struct Context {
    raw: CUcontext,
    /// Retained, if it is the device's primary context and was opened here.
    _primary: Option<cust::context::Context>,
    /// What keeps a context of someone else alive; dropped last.
    _owner: Option<Box<dyn Any + Send + Sync>>,
}

// SAFETY: a context may be used from all threads; each makes it current first.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// The primary context of a device.
    pub fn primary(device: Device) -> Result<Self, DriverError> {
        let primary = cust::context::Context::new(device)
            .map_err(|error| describe("retain a device's primary context", error))?;
        Ok(Self {
            raw: primary.as_raw(),
            _primary: Some(primary),
            _owner: None,
        })
    }

    /// A context of someone else, which is not destroyed here; `owner` is dropped when nothing here uses it any more.
    ///
    /// # Safety
    ///
    /// The context lives as long as `owner`.
    pub unsafe fn borrowed(raw: *mut c_void, owner: Box<dyn Any + Send + Sync>) -> Self {
        Self {
            raw: raw.cast(),
            _primary: None,
            _owner: Some(owner),
        }
    }

    pub fn as_raw(&self) -> *mut c_void {
        self.raw.cast()
    }

    /// Makes it current on this thread: a few nanoseconds if it is already.
    pub fn make_current(&self) -> Result<(), DriverError> {
        // SAFETY: the context is alive.
        check("make a context current", unsafe {
            sys::cuCtxSetCurrent(self.raw)
        })
    }

    /// The ordinal of its device.
    pub fn ordinal(&self) -> Result<u32, DriverError> {
        self.make_current()?;
        let mut device = 0;
        // SAFETY: the driver writes one integer; a context is current.
        check("tell the device of a context", unsafe {
            sys::cuCtxGetDevice(ptr::from_mut(&mut device))
        })?;
        // Ordinals are not negative.
        Ok(u32::try_from(device).unwrap_or(0))
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({:?})", self.raw)
    }
}
