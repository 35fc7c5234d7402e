//! A block's shared memory: a window that the dynamic part starts and the static variables follow.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::buffer::Zeroed;
use crate::limits::{MAX_SHARED, MAX_STATIC_SHARED};
use crate::memory::Line;
use crate::shadow::{ReadCell, WriteCell};

/// Where the window starts: not at zero, so that zero is no address, and aligned for anything.
pub(crate) const BASE: u64 = 1024;
/// Bytes of a granule of the race detector, as a power of two.
const SHIFT: u32 = 2;

pub(crate) struct Shared {
    dynamic: u32,
    /// Bytes of the window in use.
    size: Cell<u32>,
    static_bytes: Cell<u32>,
    variables: RefCell<Vec<Variable>>,
    /// Had from the host by the first block that uses shared memory.
    store: OnceCell<Store>,
}

/// A static variable: one for each site of the source, in every block at the same address.
struct Variable {
    site: usize,
    bytes: u32,
    align: u32,
    address: u64,
}

pub(crate) struct Store {
    data: Zeroed<Line>,
    /// For each granule a bit for each byte that the block has written.
    written: Zeroed<AtomicU8>,
    pub writes: Zeroed<WriteCell>,
    pub reads: Zeroed<ReadCell>,
}

impl Shared {
    pub fn new(dynamic: u32) -> Self {
        Self {
            dynamic,
            size: Cell::new(dynamic),
            static_bytes: Cell::new(0),
            variables: RefCell::new(Vec::new()),
            store: OnceCell::new(),
        }
    }

    /// Makes the contents those of a new block: undefined.
    pub fn restart(&self) {
        if let Some(store) = self.store.get() {
            for granule in 0..(self.size.get() as usize).div_ceil(1 << SHIFT) {
                store.written(granule).store(0, Relaxed);
            }
        }
    }

    /// Empties the records of races, when the clock starts anew.
    pub fn reset_times(&self) {
        if let Some(store) = self.store.get() {
            store.clear_records();
        }
    }

    pub fn dynamic(&self) -> (u64, u32) {
        (BASE, self.dynamic)
    }

    #[inline]
    pub fn size(&self) -> u64 {
        u64::from(self.size.get())
    }

    #[inline]
    pub fn store(&self) -> &Store {
        self.store.get_or_init(Store::new)
    }

    /// The address of a static variable, or what exceeds which limit.
    ///
    /// # Panics
    ///
    /// When a site comes with two sizes, or an alignment is no power of two up to 1024.
    #[track_caller]
    pub fn variable(
        &self,
        site: usize,
        bytes: u32,
        align: u32,
    ) -> Result<u64, (&'static str, u64, u32)> {
        let mut variables = self.variables.borrow_mut();
        if let Some(variable) = variables.iter().find(|variable| variable.site == site) {
            assert!(
                variable.bytes == bytes && variable.align == align,
                "a static variable of {bytes} bytes aligned to {align} at a site that has one of {} bytes aligned to {}",
                variable.bytes,
                variable.align
            );
            return Ok(variable.address);
        }
        assert!(
            align.is_power_of_two() && u64::from(align) <= BASE,
            "an alignment of {align} bytes: it must be a power of two, {BASE} at most"
        );
        let offset = u64::from(self.size.get()).next_multiple_of(u64::from(align));
        let end = offset + u64::from(bytes);
        let statics = u64::from(self.static_bytes.get()) + u64::from(bytes);
        if statics > u64::from(MAX_STATIC_SHARED) {
            return Err(("the static shared memory", statics, MAX_STATIC_SHARED));
        }
        if end > u64::from(MAX_SHARED) {
            return Err(("the static and dynamic shared memory", end, MAX_SHARED));
        }
        self.static_bytes.set(statics as u32);
        self.size.set(end as u32);
        let address = BASE + offset;
        variables.push(Variable {
            site,
            bytes,
            align,
            address,
        });
        Ok(address)
    }
}

impl Store {
    fn new() -> Self {
        let granules = MAX_SHARED as usize >> SHIFT;
        Self {
            data: Zeroed::new(MAX_SHARED as usize / size_of::<Line>()),
            written: Zeroed::new(granules),
            writes: Zeroed::new(granules),
            reads: Zeroed::new(granules),
        }
    }

    /// The first byte; `MAX_SHARED` bytes from it on are valid, and are touched through `Word` only.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        self.data.pointer().cast()
    }

    fn written(&self, granule: usize) -> &AtomicU8 {
        // SAFETY: `at` checks the index; the marks are atomics, only ever used as such.
        unsafe { &*self.written.at(granule) }
    }

    /// The granules of an access, and the bytes it touches in each.
    #[inline]
    pub fn granules(offset: u64, bytes: u64) -> (std::ops::RangeInclusive<usize>, u16) {
        let granules = (offset >> SHIFT) as usize..=((offset + bytes - 1) >> SHIFT) as usize;
        let mask = ((1_u16 << bytes.min(1 << SHIFT)) - 1) << (offset & ((1 << SHIFT) - 1));
        (granules, mask)
    }

    #[inline]
    pub fn is_written(&self, granule: usize, bytes: u16) -> bool {
        u16::from(self.written(granule).load(Relaxed)) & bytes == bytes
    }

    #[inline]
    pub fn note_write(&self, granule: usize, bytes: u16) {
        let written = self.written(granule);
        written.store(written.load(Relaxed) | bytes as u8, Relaxed);
    }

    /// What is there may no longer be read.
    pub fn forget(&self, granule: usize, bytes: u16) {
        let written = self.written(granule);
        written.store(written.load(Relaxed) & !(bytes as u8), Relaxed);
    }

    fn clear_records(&self) {
        for granule in 0..self.writes.len() {
            // SAFETY: the cells belong to one worker, and all bytes zero is a value of theirs.
            unsafe {
                self.writes.at(granule).write_bytes(0, 1);
                self.reads.at(granule).write_bytes(0, 1);
            }
        }
    }
}
