//! The pool of freed device memory, and its limit.

use crate::device::error::DeviceError;
use crate::device::{Backend, Device};

impl Device {
    /// Bytes of freed memory that the device keeps for later buffers. On an emulator 0: it keeps none.
    pub fn pool_bytes(&self) -> u64 {
        match &*self.backend {
            Backend::Emulator(_) => 0,
            #[cfg(cuda)]
            Backend::Cuda(cuda) => cuda.pool_bytes(),
        }
    }

    /// Sets the greatest size of the pool, and frees what is beyond it. Default: a quarter of the device's memory. With
    /// 0 every buffer is freed at once, and each allocation and each drop of a buffer then waits for the driver.
    ///
    /// Memory of the pool is free for this handle of the device alone, until memory runs out. Set a limit if other
    /// handles, libraries or processes use the same GPU.
    ///
    /// # Errors
    ///
    /// A launch that failed before.
    pub fn set_pool_limit(&self, bytes: u64) -> Result<(), DeviceError> {
        match &*self.backend {
            Backend::Emulator(_) => {
                let _ = bytes;
                Ok(())
            }
            #[cfg(cuda)]
            Backend::Cuda(cuda) => cuda.set_pool_limit(bytes),
        }
    }

    /// Frees all memory of the pool, when the work that uses it is done. Returns how many bytes that were.
    ///
    /// # Errors
    ///
    /// A launch that failed before.
    pub fn trim_pool(&self) -> Result<u64, DeviceError> {
        match &*self.backend {
            Backend::Emulator(_) => Ok(0),
            #[cfg(cuda)]
            Backend::Cuda(cuda) => cuda.free_pool(),
        }
    }
}
