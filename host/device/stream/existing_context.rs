//! The CUDA context and stream of a device, and devices of a context that exists already.

use crate::device::Backend;
use crate::device::Device;
#[cfg(cuda)]
use crate::device::cuda;
use crate::device::error::{CudaUnavailable, DeviceError};
use std::any::Any;
use std::ffi::c_void;

impl Device {
    /// A GPU in a context that exists already, with a stream of it as the device's own: a `CUcontext` and a `CUstream`,
    /// as raw pointers. A null stream is the legacy default stream. Kernels are compiled into that context. Neither
    /// context nor stream is destroyed with the device.
    ///
    /// Most libraries, PyTorch, cudarc and `cust` among them, use the device's primary context. Such a context is
    /// current on a thread that has used the library, and `cuCtxGetCurrent` gives it.
    ///
    /// `owner` is dropped when nothing uses the context any more: pass what keeps context and stream alive, or `()`.
    ///
    /// # Errors
    ///
    /// Why the device does not serve.
    ///
    /// # Safety
    ///
    /// Context and stream live as long as `owner`, and at least as long as the device's clones, buffers, plans and
    /// streams. The stream is of that context, and is not being captured.
    #[cfg(cuda)]
    pub unsafe fn from_cuda_context(
        context: *mut c_void,
        stream: *mut c_void,
        owner: impl Any + Send + Sync,
    ) -> Result<Self, CudaUnavailable> {
        // SAFETY: the caller's contract.
        let cuda = unsafe { cuda::Cuda::of_context(context, stream, Box::new(owner))? };
        Ok(Self::new(Backend::Cuda(Box::new(cuda))))
    }

    /// The CUDA stream (a `CUstream`, which is also a `cudaStream_t`) of this thread's work on the device, for a
    /// library that launches its own kernels; `None` on the emulator. It is the device's own stream, or inside a
    /// [`Stream::scope`](crate::device::Stream::scope) that stream. The device's context is current on the calling
    /// thread afterwards.
    ///
    /// The device's own stream lives as long as the device's last clone or buffer. The library uses buffers whose
    /// pointers were taken on the same thread and stream; then the stream has waited for all other streams that use
    /// them.
    ///
    /// # Errors
    ///
    /// The driver's.
    pub fn cuda_stream(&self) -> Result<Option<*mut c_void>, DeviceError> {
        self.recordings.refuse("what other libraries launch")?;
        match &*self.backend {
            Backend::Emulator(_) => Ok(None),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => cuda.raw_stream(self.streams.current().cuda()).map(Some),
        }
    }

    /// The CUDA context of this device (a `CUcontext`); `None` on the emulator.
    pub fn cuda_context(&self) -> Option<*mut c_void> {
        match &*self.backend {
            Backend::Emulator(_) => None,
            #[cfg(cuda)]
            Backend::Cuda(cuda) => Some(cuda.raw_context()),
        }
    }

    /// The answer of a program without CUDA.
    ///
    /// # Errors
    ///
    /// [`CudaUnavailable::NotBuilt`].
    ///
    /// # Safety
    ///
    /// It does nothing.
    #[cfg(not(cuda))]
    pub unsafe fn from_cuda_context(
        _context: *mut c_void,
        _stream: *mut c_void,
        _owner: impl Any + Send + Sync,
    ) -> Result<Self, CudaUnavailable> {
        Err(CudaUnavailable::NotBuilt)
    }
}
