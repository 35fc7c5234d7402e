//! Checked accesses to memory: where an address leads, and whether a thread may go there now.

use std::panic::Location;

use crate::block::Lane;
use crate::fault::{FaultKind, Touch};
use crate::memory::{Allocation, Entry, OFFSET_BITS, OFFSET_MASK, Shadow};
use crate::shadow::{Conflict, Record, enter};
use crate::shared::{BASE, Store};
use crate::types::Space;

/// The tag of all records of shared memory: what is past, their time tells.
const SHARED_TAG: u32 = 1;

/// One access of a lane: what it wants, and who asks.
#[derive(Clone, Copy)]
pub(crate) struct Access<'a> {
    pub lane: &'a Lane,
    pub space: Space,
    pub address: u64,
    /// Bytes, a power of two; also the alignment wanted.
    pub bytes: u64,
    pub location: &'static Location<'static>,
}

impl<'a> Access<'a> {
    #[cold]
    fn fault(self, kind: FaultKind) -> ! {
        self.lane.fault(kind, self.location)
    }

    /// The allocation and the offset in it. The access lies in it, and is aligned.
    #[inline]
    pub fn resolve(self) -> (&'a Allocation, u64) {
        let offset = self.address & OFFSET_MASK;
        if let Some(Entry::Live(allocation)) = self.lane.block().context().table.entry(self.address)
            && offset + self.bytes <= allocation.size()
            // The compiler does not know that it is a power of two, and would divide.
            && offset & (self.bytes - 1) == 0
        {
            return (allocation, offset);
        }
        self.explain()
    }

    #[cold]
    fn explain(self) -> ! {
        let (space, address, access) = (self.space, self.address, self.bytes);
        let table = self.lane.block().context().table;
        let offset = address & OFFSET_MASK;
        // An offset in the upper half is more likely to lie in front of the next allocation.
        let next = address.checked_add(1 << OFFSET_BITS);
        if offset > OFFSET_MASK / 2
            && let Some(Entry::Live(allocation)) = next.and_then(|next| table.entry(next))
        {
            self.fault(FaultKind::OutOfBounds {
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
                    space,
                    address,
                    access,
                    offset: offset as i64,
                    size: allocation.size(),
                }
            }
            Some(Entry::Live(_)) => FaultKind::Misaligned {
                space,
                address,
                access,
            },
            Some(Entry::Freed) => FaultKind::Freed {
                space,
                address,
                access,
                offset,
            },
            Some(Entry::Vacant) | None => FaultKind::UnknownAddress {
                space,
                address,
                access,
            },
        })
    }

    /// The offset in the block's shared memory. The access lies in it, and is aligned.
    #[inline]
    pub fn resolve_shared(self) -> (&'a Store, u64) {
        let shared = &self.lane.block().shared;
        let offset = self.address.wrapping_sub(BASE);
        let (space, address, access, size) = (self.space, self.address, self.bytes, shared.size());
        if access > size || offset > size - access {
            self.fault(FaultKind::OutOfBounds {
                space,
                address,
                access,
                offset: offset.cast_signed(),
                size,
            });
        }
        if address & (access - 1) != 0 {
            self.fault(FaultKind::Misaligned {
                space,
                address,
                access,
            });
        }
        (shared.store(), offset)
    }

    #[cold]
    fn uninitialised(self, offset: u64, size: u64) -> ! {
        self.fault(FaultKind::Uninitialised {
            space: self.space,
            address: self.address,
            access: self.bytes,
            offset,
            size,
        })
    }

    #[cold]
    fn race(self, touch: Touch, conflict: &Conflict, offset: u64, size: u64) -> ! {
        let (context, other) = (self.lane.block().context(), &conflict.record);
        self.fault(FaultKind::Race {
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

    /// Performs an access to global memory, checked. `perform` says whether it has written.
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
            // An aligned access stays within 64 granules of one lock.
            let key = (first >> 6) + (self.address >> OFFSET_BITS) as usize * 67;
            let (result, wrote, entered) = context.stripes.locked(key, || {
                let (result, wrote) = perform();
                let entered = (first..=last).try_for_each(|granule| {
                    let (write, read) = (writes.at(granule), reads.at(granule));
                    // SAFETY: `at` gives valid cells, and the lock keeps others away.
                    unsafe { enter(write, read, context.tag, access, wrote, self.lane) }
                });
                (result, wrote, entered)
            });
            if let Err(conflict) = entered {
                self.race(touch, &conflict, offset, allocation.size());
            }
            (result, wrote)
        } else {
            perform()
        };
        // All are noted, whether or not one of them is at fault.
        let refused = |granule: &usize| !shadow.note_write(*granule);
        if wrote && (first..=last).filter(refused).count() > 0 {
            self.read_only_written(touch, offset, allocation.size());
        }
        result
    }

    /// Performs an access to shared memory, checked. `perform` says whether it has written.
    pub fn check_shared<T>(
        self,
        store: &Store,
        offset: u64,
        touch: Touch,
        perform: impl FnOnce() -> (T, bool),
    ) -> T {
        let size = self.lane.block().shared.size();
        let (granules, bytes) = Store::granules(offset, self.bytes);
        if touch != Touch::Store
            && !granules
                .clone()
                .all(|granule| store.is_written(granule, bytes))
        {
            self.uninitialised(offset, size);
        }
        // The records that earlier blocks left are in the past by their time.
        let access = Record::new(self.lane, 0, touch, bytes, self.location);
        let (result, wrote) = perform();
        for granule in granules {
            let (write, read) = (store.writes.at(granule), store.reads.at(granule));
            // SAFETY: `at` gives valid cells; a block's shared memory belongs to one worker, and no other fiber of it
            // runs meanwhile.
            let entered = unsafe { enter(write, read, SHARED_TAG, access, wrote, self.lane) };
            if let Err(conflict) = entered {
                self.race(touch, &conflict, offset, size);
            }
            if wrote {
                store.note_write(granule, bytes);
            }
        }
        result
    }

    /// Checks that shared memory may be written from now on, at a time that is not known yet: until then it holds
    /// nothing.
    pub fn claim_shared(self, store: &Store, offset: u64) {
        self.check_shared(store, offset, Touch::Store, || ((), true));
        let (granules, bytes) = Store::granules(offset, self.bytes);
        for granule in granules {
            store.forget(granule, bytes);
        }
    }
}
