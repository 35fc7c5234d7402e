//! Device memory: the allocations of an emulator.

use std::collections::VecDeque;

use crate::memory::buffer::{Zeroable, Zeroed};
use crate::memory::granules::Shadow;
use crate::memory::regions::{MAX_REGIONS, OFFSET_BITS, OFFSET_MASK, Region, SLOTS};

use crate::memory::MemoryError;

/// Maximum number of freed slots that are not used again, so that accesses to them are reported.
const MAX_FREED_SLOTS: usize = 1 << 16;

/// 16 bytes with an alignment of 16: the unit of host memory for allocations.
#[repr(C, align(16))]
pub(crate) struct AlignedBytes([u8; 16]);

// SAFETY: every byte may be zero, and the type needs no drop.
unsafe impl Zeroable for AlignedBytes {}

/// One allocation.
pub(crate) struct Allocation {
    data: Zeroed<AlignedBytes>,
    size: u64,
    granule: u32,
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
        Some(Self {
            data,
            size,
            granule,
            shadow,
        })
    }

    #[inline]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The size of an element in bytes.
    pub fn granule(&self) -> u32 {
        self.granule
    }

    /// A pointer to the first of `size` valid bytes. All accesses to them are those of `word`.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        self.data.pointer().cast()
    }
}

/// A slot of the table.
pub(crate) enum Entry {
    Live(Box<Allocation>),
    Freed,
}

/// The table of all allocations, indexed by the slot of an address.
pub(crate) struct Table {
    entries: Vec<Entry>,
    /// The upper bits of the address of the first entry; 0 if there is none.
    first_slot: u64,
    /// The region of all addresses, reserved for the first allocation.
    region: Option<Region>,
    /// Freed slots, the oldest first.
    freed: VecDeque<usize>,
    /// The most bytes of all live allocations.
    memory: u64,
    /// The bytes of all live allocations.
    allocated: u64,
}

/// The entries of a [`Table`].
#[derive(Clone, Copy)]
pub(crate) struct Entries<'a> {
    entries: &'a [Entry],
    /// The upper bits of the address of the first entry; 0 if there is none.
    first_slot: u64,
}

impl<'a> Entries<'a> {
    #[inline]
    fn slot(self, address: u64) -> usize {
        (address >> OFFSET_BITS).wrapping_sub(self.first_slot) as usize
    }

    #[inline]
    pub fn entry(self, address: u64) -> Option<&'a Entry> {
        self.entries.get(self.slot(address))
    }

    /// Whether an address belongs to another emulator.
    pub fn is_foreign(self, address: u64) -> bool {
        (self.first_slot == 0 || self.slot(address) >= SLOTS) && Region::is_used(address)
    }
}

impl Table {
    /// A table of no allocations; all together may have `memory` bytes.
    pub fn new(memory: Option<u64>) -> Self {
        Self {
            entries: Vec::new(),
            first_slot: 0,
            region: None,
            freed: VecDeque::new(),
            memory: memory.unwrap_or(u64::MAX),
            allocated: 0,
        }
    }

    /// The bytes of all live allocations.
    pub fn allocated(&self) -> u64 {
        self.allocated
    }

    /// The entries, for as long as none is added or removed.
    pub fn entries(&self) -> Entries<'_> {
        Entries {
            entries: &self.entries,
            first_slot: self.first_slot,
        }
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
        if self.region.is_none() {
            let region =
                Region::reserve().ok_or(MemoryError::TooManyEmulators { most: MAX_REGIONS })?;
            self.first_slot = region.first_slot();
            self.region = Some(region);
        }
        let used = self.entries.len();
        let slot = match self.freed.front() {
            Some(&oldest) if self.freed.len() >= MAX_FREED_SLOTS || used == SLOTS => oldest,
            _ => used,
        };
        let allocation = (bytes <= OFFSET_MASK / 2 && slot < SLOTS)
            .then(|| Allocation::try_new(bytes, granule, full))
            .flatten()
            .ok_or(MemoryError::OutOfMemory { bytes })?;
        let live = Entry::Live(Box::new(allocation));
        if slot == used {
            self.entries.push(live);
        } else {
            self.freed.pop_front();
            self.entries[slot] = live;
        }
        self.allocated += bytes;
        Ok((self.first_slot + slot as u64) << OFFSET_BITS)
    }

    pub fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        let (allocation, _) = self.find(address, 0)?;
        let bytes = allocation.size();
        let offset = address & OFFSET_MASK;
        if offset != 0 {
            return Err(MemoryError::NotTheStart { address, offset });
        }
        let slot = self.entries().slot(address);
        self.entries[slot] = Entry::Freed;
        self.allocated -= bytes;
        self.freed.push_back(slot);
        Ok(())
    }

    /// The allocation that contains `bytes` bytes at `address`, and their offset in it.
    pub fn find(&self, address: u64, bytes: u64) -> Result<(&Allocation, u64), MemoryError> {
        let allocation = match self.entries().entry(address) {
            Some(Entry::Live(allocation)) => allocation,
            Some(Entry::Freed) => return Err(MemoryError::Freed { address }),
            None if self.entries().is_foreign(address) => {
                return Err(MemoryError::OtherEmulator { address });
            }
            None => return Err(MemoryError::UnknownAddress { address }),
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
