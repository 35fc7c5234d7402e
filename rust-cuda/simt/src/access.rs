//! Checked accesses to memory: the allocation of an address, and whether a thread may access it now.

use std::panic::Location;

use crate::block::Lane;
use crate::fault::{Buffer, FaultKind, Touch};
use crate::memory::{Allocation, Entry, OFFSET_BITS, OFFSET_MASK, Shadow};
use crate::shadow::{Conflict, Record, check_and_record, last_write};
use crate::shared::{BASE, Storage};
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
        if let Some(Entry::Live(allocation)) = self.lane.block().context().table.entry(self.address)
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
        let table = self.lane.block().context().table;
        let offset = address & OFFSET_MASK;
        // An offset in the upper half of the range is probably a negative offset from the next allocation.
        let next = address.checked_add(1 << OFFSET_BITS);
        if offset > OFFSET_MASK / 2
            && let Some(Entry::Live(allocation)) = next.and_then(|next| table.entry(next))
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
        self.fault(match table.entry(address) {
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
            Some(Entry::Vacant) | None => FaultKind::UnknownAddress {
                buffer: Buffer::default(),
                space,
                address,
                access,
            },
        })
    }

    /// The block's shared memory and the offset in it. The access lies within it and is aligned, or it is a fault.
    #[inline]
    pub fn resolve_shared(self) -> (&'a Storage, u64) {
        let shared = &self.lane.block().shared;
        let offset = self.address.wrapping_sub(BASE);
        let (space, address, access, size) = (self.space, self.address, self.bytes, shared.size());
        if access > size || offset > size - access {
            self.fault(FaultKind::OutOfBounds {
                buffer: Buffer::default(),
                space,
                address,
                access,
                offset: offset.cast_signed(),
                size,
            });
        }
        if address & (access - 1) != 0 {
            self.fault(FaultKind::Misaligned {
                buffer: Buffer::default(),
                space,
                address,
                access,
            });
        }
        (shared.storage(), offset)
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

    /// Reports a read of shared memory that no thread has written yet. If another thread writes it later without a barrier
    /// in between, that is a race, and the fault.
    #[cold]
    fn uninitialised_shared(self, storage: &Storage, offset: u64, touch: Touch) -> ! {
        let (granules, bytes) = Storage::granules(offset, self.bytes);
        let access = Record::new(self.lane, 0, touch, bytes, self.location);
        for granule in granules {
            let (write, read) = (storage.writes.at(granule), storage.reads.at(granule));
            // SAFETY: as in `check_shared`.
            let recorded =
                unsafe { check_and_record(write, read, SHARED_TAG, access, false, self.lane) };
            if let Err(conflict) = recorded {
                self.race(touch, &conflict, offset, self.lane.block().shared.size());
            }
        }
        let kind = FaultKind::Uninitialised {
            buffer: Buffer::default(),
            space: self.space,
            address: self.address,
            access: self.bytes,
            offset,
            size: self.lane.block().shared.size(),
        };
        self.lane.fault_later(kind, self.location)
    }

    /// Checks that a proxy fence lies between the writes of words in shared memory and now.
    pub fn check_published(self) {
        let (storage, offset) = self.resolve_shared();
        for granule in Storage::granules(offset, self.bytes).0 {
            // SAFETY: as in `check_shared`.
            let Some(record) = (unsafe { last_write(storage.writes.at(granule), SHARED_TAG) })
            else {
                continue;
            };
            let block = self.lane.block();
            if !block.proxy.published(&record) {
                self.fault(FaultKind::Unpublished {
                    address: self.address,
                    offset,
                    size: block.shared.size(),
                    other_thread: block.context().thread_index(record.thread()),
                    other_location: record.location().map(Into::into),
                });
            }
        }
    }

    #[cold]
    fn race(self, touch: Touch, conflict: &Conflict, offset: u64, size: u64) -> ! {
        let (context, other) = (self.lane.block().context(), &conflict.record);
        self.fault(FaultKind::Race {
            buffer: Buffer::default(),
            space: self.space,
            touch,
            address: self.address,
            offset,
            size,
            other_touch: conflict.touch,
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
    fn read_only_written(self, touch: Touch, offset: u64, size: u64) -> ! {
        self.fault(FaultKind::ReadOnlyWritten {
            buffer: Buffer::default(),
            touch,
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
        for granule in first..=last {
            if !shadow.is_initialised(granule) {
                self.uninitialised(offset, allocation.size());
            }
            if !shadow.note_read_only(granule) {
                self.read_only_written(Touch::Load, offset, allocation.size());
            }
        }
    }

    /// Performs and checks an access to global memory. `perform` returns its result and whether it has written.
    pub fn check_global<T>(
        self,
        allocation: &Allocation,
        shadow: &Shadow,
        offset: u64,
        touch: Touch,
        perform: impl FnOnce() -> (T, bool),
    ) -> T {
        let (first, last) = (
            shadow.granule(offset),
            shadow.granule(offset + self.bytes - 1),
        );
        if touch != Touch::Store && !(first..=last).all(|granule| shadow.is_initialised(granule)) {
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
            let bytes = shadow.bytes_in_granule(offset, self.bytes);
            let block = self.lane.block().number();
            let access = Record::new(self.lane, block, touch, bytes, self.location);
            // Blocks of 64 granules share a lock; an aligned access lies within one block.
            let key = (first >> 6) + (self.address >> OFFSET_BITS) as usize * 67;
            let (result, wrote, recorded) = context.stripes.locked(key, || {
                let (result, wrote) = perform();
                let recorded = (first..=last).try_for_each(|granule| {
                    let (write, read) = (writes.at(granule), reads.at(granule));
                    // SAFETY: `at` returns valid cells, and every access to them holds this lock.
                    unsafe { check_and_record(write, read, context.tag, access, wrote, self.lane) }
                });
                (result, wrote, recorded)
            });
            if let Err(conflict) = recorded {
                self.race(touch, &conflict, offset, allocation.size());
            }
            (result, wrote)
        } else {
            perform()
        };
        // `count` notes all granules, even after one that is a fault.
        let refused = |granule: &usize| !shadow.note_write(*granule);
        if wrote && (first..=last).filter(refused).count() > 0 {
            self.read_only_written(touch, offset, allocation.size());
        }
        result
    }

    /// Performs and checks an access to shared memory. `perform` returns its result and whether it has written.
    pub fn check_shared<T>(
        self,
        storage: &Storage,
        offset: u64,
        touch: Touch,
        perform: impl FnOnce() -> (T, bool),
    ) -> T {
        let size = self.lane.block().shared.size();
        let (granules, bytes) = Storage::granules(offset, self.bytes);
        if touch != Touch::Store
            && !granules
                .clone()
                .all(|granule| storage.is_written(granule, bytes))
        {
            self.uninitialised_shared(storage, offset, touch);
        }
        // Records of earlier blocks have earlier times, so all records can have the same block number.
        let access = Record::new(self.lane, 0, touch, bytes, self.location);
        let (result, wrote) = perform();
        for granule in granules {
            let (write, read) = (storage.writes.at(granule), storage.reads.at(granule));
            // SAFETY: `at` returns valid cells. Only the worker of this block uses them, and it runs no other fiber
            // during the call.
            let recorded =
                unsafe { check_and_record(write, read, SHARED_TAG, access, wrote, self.lane) };
            if let Err(conflict) = recorded {
                self.race(touch, &conflict, offset, size);
            }
            if wrote {
                storage.note_write(granule, bytes);
            }
        }
        result
    }

    /// Checks the destination of an asynchronous copy as if it were written now, and marks it as never written until
    /// the copy has completed.
    pub fn reserve_shared(self, storage: &Storage, offset: u64) {
        self.check_shared(storage, offset, Touch::Store, || ((), true));
        let (granules, bytes) = Storage::granules(offset, self.bytes);
        for granule in granules {
            storage.mark_unwritten(granule, bytes);
        }
    }
}
