//! Device memory: allocated by the driver, and put into a pool when it is freed.

use super::Cuda;
use super::memory_pool::MemoryPool;
use crate::device::buffer::uses::Users;
use crate::device::error::DeviceError;
use crate::device::stream::queue::Queue;
use cust::error::CudaError;
use cust::memory::DevicePointer;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

/// The size of an allocation is a multiple of this many bytes: the most that a thread copies at a time.
/// compute-sanitizer takes a copy of fewer bytes for a whole one.
const UNIT: u64 = 16;

impl Cuda {
    /// `bytes` bytes, at least one, aligned to 256 bytes and not initialised, for work in `queue`.
    pub fn allocate(
        &self,
        queue: &Queue,
        bytes: u64,
        _element_size: u32,
    ) -> Result<u64, DeviceError> {
        self.enter()?;
        let out_of_memory = |free| DeviceError::OutOfMemory {
            device: self.properties.name.clone(),
            wanted: bytes,
            free,
        };
        let units = bytes.checked_next_multiple_of(UNIT);
        let size = units.and_then(|bytes| usize::try_from(bytes).ok());
        let size = size.ok_or_else(|| out_of_memory(None))?;
        let pooled = self.pool().take(size as u64);
        if let Some((address, users)) = pooled {
            users.make_wait(queue);
            return Ok(address);
        }
        // SAFETY: the memory is handed on as an address, not as initialised bytes.
        let allocate = || unsafe { cust::memory::cuda_malloc::<u8>(size) };
        let mut result = allocate();
        if matches!(result, Err(CudaError::OutOfMemory)) && self.free_pool()? > 0 {
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

    /// Puts an allocation into the pool. A later owner's launches come after those of this owner's `users`. What the
    /// pool has no room for is freed when these are done.
    pub fn free(&self, address: u64, users: Users) -> Result<(), DeviceError> {
        let most = self.pool_limit.load(Ordering::Relaxed);
        let too_many = self.pool().give(address, users, most);
        self.free_now(too_many)
    }

    /// The bytes of all live allocations.
    pub fn allocated_bytes(&self) -> u64 {
        self.pool().live_bytes()
    }

    /// The most bytes that live allocations had since the last call.
    pub fn take_peak_bytes(&self) -> u64 {
        self.pool().take_peak_bytes()
    }

    /// The bytes of freed allocations in the pool.
    pub fn pool_bytes(&self) -> u64 {
        self.pool().bytes()
    }

    /// Sets the greatest size of the pool, and frees what is beyond it.
    pub fn set_pool_limit(&self, bytes: u64) -> Result<(), DeviceError> {
        self.pool_limit.store(bytes, Ordering::Relaxed);
        let too_many = self.pool().shrink(bytes);
        self.free_now(too_many)
    }

    /// Frees the pool; returns how many bytes that were.
    pub fn free_pool(&self) -> Result<u64, DeviceError> {
        let mut pool = self.pool();
        let (bytes, all) = (pool.bytes(), pool.shrink(0));
        drop(pool);
        self.free_now(all).map(|()| bytes)
    }

    /// Frees allocations when the work of their users is done. If one cannot be freed, the others are; the first error
    /// is returned.
    fn free_now(&self, allocations: Vec<(u64, Users)>) -> Result<(), DeviceError> {
        let free = |(address, users): (u64, Users)| {
            for queue in users.all() {
                self.synchronize(queue.cuda())?;
            }
            self.enter()?;
            // SAFETY: nothing that was launched still runs, and the caller gives the address up.
            let result = unsafe { cust::memory::cuda_free(DevicePointer::<u8>::from_raw(address)) };
            self.check("free device memory", result)
        };
        (allocations.into_iter().map(free)).fold(Ok(()), Result::and)
    }

    pub(super) fn pool(&self) -> MutexGuard<'_, MemoryPool<Users>> {
        // A panic cannot leave it half changed.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
