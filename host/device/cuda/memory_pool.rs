//! A pool of freed device memory, for later allocations of about the same size.
//!
//! The driver takes microseconds to milliseconds for an allocation, and waits for the device before it frees one. A
//! stream does everything in one order, so memory changes its owner without waiting: the former owner's launches are
//! done before the new owner's. If they are on other streams, the new owner's stream waits for them.

use std::collections::{BTreeMap, HashMap};

/// The sizes of live allocations, and the freed allocations, with their users `U`: what the next owner waits for.
#[derive(Debug)]
pub(super) struct MemoryPool<U> {
    live: HashMap<u64, u64>,
    live_bytes: u64,
    /// The most that `live_bytes` was since it was last asked for.
    peak_bytes: u64,
    /// The time at which each was freed, and its users, by its bytes and address.
    free: BTreeMap<(u64, u64), (u64, U)>,
    /// Bytes and address of each, by that time.
    by_age: BTreeMap<u64, (u64, u64)>,
    /// The number of allocations freed so far.
    time: u64,
    bytes: u64,
}

impl<U> Default for MemoryPool<U> {
    fn default() -> Self {
        Self {
            live: HashMap::new(),
            live_bytes: 0,
            peak_bytes: 0,
            free: BTreeMap::new(),
            by_age: BTreeMap::new(),
            time: 0,
            bytes: 0,
        }
    }
}

impl<U> MemoryPool<U> {
    /// A freed allocation of `bytes` bytes or up to a quarter more, or up to a page, and its users.
    pub fn take(&mut self, bytes: u64) -> Option<(u64, U)> {
        let most = bytes.saturating_add(bytes / 4).max(4096);
        let mut fitting = self.free.range((bytes, 0)..=(most, u64::MAX));
        let (&(size, address), _) = fitting.next()?;
        let (time, users) = self.free.remove(&(size, address))?;
        self.by_age.remove(&time);
        self.bytes -= size;
        self.note(address, size);
        Some((address, users))
    }

    /// Notes a new allocation.
    pub fn note(&mut self, address: u64, bytes: u64) {
        self.live.insert(address, bytes);
        self.live_bytes = self.live_bytes.saturating_add(bytes);
        self.peak_bytes = self.peak_bytes.max(self.live_bytes);
    }

    /// Takes a freed allocation. Returns the allocations that the driver must free so that the pool has at most
    /// `most` bytes: those that nobody has wanted for the longest time, or this one.
    pub fn give(&mut self, address: u64, users: U, most: u64) -> Vec<(u64, U)> {
        let freed = self.live.remove(&address);
        self.live_bytes -= freed.unwrap_or(0);
        let Some(bytes) = freed.filter(|&bytes| bytes <= most) else {
            return vec![(address, users)];
        };
        self.time += 1;
        self.free.insert((bytes, address), (self.time, users));
        self.by_age.insert(self.time, (bytes, address));
        self.bytes = self.bytes.saturating_add(bytes);
        self.shrink(most)
    }

    /// The allocations that the driver must free so that the pool has at most `most` bytes.
    pub fn shrink(&mut self, most: u64) -> Vec<(u64, U)> {
        let mut too_many = Vec::new();
        while self.bytes > most
            && let Some((_, (bytes, address))) = self.by_age.pop_first()
        {
            self.bytes -= bytes;
            if let Some((_, users)) = self.free.remove(&(bytes, address)) {
                too_many.push((address, users));
            }
        }
        too_many
    }

    /// Bytes of the pool.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the live allocations.
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// The most that the live allocations had in bytes since the last call.
    pub fn take_peak_bytes(&mut self) -> u64 {
        std::mem::replace(&mut self.peak_bytes, self.live_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_allocation_that_fits_is_taken_and_none_that_is_much_larger() {
        let mut pool = MemoryPool::<char>::default();
        for (address, bytes) in [(1, 12_000), (2, 10_000), (3, 9_000)] {
            pool.note(address, bytes);
            assert!(pool.give(address, 'u', u64::MAX).is_empty());
        }
        assert_eq!(pool.bytes(), 31_000);
        assert_eq!(pool.take(9_500), Some((2, 'u')));
        assert_eq!(pool.take(9_600), Some((1, 'u')));
        assert_eq!(pool.take(7_000), None);
        assert_eq!(pool.take(7_200), Some((3, 'u')));
        assert_eq!((pool.take(1), pool.bytes()), (None, 0));
        // What was taken can be given again.
        assert!(pool.give(2, 'u', u64::MAX).is_empty());
        assert_eq!(pool.take(10_000), Some((2, 'u')));
    }

    #[test]
    fn the_peak_is_that_of_live_allocations_since_it_was_asked_for() {
        let mut pool = MemoryPool::<char>::default();
        pool.note(1, 100);
        pool.note(2, 50);
        assert!(pool.give(1, 'u', u64::MAX).is_empty());
        assert_eq!((pool.live_bytes(), pool.take_peak_bytes()), (50, 150));
        assert_eq!(pool.take(90), Some((1, 'u')));
        assert_eq!((pool.live_bytes(), pool.take_peak_bytes()), (150, 150));
        assert_eq!(pool.give(2, 'u', 0).len(), 1, "it alone is too much");
        assert_eq!((pool.live_bytes(), pool.take_peak_bytes()), (100, 150));
        assert_eq!(pool.take_peak_bytes(), 100);
    }

    #[test]
    fn what_nobody_has_wanted_for_the_longest_time_makes_room() {
        let mut pool = MemoryPool::<char>::default();
        for (address, bytes) in [(1, 600), (2, 300), (3, 500), (4, 2000)] {
            pool.note(address, bytes);
        }
        assert!(pool.give(1, 'u', 1000).is_empty());
        assert!(pool.give(2, 'u', 1000).is_empty());
        assert_eq!(pool.take(600), Some((1, 'u')));
        assert!(pool.give(1, 'u', 1000).is_empty());
        assert_eq!(pool.give(3, 'u', 1000), [(2, 'u'), (1, 'u')]);
        assert_eq!(pool.give(4, 'u', 1000), [(4, 'u')], "it alone is too much");
        assert_eq!(pool.give(7, 'u', 1000), [(7, 'u')], "it was never noted");
        assert_eq!(pool.shrink(0), [(3, 'u')]);
        assert_eq!((pool.bytes(), pool.take(500)), (0, None));
    }
}
