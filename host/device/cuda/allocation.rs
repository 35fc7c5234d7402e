//! Device memory: had from the driver, and when it is freed kept for later allocations.

use super::{Cuda, Kept};
use crate::device::error::DeviceError;
use cust::error::CudaError;
use cust::memory::DevicePointer;
use std::sync::{MutexGuard, PoisonError};

/// Of the device's memory, what is freed and kept at most: one part in so many.
const KEPT_PART: u64 = 4;

/// Allocations have a multiple of as many bytes, the most that a thread copies at once. A copy of fewer says how many to read, but
/// compute-sanitizer takes it for a whole one.
const UNIT: u64 = 16;

impl Cuda {
    /// `bytes` bytes, at least one, aligned to 256 bytes and not initialised. The driver does not care what is in them.
    pub fn allocate(&self, bytes: u64, _element_size: u32) -> Result<u64, DeviceError> {
        self.enter()?;
        let out_of_memory = |free| DeviceError::OutOfMemory {
            device: self.properties.name.clone(),
            wanted: bytes,
            free,
        };
        let units = bytes.checked_next_multiple_of(UNIT);
        let size = units.and_then(|bytes| usize::try_from(bytes).ok());
        let size = size.ok_or_else(|| out_of_memory(None))?;
        if let Some(address) = self.kept().take(size as u64) {
            return Ok(address);
        }
        // SAFETY: the memory is handed on as an address, not as initialised bytes.
        let allocate = || unsafe { cust::memory::cuda_malloc::<u8>(size) };
        let mut result = allocate();
        if matches!(result, Err(CudaError::OutOfMemory)) && self.free_kept()? {
            result = allocate();
        }
        match result {
            Ok(pointer) => {
                self.kept().note(pointer.as_raw(), size as u64);
                Ok(pointer.as_raw())
            }
            Err(CudaError::OutOfMemory) => {
                Err(out_of_memory(self.memory().ok().map(|memory| memory.free)))
            }
            Err(error) => Err(self.failed("allocate device memory", error)),
        }
    }

    /// Gives an allocation up: it is kept for a later one, which is used after all that was launched before, or freed when
    /// that is done.
    pub fn free(&self, address: u64) -> Result<(), DeviceError> {
        let most = self.properties.memory_bytes.unwrap_or(0) / KEPT_PART;
        let too_many = self.kept().give(address, most);
        (too_many.into_iter()).try_for_each(|address| self.free_now(address))
    }

    /// Frees what is kept; whether there was something.
    pub(super) fn free_kept(&self) -> Result<bool, DeviceError> {
        let addresses = self.kept().clear();
        for &address in &addresses {
            self.free_now(address)?;
        }
        Ok(!addresses.is_empty())
    }

    fn free_now(&self, address: u64) -> Result<(), DeviceError> {
        self.synchronize()?;
        // SAFETY: nothing that was launched still runs, and the caller gives the address up.
        let result = unsafe { cust::memory::cuda_free(DevicePointer::<u8>::from_raw(address)) };
        self.check("free device memory", result)
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, Kept> {
        // A panic cannot leave it half changed.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
