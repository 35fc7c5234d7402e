//! The emulator: device memory and launches.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::block::context::Stripes;
use crate::block::current::try_current;
use crate::counters::{CounterOptions, LaunchReport};
use crate::fault::Fault;
use crate::launch::machine::{Launch, Machine, Statistics};
use crate::launch::options::Options;
use crate::launch::panic::install_hook;
use crate::memory::MemoryError;
use crate::memory::allocations::Table;
use crate::memory::word::{copy_in, copy_out};
use crate::threads::fiber::Stacks;
use crate::types::{Checks, Progress};

/// An emulated GPU: device memory and launches.
///
/// Any thread may call its functions, but a kernel must not. Launches of one emulator run one after the other;
/// `allocate` and `free` wait for a running launch.
pub struct Emulator {
    options: Options,
    table: RwLock<Table>,
    /// The bytes of all live allocations. It is beside the lock, which a launch holds: the progress function may ask.
    allocated: AtomicU64,
    stripes: Stripes,
    stacks: Stacks,
    progress: Mutex<Option<Progress>>,
    /// The number of the last launch; locked while a launch runs.
    launches: Mutex<u32>,
    counters: Mutex<Option<CounterOptions>>,
    /// The reports that nobody has taken, the oldest first.
    reports: Mutex<Vec<LaunchReport>>,
}

impl fmt::Debug for Emulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emulator")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Emulator {
    /// An emulator with no memory allocated.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            table: RwLock::new(Table::new(options.memory)),
            allocated: AtomicU64::new(0),
            stripes: Stripes::new(),
            stacks: Stacks::new(),
            progress: Mutex::new(None),
            launches: Mutex::new(0),
            counters: Mutex::new(options.counters),
            reports: Mutex::default(),
        }
    }

    /// The options of the emulator.
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

    /// Allocates uninitialised device memory and returns its address, a multiple of 2^37, which no other emulator has.
    /// An allocation may have zero bytes, and up to 2^36. `granule` is the size of an element in bytes; races are
    /// detected for each granule.
    ///
    /// # Errors
    ///
    /// If the emulator or the host has not enough memory, the granule is not 1, 2, 4, 8 or 16, or 1023 other emulators
    /// have memory.
    pub fn allocate(&self, bytes: u64, granule: u32) -> Result<u64, MemoryError> {
        let full = self.options.checks == Checks::Full;
        let mut table = self.write_table();
        let address = table.allocate(bytes, granule, full)?;
        self.allocated.store(table.allocated(), Ordering::Relaxed);
        Ok(address)
    }

    /// Frees an allocation. Its addresses are not used again until 65536 more allocations have been freed.
    ///
    /// # Errors
    ///
    /// If the address is not the start of a live allocation.
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        let mut table = self.write_table();
        table.free(address)?;
        self.allocated.store(table.allocated(), Ordering::Relaxed);
        Ok(())
    }

    /// The bytes of all live allocations, as they were asked for.
    #[must_use]
    pub fn allocated(&self) -> u64 {
        assert_on_host();
        self.allocated.load(Ordering::Relaxed)
    }

    /// Copies bytes to the device.
    ///
    /// # Errors
    ///
    /// If the destination is not inside one live allocation; then nothing is copied.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        let table = self.read_table();
        let (allocation, offset) = table.find(address, bytes.len() as u64)?;
        // SAFETY: `find` has checked that the range lies in the allocation. All accesses to device memory are those
        // of `word`.
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
    /// If the source is not inside one live allocation, or, with [`Checks::Full`], if one of its bytes was never
    /// written; then nothing is copied. With [`Checks::BoundsOnly`], bytes that were never written read as zeros.
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
        // SAFETY: as in `write`.
        unsafe { copy_out(allocation.data().add(offset as usize), into) };
        Ok(())
    }

    /// Sets device memory to zero.
    ///
    /// # Errors
    ///
    /// If the range is not inside one live allocation; then nothing is written.
    pub fn zero(&self, address: u64, bytes: u64) -> Result<(), MemoryError> {
        let table = self.read_table();
        let (allocation, offset) = table.find(address, bytes)?;
        for start in (offset..offset + bytes).step_by(CHUNK) {
            let len = (offset + bytes - start).min(CHUNK as u64) as usize;
            // SAFETY: as in `write`.
            unsafe { copy_in(allocation.data().add(start as usize), &[0; CHUNK][..len]) };
        }
        if let Some(shadow) = &allocation.shadow {
            shadow.note_host_write(offset, bytes);
        }
        Ok(())
    }

    /// Copies bytes on the device. Bytes that were never written in the source are never written in the destination.
    ///
    /// # Errors
    ///
    /// If a range is not inside one live allocation, or if the ranges overlap; then nothing is copied.
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
            // SAFETY: as in `write`, for both ranges.
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

    /// Sets the function to which later launches report progress. A launch calls it at most about a thousand times,
    /// from the threads that run the launch.
    pub fn set_progress(&self, progress: Option<Progress>) {
        let replaced = std::mem::replace(&mut *self.progress(), progress);
        // Not while it is locked: what the function owns may use the emulator when it is dropped.
        drop(replaced);
    }

    fn progress(&self) -> MutexGuard<'_, Option<Progress>> {
        lock(&self.progress)
    }

    /// Sets what later launches count; `None`: nothing.
    pub fn set_counters(&self, counters: Option<CounterOptions>) {
        *lock(&self.counters) = counters;
    }

    /// Removes and returns the reports of all counted launches since the last call, the oldest first. A launch that
    /// ends with a fault has none.
    pub fn take_reports(&self) -> Vec<LaunchReport> {
        std::mem::take(&mut *lock(&self.reports))
    }

    /// The report of the last counted launch, unless it was taken.
    #[must_use]
    pub fn last_report(&self) -> Option<LaunchReport> {
        lock(&self.reports).last().cloned()
    }

    /// Calls `thread` once for each thread of the grid, and returns when all calls have returned.
    ///
    /// - A kernel that takes more steps than [`Options`](crate::Options) allow is a fault. Lanes that spin on an atomic
    ///   operation let other lanes run, and after a while further blocks, at most 16 on one OS thread.
    /// - A thread has a stack of 64 KiB. A kernel that needs more ends the process, with a message that names it.
    /// - A fault unwinds all threads that still wait. So kernels need `panic = "unwind"`, must not be `extern "C"`, and
    ///   their destructors must not call functions of [`lane`](crate::lane).
    /// - The first launch wraps the panic hook of the process. A panic in a kernel then becomes a [`Fault`] and is not
    ///   printed.
    ///
    /// # Errors
    ///
    /// The fault of the lowest block number among those found. With one worker and
    /// [`Schedule::InOrder`](crate::Schedule::InOrder) it is the same in every run. Memory keeps what the launch wrote
    /// before the fault.
    ///
    /// # Panics
    ///
    /// If a kernel calls it.
    #[track_caller]
    pub fn launch(
        &self,
        launch: Launch<'_>,
        thread: &(dyn Fn() + Sync),
    ) -> Result<Statistics, Fault> {
        let location = Location::caller();
        assert_on_host();
        install_hook();
        // Dropped after the locks: what the function owns may use the emulator then.
        let progress = self.progress().clone();
        #[cfg(unix)]
        crate::launch::stack_overflow::install_handler();
        let mut launches = lock(&self.launches);
        // Zero is the tag of records that hold no access.
        *launches = launches.wrapping_add(1).max(1);
        let machine = Machine {
            options: &self.options,
            table: &self.read_table(),
            stripes: &self.stripes,
            stacks: &self.stacks,
            progress: progress.clone(),
            tag: *launches,
            counters: *lock(&self.counters),
        };
        let (statistics, report) = machine.launch(launch, thread, location)?;
        lock(&self.reports).extend(report);
        Ok(statistics)
    }
}

/// Locks a value that a panic cannot leave half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// Bytes that a copy moves at a time.
const CHUNK: usize = 4096;

#[track_caller]
fn assert_on_host() {
    assert!(
        try_current().is_none(),
        "a kernel cannot call the host's side of the emulator"
    );
}
