//! Device memory: allocated by the driver, and put into a pool when it is freed.

use super::Cuda;
use super::memory_pool::MemoryPool;
use crate::device::error::DeviceError;
use cust::error::CudaError;
use cust::memory::DevicePointer;
use std::sync::{MutexGuard, PoisonError};

/// The pool holds at most the device's memory divided by this.
const POOL_PARTS: u64 = 4;

/// The size of an allocation is a multiple of this many bytes: the most that a thread copies at a time.
/// compute-sanitizer takes a copy of fewer bytes for a whole one.
const UNIT: u64 = 16;

impl Cuda {
    /// `bytes` bytes, at least one, aligned to 256 bytes and not initialised.
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
        if let Some(address) = self.pool().take(size as u64) {
            return Ok(address);
        }
        // SAFETY: the memory is handed on as an address, not as initialised bytes.
        let allocate = || unsafe { cust::memory::cuda_malloc::<u8>(size) };
        let mut result = allocate();
        if matches!(result, Err(CudaError::OutOfMemory)) && self.free_pool()? {
            result = allocate();
        }
        match result {
            Ok(pointer) => {
                self.pool().note(pointer.as_raw(), size as u64);
                Ok(pointer.as_raw())
            }
            Err(CudaError::OutOfMemory) => {
                Err(out_of_memory(self.memory().ok().map(|memory| memory.free)))
            }
            Err(error) => Err(self.failed("allocate device memory", error)),
        }
    }

    /// Puts an allocation into the pool. A later owner's launches come after those of this owner. What the pool has
    /// no room for is freed when all launches are done.
    pub fn free(&self, address: u64) -> Result<(), DeviceError> {
        let most = self.properties.memory_bytes.unwrap_or(0) / POOL_PARTS;
        let too_many = self.pool().give(address, most);
        (too_many.into_iter()).try_for_each(|address| self.free_now(address))
    }

    /// The bytes of all live allocations.
    pub fn allocated_bytes(&self) -> u64 {
        self.pool().live_bytes()
    }

    /// Frees the pool; returns whether there was anything in it.
    pub(super) fn free_pool(&self) -> Result<bool, DeviceError> {
        let addresses = self.pool().clear();
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

    pub(super) fn pool(&self) -> MutexGuard<'_, MemoryPool> {
        // A panic cannot leave it half changed.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
