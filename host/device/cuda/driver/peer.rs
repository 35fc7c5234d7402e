//! Copies inside a device and from one device to another.

use super::check;
use super::context::Context;
use super::stream::Stream;
use crate::device::error::DriverError;
use cust::sys::{self, CUresult};

impl Context {
    /// Lets this context read the memory of `peer`; returns whether it can now. Once enabled it stays so.
    pub fn enable_peer_access(&self, peer: &Self) -> Result<bool, DriverError> {
        if self.as_raw() == peer.as_raw() {
            return Ok(true);
        }
        // Ordinals are small.
        let [device, peer_device] = [self.ordinal()? as i32, peer.ordinal()? as i32];
        let mut can = 0;
        // SAFETY: the driver writes one integer.
        let result = unsafe { sys::cuDeviceCanAccessPeer(&raw mut can, device, peer_device) };
        check(
            "tell whether a device can read another one's memory",
            result,
        )?;
        if can == 0 {
            return Ok(false);
        }
        self.make_current()?;
        // SAFETY: the context is alive; the flags must be 0.
        let result = unsafe { sys::cuCtxEnablePeerAccess(peer.as_raw().cast(), 0) };
        match result {
            CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(true),
            // The hardware has no room for a further peer; the driver copies through the host then.
            CUresult::CUDA_ERROR_TOO_MANY_PEERS => Ok(false),
            _ => check("let a device read another one's memory", result).map(|()| true),
        }
    }
}

impl Stream {
    /// Begins a copy from the memory of `source`, which may be this stream's own context.
    ///
    /// # Safety
    ///
    /// The bytes at `to` lie inside an allocation of this stream's context, those at `from` inside one of `source`, and
    /// both stay there until the copy is done.
    pub unsafe fn copy_from_context(
        &self,
        to: u64,
        source: &Context,
        from: u64,
        bytes: usize,
    ) -> Result<(), DriverError> {
        let context = self.context();
        context.make_current()?;
        let stream = self.as_raw();
        if context.as_raw() == source.as_raw() {
            // SAFETY: the caller's contract.
            let result = unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream) };
            return check("copy on a device", result);
        }
        let [target, source] = [context.as_raw().cast(), source.as_raw().cast()];
        // SAFETY: the caller's contract; both contexts are alive.
        let result = unsafe { sys::cuMemcpyPeerAsync(to, target, from, source, bytes, stream) };
        check("copy from another device", result)
    }
}
