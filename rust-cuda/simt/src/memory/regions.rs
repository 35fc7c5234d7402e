//! Regions of the address space: each emulator has one for its allocations, so a pointer tells whose it is.
//!
//! An address consists of the number of a region, a slot, which identifies an allocation, and an offset in that
//! allocation. It is never a host pointer.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of bits of the offset in an address.
pub(crate) const OFFSET_BITS: u32 = 37;
pub(crate) const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
/// Number of bits of the slot, above the offset.
const SLOT_BITS: u32 = 17;
/// Number of slots of a region.
pub(crate) const SLOTS: usize = 1 << SLOT_BITS;
/// Maximum number of regions in use at the same time.
pub(crate) const MAX_REGIONS: u64 = u64::MAX >> (OFFSET_BITS + SLOT_BITS);

/// The regions of the process. Region 0 is never used, so small numbers are no addresses.
static REGIONS: Mutex<Regions> = Mutex::new(Regions {
    used: 0,
    returned: VecDeque::new(),
});

struct Regions {
    /// The highest number that was ever given out.
    used: u64,
    /// Numbers that are free again, the oldest first. They are reused only after all others.
    returned: VecDeque<u64>,
}

fn regions() -> MutexGuard<'static, Regions> {
    REGIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A region that its owner alone uses. It can be used again when it is dropped.
pub(crate) struct Region(u64);

impl Region {
    /// A region that nobody uses, if one is left.
    pub fn reserve() -> Option<Self> {
        let mut regions = regions();
        if regions.used < MAX_REGIONS {
            regions.used += 1;
            return Some(Self(regions.used));
        }
        regions.returned.pop_front().map(Self)
    }

    /// The upper bits of its first address, [`SLOTS`] numbers in a row.
    pub fn first_slot(&self) -> u64 {
        self.0 << SLOT_BITS
    }

    /// Whether an address lies in a region that someone uses.
    pub fn is_used(address: u64) -> bool {
        let (number, regions) = (address >> (OFFSET_BITS + SLOT_BITS), regions());
        (1..=regions.used).contains(&number) && !regions.returned.contains(&number)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        regions().returned.push_back(self.0);
    }
}
