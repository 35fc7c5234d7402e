//! The emulator: device memory, and launches on it.

use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::context::Stripes;
use crate::current::try_current;
use crate::fault::Fault;
use crate::fiber::Stacks;
use crate::launch::{Launch, Machine, Statistics};
use crate::memory::{MemoryError, Table};
use crate::panic::install_hook;
use crate::types::{Checks, Options};
use crate::word::{copy_in, copy_out};

/// Is told how many of a launch's blocks are done, of how many.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// A GPU that is none: memory and launches.
///
/// Its functions may be called from any thread, but not from a kernel.
pub struct Emulator {
    options: Options,
    table: RwLock<Table>,
    stripes: Stripes,
    stacks: Stacks,
    progress: Mutex<Option<Progress>>,
    /// The number of the last launch; held while one runs.
    launches: Mutex<u32>,
}

impl fmt::Debug for Emulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emulator")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Emulator {
    /// An emulator without any memory allocated.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            table: RwLock::new(Table::new()),
            stripes: Stripes::new(),
            stacks: Stacks::new(),
            progress: Mutex::new(None),
            launches: Mutex::new(0),
        }
    }

    /// The options it was made with.
    #[must_use]
    pub fn options(&self) -> Options {
        self.options
    }

    fn read_table(&self) -> RwLockReadGuard<'_, Table> {
        assert_on_host();
        self.table
            .read()
            .unwrap_or_else(|poison| poison.into_inner())
    }

    fn write_table(&self) -> RwLockWriteGuard<'_, Table> {
        assert_on_host();
        self.table
            .write()
            .unwrap_or_else(|poison| poison.into_inner())
    }

    /// Allocates device memory whose content is not initialised, and gives its address, a multiple of 2^40. `granule`
    /// is the size of its elements, the unit in which races are looked for. Zero bytes are an allocation too.
    ///
    /// # Errors
    ///
    /// When the host has not enough memory, or the granule is not 1, 2, 4, 8 or 16.
    pub fn allocate(&self, bytes: u64, granule: u32) -> Result<u64, MemoryError> {
        let full = self.options.checks == Checks::Full;
        self.write_table().allocate(bytes, granule, full)
    }

    /// Frees an allocation. Its addresses are known as freed until 65536 more allocations have been freed.
    ///
    /// # Errors
    ///
    /// When the address is not the start of a live allocation.
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        self.write_table().free(address)
    }

    /// Copies bytes to the device.
    ///
    /// # Errors
    ///
    /// When they would not lie wholly in one live allocation; then nothing is copied.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        let table = self.read_table();
        let (allocation, offset) = table.find(address, bytes.len() as u64)?;
        // SAFETY: `find` has checked the range, and device memory is touched through words only.
        unsafe { copy_in(allocation.data().add(offset as usize), bytes) };
        if let Some(shadow) = &allocation.shadow {
            shadow.note_host_write(offset, bytes.len() as u64);
        }
        Ok(())
    }

    /// Copies bytes from the device.
    ///
    /// # Errors
    ///
    /// When they do not lie wholly in one live allocation, or with [`Checks::Full`] when neither the host nor a kernel
    /// has written one of them; then nothing is copied. With [`Checks::BoundsOnly`] what was never written reads as
    /// zeros.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let table = self.read_table();
        let (allocation, offset) = table.find(address, into.len() as u64)?;
        if let Some(shadow) = &allocation.shadow
            && let Some(unwritten) = shadow.first_uninitialised(offset, into.len() as u64)
        {
            return Err(MemoryError::Uninitialised {
                address: address - offset + unwritten,
                offset: unwritten,
                size: allocation.size(),
            });
        }
        // SAFETY: as for `write`.
        unsafe { copy_out(allocation.data().add(offset as usize), into) };
        Ok(())
    }

    /// Sets device memory to zero.
    ///
    /// # Errors
    ///
    /// When the range does not lie wholly in one live allocation; then nothing is written.
    pub fn zero(&self, address: u64, bytes: u64) -> Result<(), MemoryError> {
        let table = self.read_table();
        let (allocation, offset) = table.find(address, bytes)?;
        for start in (offset..offset + bytes).step_by(CHUNK) {
            let len = (offset + bytes - start).min(CHUNK as u64) as usize;
            // SAFETY: as for `write`.
            unsafe { copy_in(allocation.data().add(start as usize), &[0; CHUNK][..len]) };
        }
        if let Some(shadow) = &allocation.shadow {
            shadow.note_host_write(offset, bytes);
        }
        Ok(())
    }

    /// Copies bytes on the device. What was never written in the source counts as not written in the destination.
    ///
    /// # Errors
    ///
    /// When one of the ranges does not lie wholly in one live allocation, or they overlap; then nothing is copied.
    pub fn copy(&self, destination: u64, source: u64, bytes: u64) -> Result<(), MemoryError> {
        let table = self.read_table();
        let (to, to_offset) = table.find(destination, bytes)?;
        let (from, from_offset) = table.find(source, bytes)?;
        if destination.abs_diff(source) < bytes {
            return Err(MemoryError::Overlap {
                destination,
                source_address: source,
                bytes,
            });
        }
        let mut buffer = [0; CHUNK];
        for start in (0..bytes).step_by(CHUNK) {
            let part = &mut buffer[..(bytes - start).min(CHUNK as u64) as usize];
            // SAFETY: as for `write`.
            unsafe {
                copy_out(from.data().add((from_offset + start) as usize), part);
                copy_in(to.data().add((to_offset + start) as usize), part);
            }
        }
        if let (Some(to), Some(from)) = (&to.shadow, &from.shadow) {
            to.note_host_copy(to_offset, from, from_offset, bytes);
        }
        Ok(())
    }

    /// Sets who is told of the progress of the launches that follow, a thousand times a launch at most, from the
    /// threads that run it.
    pub fn set_progress(&self, progress: Option<Progress>) {
        *self.progress() = progress;
    }

    fn progress(&self) -> MutexGuard<'_, Option<Progress>> {
        self.progress
            .lock()
            .unwrap_or_else(|poison| poison.into_inner())
    }

    /// Calls `thread` once for each thread of the grid, and returns when all have returned.
    ///
    /// # Errors
    ///
    /// The first fault: that of the lowest block number among those found. With one worker and
    /// [`Schedule::InOrder`](crate::Schedule::InOrder) it is the same each time. What the launch wrote until then
    /// stays written.
    ///
    /// # Panics
    ///
    /// When a kernel calls it.
    #[track_caller]
    pub fn launch(
        &self,
        launch: Launch<'_>,
        thread: &(dyn Fn() + Sync),
    ) -> Result<Statistics, Fault> {
        let location = Location::caller();
        assert_on_host();
        install_hook();
        let mut launches = self
            .launches
            .lock()
            .unwrap_or_else(|poison| poison.into_inner());
        // Zero is the tag of records that were never written.
        *launches = launches.wrapping_add(1).max(1);
        let machine = Machine {
            options: &self.options,
            table: &self.read_table(),
            stripes: &self.stripes,
            stacks: &self.stacks,
            progress: self.progress().clone(),
            tag: *launches,
        };
        machine.launch(launch, thread, location)
    }
}

/// Bytes that copies on the device move at a time.
const CHUNK: usize = 4096;

#[track_caller]
fn assert_on_host() {
    assert!(
        try_current().is_none(),
        "a kernel cannot call the host's side of the emulator"
    );
}
