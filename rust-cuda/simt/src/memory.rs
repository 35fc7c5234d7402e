//! Device memory. An address consists of a slot, which identifies an allocation, and an offset in that allocation; it
//! is never a host pointer.

mod error;

pub use error::MemoryError;

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::buffer::{Zeroable, Zeroed};
use crate::shadow::{ReadCell, WriteCell};

/// Number of bits of the offset in an address; the upper bits are the slot.
pub(crate) const OFFSET_BITS: u32 = 40;
pub(crate) const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
const SLOTS: usize = 1 << (u64::BITS - OFFSET_BITS);
/// Maximum number of freed slots that are not used again, so that accesses to them are reported.
const MAX_FREED_SLOTS: usize = 1 << 16;

/// 16 bytes with an alignment of 16: the unit of host memory for allocations.
#[repr(C, align(16))]
pub(crate) struct AlignedBytes([u8; 16]);

// SAFETY: every byte may be zero, and the type needs no drop.
unsafe impl Zeroable for AlignedBytes {}
// SAFETY: 0 is a valid value of an atomic integer, which needs no drop.
unsafe impl Zeroable for AtomicU8 {}

/// One allocation.
pub(crate) struct Allocation {
    data: Zeroed<AlignedBytes>,
    size: u64,
    /// `None` with [`Checks::BoundsOnly`](crate::Checks::BoundsOnly).
    pub shadow: Option<Shadow>,
}

impl Allocation {
    fn try_new(size: u64, granule: u32, full: bool) -> Option<Self> {
        let data = Zeroed::try_new(usize::try_from(size.div_ceil(16)).ok()?)?;
        let shadow = if full {
            Some(Shadow::try_new(size, granule)?)
        } else {
            None
        };
        Some(Self { data, size, shadow })
    }

    #[inline]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// A pointer to the first of `size` valid bytes. All accesses to them are atomic accesses of `Word`s.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        self.data.pointer().cast()
    }
}

/// Shadow memory: what the checks know about each granule of an allocation.
pub(crate) struct Shadow {
    /// The logarithm of the size of a granule.
    granule_bits: u32,
    /// The flags below for each granule.
    flags: Zeroed<AtomicU8>,
    /// For each page of granules, whether a flag of the current launch is set.
    dirty_pages: Zeroed<AtomicU8>,
    /// Records of the race detector. They are allocated at the first access that is not a read-only load.
    cells: OnceLock<(Zeroed<WriteCell>, Zeroed<ReadCell>)>,
}

/// Flag: the granule was written at some time.
const INITIALISED: u8 = 1;
/// Flag: this launch has read the granule through a read-only pointer.
const READ_ONLY: u8 = 2;
/// Flag: this launch has written the granule.
const WRITTEN: u8 = 4;
/// The logarithm of the number of granules of a page.
const PAGE_BITS: usize = 12;

impl Shadow {
    fn try_new(size: u64, granule: u32) -> Option<Self> {
        let granules = usize::try_from(size.div_ceil(u64::from(granule))).ok()?;
        Some(Self {
            granule_bits: granule.trailing_zeros(),
            flags: Zeroed::try_new(granules)?,
            dirty_pages: Zeroed::try_new(granules.div_ceil(1 << PAGE_BITS))?,
            cells: OnceLock::new(),
        })
    }

    /// The granule that contains `offset`.
    #[inline]
    pub fn granule(&self, offset: u64) -> usize {
        (offset >> self.granule_bits) as usize
    }

    /// A bit for each byte of a granule that an access of `bytes` at `offset` touches; it is the same in each of its
    /// granules.
    #[inline]
    pub fn bytes_in_granule(&self, offset: u64, bytes: u64) -> u16 {
        let granule = 1_u64 << self.granule_bits;
        let within = offset & (granule - 1);
        (((1_u32 << bytes.min(granule)) - 1) << within) as u16
    }

    /// The records of the race detector; `None` if the host has not enough memory.
    pub fn cells(&self) -> Option<(&Zeroed<WriteCell>, &Zeroed<ReadCell>)> {
        if self.cells.get().is_none() {
            let granules = self.flags.len();
            let cells = (Zeroed::try_new(granules)?, Zeroed::try_new(granules)?);
            // If another worker was faster, its cells are used and these are dropped.
            let _ = self.cells.set(cells);
        }
        self.cells.get().map(|(writes, reads)| (writes, reads))
    }

    /// The bytes of host memory that [`Shadow::cells`] needs.
    pub fn cell_bytes(&self) -> u64 {
        let cell = size_of::<WriteCell>() + size_of::<ReadCell>();
        self.flags.len() as u64 * cell as u64
    }

    #[inline]
    fn flag(&self, granule: usize) -> &AtomicU8 {
        // SAFETY: `at` checks the index and returns a valid pointer; the flags are only accessed as atomics.
        unsafe { &*self.flags.at(granule) }
    }

    fn mark_page(&self, granule: usize) {
        // SAFETY: as in `flag`.
        unsafe { &*self.dirty_pages.at(granule >> PAGE_BITS) }.store(1, Relaxed);
    }

    #[inline]
    pub fn is_initialised(&self, granule: usize) -> bool {
        self.flag(granule).load(Relaxed) & INITIALISED != 0
    }

    /// Notes a read-only load. Returns false if this launch has written the granule.
    #[inline]
    pub fn note_read_only(&self, granule: usize) -> bool {
        let flag = self.flag(granule);
        if flag.load(Relaxed) & (READ_ONLY | WRITTEN) == READ_ONLY {
            return true;
        }
        self.mark_page(granule);
        flag.fetch_or(READ_ONLY, Relaxed) & WRITTEN == 0
    }

    /// Notes a write. Returns false if this launch has read the granule through a read-only pointer.
    #[inline]
    pub fn note_write(&self, granule: usize) -> bool {
        let (flag, noted) = (self.flag(granule), INITIALISED | WRITTEN);
        if flag.load(Relaxed) == noted {
            return true;
        }
        self.mark_page(granule);
        flag.fetch_or(noted, Relaxed) & READ_ONLY == 0
    }

    /// Notes that the host has written `bytes` at `offset`.
    pub fn note_host_write(&self, offset: u64, bytes: u64) {
        if bytes > 0 {
            for granule in self.granule(offset)..=self.granule(offset + bytes - 1) {
                self.flag(granule).fetch_or(INITIALISED, Relaxed);
            }
        }
    }

    /// The offset of the first of `bytes` bytes from `offset` that was never written, if any.
    pub fn first_uninitialised(&self, offset: u64, bytes: u64) -> Option<u64> {
        if bytes == 0 {
            return None;
        }
        (self.granule(offset)..=self.granule(offset + bytes - 1))
            .find(|&granule| !self.is_initialised(granule))
            .map(|granule| offset.max((granule as u64) << self.granule_bits))
    }

    /// Notes that the host has copied `bytes` from `source_offset` in another allocation to `offset`. A granule counts
    /// as written if all its source bytes do.
    pub fn note_host_copy(&self, offset: u64, source: &Self, source_offset: u64, bytes: u64) {
        let end = offset + bytes;
        let mut start = offset;
        while start < end {
            let granule = self.granule(start);
            let next = ((granule as u64 + 1) << self.granule_bits).min(end);
            let came_from = source_offset + (start - offset);
            if source
                .first_uninitialised(came_from, next - start)
                .is_none()
            {
                self.flag(granule).fetch_or(INITIALISED, Relaxed);
            } else {
                self.flag(granule).fetch_and(!INITIALISED, Relaxed);
            }
            start = next;
        }
    }

    /// Clears the flags of the current launch.
    fn end_launch(&self) {
        for page in 0..self.dirty_pages.len() {
            // SAFETY: as in `flag`.
            if unsafe { &*self.dirty_pages.at(page) }.swap(0, Relaxed) != 0 {
                for granule in page << PAGE_BITS..self.flags.len().min((page + 1) << PAGE_BITS) {
                    self.flag(granule).fetch_and(INITIALISED, Relaxed);
                }
            }
        }
    }
}

/// A slot of the table.
pub(crate) enum Entry {
    /// Never used.
    Vacant,
    Live(Box<Allocation>),
    Freed,
}

/// The table of all allocations, indexed by the slot of an address.
pub(crate) struct Table {
    /// The first entry stays vacant, so that no address is less than 2^40.
    entries: Vec<Entry>,
    /// Freed slots, the oldest first.
    freed: VecDeque<usize>,
    /// The most bytes of all live allocations.
    memory: u64,
    /// The bytes of all live allocations.
    allocated: u64,
}

impl Table {
    /// A table of no allocations; all together may have `memory` bytes.
    pub fn new(memory: Option<u64>) -> Self {
        Self {
            entries: vec![Entry::Vacant],
            freed: VecDeque::new(),
            memory: memory.unwrap_or(u64::MAX),
            allocated: 0,
        }
    }

    /// The bytes of all live allocations.
    pub fn allocated(&self) -> u64 {
        self.allocated
    }

    #[inline]
    pub fn entry(&self, address: u64) -> Option<&Entry> {
        self.entries.get((address >> OFFSET_BITS) as usize)
    }

    pub fn allocate(&mut self, bytes: u64, granule: u32, full: bool) -> Result<u64, MemoryError> {
        if !matches!(granule, 1 | 2 | 4 | 8 | 16) {
            return Err(MemoryError::Granule { granule });
        }
        let (allocated, memory) = (self.allocated, self.memory);
        if bytes > memory - allocated {
            return Err(MemoryError::MemoryExceeded {
                bytes,
                allocated,
                memory,
            });
        }
        let slot = if self.freed.len() >= MAX_FREED_SLOTS {
            self.freed[0]
        } else {
            self.entries.len()
        };
        let allocation = (bytes <= OFFSET_MASK / 2 && slot < SLOTS)
            .then(|| Allocation::try_new(bytes, granule, full))
            .flatten()
            .ok_or(MemoryError::OutOfMemory { bytes })?;
        let live = Entry::Live(Box::new(allocation));
        if slot == self.entries.len() {
            self.entries.push(live);
        } else {
            self.freed.pop_front();
            self.entries[slot] = live;
        }
        self.allocated += bytes;
        Ok((slot as u64) << OFFSET_BITS)
    }

    pub fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        let (allocation, _) = self.find(address, 0)?;
        let bytes = allocation.size();
        let offset = address & OFFSET_MASK;
        if offset != 0 {
            return Err(MemoryError::NotTheStart { address, offset });
        }
        let slot = (address >> OFFSET_BITS) as usize;
        self.entries[slot] = Entry::Freed;
        self.allocated -= bytes;
        self.freed.push_back(slot);
        Ok(())
    }

    /// The allocation that contains `bytes` bytes at `address`, and their offset in it.
    pub fn find(&self, address: u64, bytes: u64) -> Result<(&Allocation, u64), MemoryError> {
        let allocation = match self.entry(address) {
            Some(Entry::Live(allocation)) => allocation,
            Some(Entry::Freed) => return Err(MemoryError::Freed { address }),
            Some(Entry::Vacant) | None => return Err(MemoryError::UnknownAddress { address }),
        };
        let (offset, size) = (address & OFFSET_MASK, allocation.size);
        if bytes > size || offset > size - bytes {
            return Err(MemoryError::OutOfBounds {
                bytes,
                offset,
                size,
            });
        }
        Ok((allocation, offset))
    }

    /// Clears what the checks noted for the launch that has ended.
    pub fn end_launch(&self) {
        for entry in &self.entries {
            if let Entry::Live(allocation) = entry
                && let Some(shadow) = &allocation.shadow
            {
                shadow.end_launch();
            }
        }
    }
}
