//! Freed device memory that is kept for later allocations of about its size.
//!
//! The driver takes from some microseconds to milliseconds for an allocation, and waits for the device before it frees one. All that is told a
//! device is done in one order, so memory can change hands without waiting: what the former owner launched is done before what
//! the new one launches.

use std::collections::{BTreeSet, HashMap};

/// The sizes of live allocations, and the allocations kept.
#[derive(Debug, Default)]
pub(super) struct Kept {
    live: HashMap<u64, u64>,
    /// Bytes and address of each, ordered by size.
    free: BTreeSet<(u64, u64)>,
    bytes: u64,
}

impl Kept {
    /// An allocation of `bytes` bytes or somewhat more that was kept: at most a quarter more, or a page.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let most = bytes.saturating_add(bytes / 4).max(4096);
        let &(size, address) = self.free.range((bytes, 0)..=(most, u64::MAX)).next()?;
        self.free.remove(&(size, address));
        self.bytes -= size;
        self.live.insert(address, size);
        Some(address)
    }

    /// Notes a new allocation.
    pub fn note(&mut self, address: u64, bytes: u64) {
        self.live.insert(address, bytes);
    }

    /// Keeps an allocation that is given up, if no more than `most` bytes are kept then; else it is to be freed.
    pub fn give(&mut self, address: u64, most: u64) -> bool {
        let Some(bytes) = self.live.remove(&address) else {
            return false;
        };
        let fits = self.bytes.saturating_add(bytes) <= most;
        if fits {
            self.free.insert((bytes, address));
            self.bytes += bytes;
        }
        fits
    }

    /// The bytes of all that is kept.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All that is kept, to be freed.
    pub fn clear(&mut self) -> Vec<u64> {
        self.bytes = 0;
        let free = std::mem::take(&mut self.free);
        free.into_iter().map(|(_, address)| address).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_allocation_that_fits_is_taken_and_none_that_is_much_larger() {
        let mut kept = Kept::default();
        for (address, bytes) in [(1, 12_000), (2, 10_000), (3, 9_000)] {
            kept.note(address, bytes);
            assert!(kept.give(address, u64::MAX));
        }
        assert_eq!(kept.bytes(), 31_000);
        assert_eq!(kept.take(9_500), Some(2));
        assert_eq!(kept.take(9_600), Some(1));
        assert_eq!(kept.take(7_000), None);
        assert_eq!(kept.take(7_200), Some(3));
        assert_eq!((kept.take(1), kept.bytes()), (None, 0));
        // What was taken can be given again.
        assert!(kept.give(2, u64::MAX));
        assert_eq!(kept.take(10_000), Some(2));
    }

    #[test]
    fn what_is_not_known_or_too_much_is_to_be_freed() {
        let mut kept = Kept::default();
        kept.note(1, 600);
        kept.note(2, 500);
        assert!(kept.give(1, 1000));
        assert!(!kept.give(2, 1000));
        assert!(!kept.give(1, 1000), "it was given already");
        assert!(!kept.give(7, 1000), "it was never noted");
        assert_eq!(kept.clear(), [1]);
        assert_eq!((kept.bytes(), kept.take(600)), (0, None));
    }
}
