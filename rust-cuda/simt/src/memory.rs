//! Device memory: allocations behind addresses that are a tag and an offset, never a host pointer.

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::buffer::{Zeroable, Zeroed};
use crate::shadow::{ReadCell, WriteCell};

/// Bits of an address that are the offset; the rest is the allocation's slot.
pub(crate) const OFFSET_BITS: u32 = 40;
pub(crate) const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
const SLOTS: usize = 1 << (u64::BITS - OFFSET_BITS);
/// How many freed allocations are remembered as freed before the oldest one's addresses are given out again.
const REMEMBERED: usize = 1 << 16;

/// A host call on device memory that cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The host has not that much memory.
    #[error("no memory on the host for an allocation of {bytes} bytes and its bookkeeping")]
    OutOfMemory {
        /// The bytes wanted.
        bytes: u64,
    },
    /// A granule that no element has.
    #[error("a granule of {granule} bytes: it must be 1, 2, 4, 8 or 16")]
    Granule {
        /// The granule.
        granule: u32,
    },
    /// An address that belongs to no allocation.
    #[error("address {address:#x} belongs to no allocation")]
    UnknownAddress {
        /// The address.
        address: u64,
    },
    /// An address in an allocation that was freed.
    #[error("address {address:#x} belongs to an allocation that was freed")]
    Freed {
        /// The address.
        address: u64,
    },
    /// A range that is not wholly in one allocation.
    #[error("{bytes} bytes at offset {offset} of an allocation of {size} bytes")]
    OutOfBounds {
        /// The bytes wanted.
        bytes: u64,
        /// Where they start in the allocation.
        offset: u64,
        /// The allocation's bytes.
        size: u64,
    },
    /// A read of what neither the host nor a kernel has written.
    #[error(
        "nothing was ever written at offset {offset} of an allocation of {size} bytes, address {address:#x}"
    )]
    Uninitialised {
        /// The first address that was not written.
        address: u64,
        /// Its offset in the allocation.
        offset: u64,
        /// The allocation's bytes.
        size: u64,
    },
    /// An address to free that is not the start of an allocation.
    #[error(
        "address {address:#x} is {offset} bytes into an allocation: only its start can be freed"
    )]
    NotTheStart {
        /// The address.
        address: u64,
        /// Its offset in the allocation.
        offset: u64,
    },
    /// A copy between ranges that overlap.
    #[error(
        "a copy of {bytes} bytes from {source_address:#x} to {destination:#x}: the ranges overlap"
    )]
    Overlap {
        /// The address copied to.
        destination: u64,
        /// The address copied from.
        source_address: u64,
        /// The bytes.
        bytes: u64,
    },
}

/// The unit in which memory is had from the host, for its alignment.
#[repr(C, align(16))]
pub(crate) struct Line([u8; 16]);

// SAFETY: plain bytes.
unsafe impl Zeroable for Line {}
// SAFETY: an atomic integer.
unsafe impl Zeroable for AtomicU8 {}

/// One allocation.
pub(crate) struct Allocation {
    data: Zeroed<Line>,
    size: u64,
    /// `None` when only bounds are checked.
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

    /// The first byte; `size` bytes from it on are valid, and are touched through `Word` only.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        self.data.pointer().cast()
    }
}

/// What is known of an allocation's granules.
pub(crate) struct Shadow {
    shift: u32,
    /// A byte of the flags below for each granule.
    flags: Zeroed<AtomicU8>,
    /// Not zero for each page of granules that a launch has marked.
    marked: Zeroed<AtomicU8>,
    /// Only words that kernels touch other than by read-only loads need these.
    cells: OnceLock<(Zeroed<WriteCell>, Zeroed<ReadCell>)>,
}

/// The granule was written at some time.
const INITIALISED: u8 = 1;
/// The granule was read through a read-only pointer in this launch.
const READ_ONLY: u8 = 2;
/// The granule was written in this launch.
const WRITTEN: u8 = 4;
/// Granules of a page, as a power of two.
const PAGE: usize = 12;

impl Shadow {
    fn try_new(size: u64, granule: u32) -> Option<Self> {
        let granules = usize::try_from(size.div_ceil(u64::from(granule))).ok()?;
        Some(Self {
            shift: granule.trailing_zeros(),
            flags: Zeroed::try_new(granules)?,
            marked: Zeroed::try_new(granules.div_ceil(1 << PAGE))?,
            cells: OnceLock::new(),
        })
    }

    /// The granule that `offset` is in.
    #[inline]
    pub fn granule(&self, offset: u64) -> usize {
        (offset >> self.shift) as usize
    }

    /// The bytes that an access of `bytes` at `offset` touches in each of its granules, a bit each.
    #[inline]
    pub fn bytes_in_granule(&self, offset: u64, bytes: u64) -> u16 {
        let granule = 1_u64 << self.shift;
        let within = offset & (granule - 1);
        (((1_u32 << bytes.min(granule)) - 1) << within) as u16
    }

    pub fn cells(&self) -> Option<(&Zeroed<WriteCell>, &Zeroed<ReadCell>)> {
        if self.cells.get().is_none() {
            let granules = self.flags.len();
            let cells = (Zeroed::try_new(granules)?, Zeroed::try_new(granules)?);
            // Another worker may have been faster: then its cells are the ones.
            let _ = self.cells.set(cells);
        }
        self.cells.get().map(|(writes, reads)| (writes, reads))
    }

    /// The bytes that [`Shadow::cells`] takes of the host.
    pub fn cell_bytes(&self) -> u64 {
        let cell = size_of::<WriteCell>() + size_of::<ReadCell>();
        self.flags.len() as u64 * cell as u64
    }

    #[inline]
    fn flag(&self, granule: usize) -> &AtomicU8 {
        // SAFETY: `at` checks the index; the flags are atomics, only ever used as such.
        unsafe { &*self.flags.at(granule) }
    }

    fn mark_page(&self, granule: usize) {
        // SAFETY: as for the flags.
        unsafe { &*self.marked.at(granule >> PAGE) }.store(1, Relaxed);
    }

    #[inline]
    pub fn is_initialised(&self, granule: usize) -> bool {
        self.flag(granule).load(Relaxed) & INITIALISED != 0
    }

    /// Notes a read-only load; false when this launch has written the granule.
    #[inline]
    pub fn note_read_only(&self, granule: usize) -> bool {
        let flag = self.flag(granule);
        if flag.load(Relaxed) & (READ_ONLY | WRITTEN) == READ_ONLY {
            return true;
        }
        self.mark_page(granule);
        flag.fetch_or(READ_ONLY, Relaxed) & WRITTEN == 0
    }

    /// Notes a write; false when this launch has read the granule through a read-only pointer.
    #[inline]
    pub fn note_write(&self, granule: usize) -> bool {
        let (flag, noted) = (self.flag(granule), INITIALISED | WRITTEN);
        if flag.load(Relaxed) == noted {
            return true;
        }
        self.mark_page(granule);
        flag.fetch_or(noted, Relaxed) & READ_ONLY == 0
    }

    /// The host has written `bytes` at `offset`.
    pub fn note_host_write(&self, offset: u64, bytes: u64) {
        if bytes > 0 {
            for granule in self.granule(offset)..=self.granule(offset + bytes - 1) {
                self.flag(granule).fetch_or(INITIALISED, Relaxed);
            }
        }
    }

    /// The offset of the first byte of `bytes` at `offset` that was never written.
    pub fn first_uninitialised(&self, offset: u64, bytes: u64) -> Option<u64> {
        if bytes == 0 {
            return None;
        }
        (self.granule(offset)..=self.granule(offset + bytes - 1))
            .find(|&granule| !self.is_initialised(granule))
            .map(|granule| offset.max((granule as u64) << self.shift))
    }

    /// The host has copied `bytes` from `source_offset` of the allocation of `source` to `offset`: a granule counts as
    /// written if all that came into it does.
    pub fn note_host_copy(&self, offset: u64, source: &Self, source_offset: u64, bytes: u64) {
        let end = offset + bytes;
        let mut start = offset;
        while start < end {
            let granule = self.granule(start);
            let next = ((granule as u64 + 1) << self.shift).min(end);
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

    /// Forgets what belongs to one launch.
    fn end_launch(&self) {
        for page in 0..self.marked.len() {
            // SAFETY: as for the flags.
            if unsafe { &*self.marked.at(page) }.swap(0, Relaxed) != 0 {
                for granule in page << PAGE..self.flags.len().min((page + 1) << PAGE) {
                    self.flag(granule).fetch_and(INITIALISED, Relaxed);
                }
            }
        }
    }
}

pub(crate) enum Entry {
    /// Never given out.
    Vacant,
    Live(Box<Allocation>),
    Freed,
}

/// All allocations; an address leads to its entry by its upper bits.
pub(crate) struct Table {
    /// The first entry stays vacant, so that no address is below 2^40.
    entries: Vec<Entry>,
    freed: VecDeque<usize>,
}

impl Table {
    pub fn new() -> Self {
        Self {
            entries: vec![Entry::Vacant],
            freed: VecDeque::new(),
        }
    }

    #[inline]
    pub fn entry(&self, address: u64) -> Option<&Entry> {
        self.entries.get((address >> OFFSET_BITS) as usize)
    }

    pub fn allocate(&mut self, bytes: u64, granule: u32, full: bool) -> Result<u64, MemoryError> {
        if !matches!(granule, 1 | 2 | 4 | 8 | 16) {
            return Err(MemoryError::Granule { granule });
        }
        let slot = if self.freed.len() >= REMEMBERED {
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
        Ok((slot as u64) << OFFSET_BITS)
    }

    pub fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        self.find(address, 0)?;
        let offset = address & OFFSET_MASK;
        if offset != 0 {
            return Err(MemoryError::NotTheStart { address, offset });
        }
        let slot = (address >> OFFSET_BITS) as usize;
        self.entries[slot] = Entry::Freed;
        self.freed.push_back(slot);
        Ok(())
    }

    /// The allocation that holds `bytes` bytes at `address`, and their offset in it.
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
