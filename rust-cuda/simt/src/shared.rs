//! Shared memory of a block: a window of addresses, first dynamic shared memory, then static variables.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::buffer::Zeroed;
use crate::limits::{MAX_SHARED, MAX_STATIC_SHARED};
use crate::memory::AlignedBytes;
use crate::shadow::{ReadCell, WriteCell};

/// The first address of the window. It is not 0, so 0 is never valid, and it is a multiple of every allowed alignment.
pub(crate) const BASE: u64 = 1024;
/// The logarithm of the size of a granule of the race detector.
const GRANULE_BITS: u32 = 2;

pub(crate) struct Shared {
    /// Bytes of dynamic shared memory.
    dynamic: u32,
    /// Bytes of the window in use.
    size: Cell<u32>,
    /// Bytes of static variables, without padding.
    static_bytes: Cell<u32>,
    variables: RefCell<Vec<Variable>>,
    /// Allocated by the first block that uses shared memory.
    storage: OnceCell<Storage>,
}

/// A static variable. It has the same address in every block.
struct Variable {
    /// Identifies the variable in the source.
    site: usize,
    bytes: u32,
    align: u32,
    address: u64,
}

/// The contents of shared memory, and what the checks know about it.
pub(crate) struct Storage {
    data: Zeroed<AlignedBytes>,
    /// For each granule, a bit for each byte that the block has written.
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
            storage: OnceCell::new(),
        }
    }

    /// Marks all contents as never written, for a new block.
    pub fn restart(&self) {
        if let Some(storage) = self.storage.get() {
            for granule in 0..(self.size.get() as usize).div_ceil(1 << GRANULE_BITS) {
                storage.written(granule).store(0, Relaxed);
            }
        }
    }

    /// Clears the records of the race detector, because the clock starts again.
    pub fn reset_times(&self) {
        if let Some(storage) = self.storage.get() {
            storage.clear_records();
        }
    }

    /// Address and size in bytes of dynamic shared memory.
    pub fn dynamic(&self) -> (u64, u32) {
        (BASE, self.dynamic)
    }

    #[inline]
    pub fn size(&self) -> u64 {
        u64::from(self.size.get())
    }

    #[inline]
    pub fn storage(&self) -> &Storage {
        self.storage.get_or_init(Storage::new)
    }

    /// The address of a static variable.
    ///
    /// # Errors
    ///
    /// If there is too little shared memory: the name of the quantity that exceeds its limit, its value, and the limit.
    ///
    /// # Panics
    ///
    /// If a site is used with two sizes or alignments, or the alignment is no power of two up to 1024.
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
                "a static variable of {bytes} bytes aligned to {align} at a site that has one of {} bytes \
                 aligned to {}",
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

impl Storage {
    fn new() -> Self {
        let granules = MAX_SHARED as usize >> GRANULE_BITS;
        Self {
            data: Zeroed::new(MAX_SHARED as usize / size_of::<AlignedBytes>()),
            written: Zeroed::new(granules),
            writes: Zeroed::new(granules),
            reads: Zeroed::new(granules),
        }
    }

    /// A pointer to the first of `MAX_SHARED` valid bytes. All accesses to them are atomic accesses of `Word`s.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        self.data.pointer().cast()
    }

    fn written(&self, granule: usize) -> &AtomicU8 {
        // SAFETY: `at` checks the index and returns a valid pointer; the bits are only accessed as atomics.
        unsafe { &*self.written.at(granule) }
    }

    /// The granules of an access, and a bit for each byte that it touches in a granule.
    #[inline]
    pub fn granules(offset: u64, bytes: u64) -> (std::ops::RangeInclusive<usize>, u16) {
        const GRANULE: u64 = 1 << GRANULE_BITS;
        let (first, last) = (offset >> GRANULE_BITS, (offset + bytes - 1) >> GRANULE_BITS);
        let mask = ((1_u16 << bytes.min(GRANULE)) - 1) << (offset & (GRANULE - 1));
        (first as usize..=last as usize, mask)
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

    /// Marks bytes of a granule as never written.
    pub fn mark_unwritten(&self, granule: usize, bytes: u16) {
        let written = self.written(granule);
        written.store(written.load(Relaxed) & !(bytes as u8), Relaxed);
    }

    fn clear_records(&self) {
        for granule in 0..self.writes.len() {
            // SAFETY: `at` returns valid cells, only this worker accesses them, and zero bytes are valid (`Zeroable`).
            unsafe {
                self.writes.at(granule).write_bytes(0, 1);
                self.reads.at(granule).write_bytes(0, 1);
            }
        }
    }
}
