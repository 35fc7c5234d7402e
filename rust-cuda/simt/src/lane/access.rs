//! Checked accesses to memory: the allocation of an address, and whether a thread may access it now.

use std::panic::Location;

use crate::block::Lane;
use crate::fault::{AccessKind, Buffer, FaultKind};
use crate::memory::allocations::{Allocation, Entry};
use crate::memory::granules::{Shadow, Unreadable};
use crate::memory::regions::{OFFSET_BITS, OFFSET_MASK};
use crate::memory::shadow::{Conflict, Record, check_and_record, last_write};
use crate::memory::shared::Storage;
use crate::types::Space;

/// The launch tag of all records of shared memory. Records of earlier blocks are told apart by their time instead.
const SHARED_TAG: u32 = 1;

/// One access of a lane.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    pub lane: &'a Lane,
    pub space: Space,
    pub address: u64,
    /// Size in bytes, a power of two; also the required alignment.
    pub bytes: u64,
    /// Whether it reads. Atomic operations may read, write, or do both.
    pub reads: bool,
    pub location: &'static Location<'static>,
}

impl<'a> Access<'a> {
    #[cold]
    fn fault(self, kind: FaultKind) -> ! {
        self.lane.fault(kind, self.location)
    }

    /// The allocation and the offset in it. The access lies within the allocation and is aligned, or it is a fault.
    #[inline]
    pub fn resolve(self) -> (&'a Allocation, u64) {
        let offset = self.address & OFFSET_MASK;
        if let Some(Entry::Live(allocation)) = self.lane.block().context().entries.entry(self.address)
            && offset + self.bytes <= allocation.size()
            // The compiler does not know that `bytes` is a power of two; for `%` it would emit a division.
            && offset & (self.bytes - 1) == 0
        {
            return (allocation, offset);
        }
        self.fault_unresolved()
    }

    /// Reports why [`resolve`](Self::resolve) failed.
    #[cold]
    fn fault_unresolved(self) -> ! {
        let (space, address, access) = (self.space, self.address, self.bytes);
        let entries = self.lane.block().context().entries;
        let offset = address & OFFSET_MASK;
        // An offset in the upper half of the range is probably a negative offset from the next allocation.
        let next = address.checked_add(1 << OFFSET_BITS);
        if offset > OFFSET_MASK / 2
            && let Some(Entry::Live(allocation)) = next.and_then(|next| entries.entry(next))
        {
            self.fault(FaultKind::OutOfBounds {
                buffer: Buffer::default(),
                space,
                address,
                access,
                offset: offset as i64 - (1 << OFFSET_BITS),
                size: allocation.size(),
            });
        }
        self.fault(match entries.entry(address) {
            Some(Entry::Live(allocation)) if offset + access > allocation.size() => {
                FaultKind::OutOfBounds {
                    buffer: Buffer::default(),
                    space,
                    address,
                    access,
                    offset: offset as i64,
                    size: allocation.size(),
                }
            }
            Some(Entry::Live(_)) => FaultKind::Misaligned {
                buffer: Buffer::default(),
                space,
                address,
                access,
            },
            Some(Entry::Freed) => FaultKind::Freed {
                buffer: Buffer::default(),
                space,
                address,
                access,
                offset,
            },
            None if entries.is_foreign(address) => FaultKind::OtherEmulator {
                buffer: Buffer::default(),
                space,
                address,
                access,
            },
            None => FaultKind::UnknownAddress {
                buffer: Buffer::default(),
                space,
                address,
                access,
            },
        })
    }

    /// The block's shared memory and the place in it. The access lies within one array and is aligned, or it is a
    /// fault.
    #[inline]
    pub fn resolve_shared(self) -> (&'a Storage, u64) {
        let shared = &self.lane.block().shared;
        if self.address & (self.bytes - 1) == 0
            && let Some(place) = shared.place(self.address, self.bytes)
        {
            return (shared.storage(), place);
        }
        self.fault_unresolved_shared()
    }

    /// Reports why [`resolve_shared`](Self::resolve_shared) failed.
    #[cold]
    fn fault_unresolved_shared(self) -> ! {
        let shared = &self.lane.block().shared;
        let (space, address, access) = (self.space, self.address, self.bytes);
        if shared.place(address, access).is_some() {
            self.fault(FaultKind::Misaligned {
                buffer: Buffer::default(),
                space,
                address,
                access,
            });
        }
        let (offset, size) = shared.within_array(address);
        self.fault(FaultKind::OutOfBounds {
            buffer: Buffer::default(),
            space,
            address,
            access,
            offset,
            size,
        })
    }

    /// Reports an access to shared memory that was never written, or to which an asynchronous copy is in flight.
    #[cold]
    fn fault_unwritten(self, storage: &Storage, place: u64, access_kind: AccessKind) -> ! {
        let (granules, _) = Storage::granules(place, self.bytes);
        if granules
            .clone()
            .any(|granule| storage.is_in_flight(granule))
        {
            for lane in self.lane.block().lanes() {
                if let Some(copy) = lane.copies.borrow().writing(self.address, self.bytes) {
                    self.fault(FaultKind::CopyInFlight {
                        access_kind,
                        address: self.address,
                        access: self.bytes,
                        other_thread: lane.thread(),
                        other_location: copy.location.into(),
                    });
                }
            }
        }
        self.record_early_read(storage, place, access_kind);
        let (offset, size) = self.lane.block().shared.within_array(self.address);
        let kind = FaultKind::Uninitialised {
            buffer: Buffer::default(),
            space: self.space,
            address: self.address,
            access: self.bytes,
            offset: offset.cast_unsigned(),
            size,
        };
        self.lane.fault_later(kind, self.location)
    }

    /// Records a read of shared memory that no thread has written yet. If another thread writes it later with no
    /// barrier in between, that is a race, and the fault.
    fn record_early_read(self, storage: &Storage, place: u64, access_kind: AccessKind) {
        let (granules, bytes) = Storage::granules(place, self.bytes);
        let access = Record::new(self.lane, 0, access_kind, bytes, self.location);
        for granule in granules {
            let (write, read) = (storage.writes.at(granule), storage.reads.at(granule));
            // SAFETY: as in `check_shared`.
            let recorded =
                unsafe { check_and_record(write, read, SHARED_TAG, access, false, self.lane) };
            if let Err(conflict) = recorded {
                self.race_in_array(access_kind, &conflict);
            }
        }
    }

    /// Checks that a proxy fence lies between the writes of words in shared memory and now.
    pub fn check_published(self) {
        let (storage, place) = self.resolve_shared();
        let block = self.lane.block();
        for granule in Storage::granules(place, self.bytes).0 {
            // SAFETY: as in `check_shared`.
            let write = unsafe { last_write(storage.writes.at(granule), SHARED_TAG) };
            if let Some(record) = write
                && !block.proxy.published(&record)
            {
                let (offset, size) = block.shared.within_array(self.address);
                self.fault(FaultKind::Unpublished {
                    buffer: Buffer::default(),
                    address: self.address,
                    offset: offset.cast_unsigned(),
                    size,
                    other_thread: block.context().thread_index(record.thread()),
                    other_location: record.location().map(Into::into),
                });
            }
        }
    }

    #[cold]
    fn race_in_array(self, access_kind: AccessKind, conflict: &Conflict) -> ! {
        let (offset, size) = self.lane.block().shared.within_array(self.address);
        self.race(access_kind, conflict, offset.cast_unsigned(), size)
    }

    #[cold]
    fn uninitialised(self, offset: u64, size: u64) -> ! {
        self.fault(FaultKind::Uninitialised {
            buffer: Buffer::default(),
            space: self.space,
            address: self.address,
            access: self.bytes,
            offset,
            size,
        })
    }

    #[cold]
    fn race(self, access_kind: AccessKind, conflict: &Conflict, offset: u64, size: u64) -> ! {
        let (context, other) = (self.lane.block().context(), &conflict.record);
        self.fault(FaultKind::Race {
            buffer: Buffer::default(),
            space: self.space,
            access_kind,
            address: self.address,
            offset,
            size,
            other_access_kind: conflict.access_kind,
            other_block: if self.space == Space::Shared {
                self.lane.block().index()
            } else {
                context.block_index(u64::from(other.block()))
            },
            other_thread: context.thread_index(other.thread()),
            other_location: other.location().map(Into::into),
        })
    }

    #[cold]
    fn read_only_written(self, access_kind: AccessKind, offset: u64, size: u64) -> ! {
        self.fault(FaultKind::ReadOnlyWritten {
            buffer: Buffer::default(),
            access_kind,
            address: self.address,
            offset,
            size,
        })
    }

    /// Checks a read-only load.
    #[inline]
    pub fn check_read_only(self, allocation: &Allocation, shadow: &Shadow, offset: u64) {
        let (first, last) = (
            shadow.granule(offset),
            shadow.granule(offset + self.bytes - 1),
        );
        let bytes = shadow.bytes_in_granule(offset, self.bytes);
        match shadow.note_read_only(first..=last, bytes) {
            None => {}
            Some(Unreadable::Uninitialised) => self.uninitialised(offset, allocation.size()),
            Some(Unreadable::Written) => {
                self.read_only_written(AccessKind::Load, offset, allocation.size());
            }
        }
    }

    /// Runs `work` while it holds the lock of `granule`. Blocks of 64 granules share a lock; an aligned access lies
    /// within one block.
    #[inline]
    pub fn locked<T>(self, granule: usize, work: impl FnOnce() -> T) -> T {
        let key = (granule >> 6) + (self.address >> OFFSET_BITS) as usize * 67;
        self.lane.block().context().stripes.locked(key, work)
    }

    /// Performs and checks an access to global memory. `perform` returns its result and whether it has written.
    pub fn check_global<T>(
        self,
        allocation: &Allocation,
        shadow: &Shadow,
        offset: u64,
        access_kind: AccessKind,
        perform: impl FnOnce() -> (T, bool),
    ) -> T {
        let (first, last) = (
            shadow.granule(offset),
            shadow.granule(offset + self.bytes - 1),
        );
        let bytes = shadow.bytes_in_granule(offset, self.bytes);
        if self.reads && !(first..=last).all(|granule| shadow.is_initialised(granule, bytes)) {
            self.uninitialised(offset, allocation.size());
        }
        let context = self.lane.block().context();
        let (result, wrote) = if context.races {
            let Some((writes, reads)) = shadow.cells() else {
                self.fault(FaultKind::HostMemory {
                    bytes: shadow.cell_bytes(),
                    purpose: "the race detector's records of an allocation",
                });
            };
            let block = self.lane.block().number();
            let access = Record::new(self.lane, block, access_kind, bytes, self.location);
            let (result, wrote, recorded) = self.locked(first, || {
                let (result, wrote) = perform();
                if matches!(access_kind, AccessKind::Atomic | AccessKind::BlockAtomic) {
                    self.lane
                        .note_atomic(self.space, self.address, self.reads, wrote);
                }
                let recorded = (first..=last).try_for_each(|granule| {
                    let (write, read) = (writes.at(granule), reads.at(granule));
                    // SAFETY: `at` returns valid cells, and every access to them holds this lock.
                    unsafe { check_and_record(write, read, context.tag, access, wrote, self.lane) }
                });
                (result, wrote, recorded)
            });
            if let Err(conflict) = recorded {
                self.race(access_kind, &conflict, offset, allocation.size());
            }
            (result, wrote)
        } else {
            self.locked(first, perform)
        };
        // `count` notes all granules, even after one that is a fault.
        let refused = |granule: &usize| !shadow.note_write(*granule, bytes);
        if wrote && (first..=last).filter(refused).count() > 0 {
            self.read_only_written(access_kind, offset, allocation.size());
        }
        result
    }

    /// Performs and checks an access to shared memory. `perform` returns its result and whether it has written.
    pub fn check_shared<T>(
        self,
        storage: &Storage,
        offset: u64,
        access_kind: AccessKind,
        perform: impl FnOnce() -> (T, bool),
    ) -> T {
        let (granules, bytes) = Storage::granules(offset, self.bytes);
        let allowed = |granule| storage.allows(granule, bytes, self.reads);
        if !granules.clone().all(allowed) {
            self.fault_unwritten(storage, offset, access_kind);
        }
        // Records of earlier blocks have earlier times, so all records can have the same block number.
        let access = Record::new(self.lane, 0, access_kind, bytes, self.location);
        let (result, wrote) = perform();
        if matches!(access_kind, AccessKind::Atomic | AccessKind::BlockAtomic) {
            self.lane
                .note_atomic(self.space, self.address, self.reads, wrote);
        }
        for granule in granules {
            let (write, read) = (storage.writes.at(granule), storage.reads.at(granule));
            // SAFETY: `at` returns valid cells. Only the worker of this block uses them, and it runs no other fiber
            // during the call.
            let recorded =
                unsafe { check_and_record(write, read, SHARED_TAG, access, wrote, self.lane) };
            if let Err(conflict) = recorded {
                self.race_in_array(access_kind, &conflict);
            }
            if wrote {
                storage.note_write(granule, bytes);
            }
        }
        result
    }

    /// Checks the destination of an asynchronous copy as if it were written now. Until the copy ends, other accesses
    /// to it are faults.
    pub fn begin_copy(self, storage: &Storage, offset: u64) {
        self.check_shared(storage, offset, AccessKind::Store, || ((), true));
        for granule in Storage::granules(offset, self.bytes).0 {
            storage.note_copy(granule, true);
        }
    }

    /// Notes that an asynchronous copy ends, and can be performed.
    pub fn end_copy(self, storage: &Storage, offset: u64) {
        for granule in Storage::granules(offset, self.bytes).0 {
            storage.note_copy(granule, false);
        }
    }
}
