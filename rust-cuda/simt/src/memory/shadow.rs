//! The race detector: the last accesses to each granule, and whether they happened before a new access.
//!
//! A granule has a record of its last write and records of up to 33 reads since then. A record has the logical time of
//! the access; the clock of a block advances at every barrier, `sync_warp` and fence. [`Accessor::happens_after`]
//! compares a record with a lane's current time, and [`Accessor::has_acquired`] with what other blocks have released to
//! it. Reads that do not fit are dropped, which can miss races but reports none that is not there.

use std::panic::Location;
use std::ptr;

use crate::memory::buffer::Zeroable;
use crate::types::AccessKind;

/// The lane that accesses memory, with what the memory model asks about it.
pub(crate) trait Accessor {
    /// The number of the thread in its block.
    fn index(&self) -> u32;

    /// The logical time of the lane's accesses.
    fn time(&self) -> u32;

    /// Whether an earlier access of its block happened before what the lane does now.
    fn happens_after(&self, record: &Record) -> bool;

    /// Whether fences and atomic operations order an earlier access by a thread of `block` before what the lane does
    /// now.
    fn has_acquired(&self, block: u32, record: &Record) -> bool;

    /// Whether a barrier has ordered all accesses of the block at `time` before those from now on.
    fn orders_block_before(&self, time: u32) -> bool;

    /// Whether warp barriers have ordered all accesses of the warp at `time` before those from now on.
    fn orders_warp_before(&self, time: u32) -> bool;
}

// The parts of `Record::thread`: the thread's index, and flags.
const THREAD: u16 = 0x3ff;
const ATOMIC: u16 = 1 << 10;
const BLOCK_SCOPE: u16 = 1 << 11;
const VALID: u16 = 1 << 15;

/// An access of a thread to a granule.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Record {
    block: u32,
    /// The logical time of the block.
    time: u32,
    /// The line, see [`encode`].
    location: u32,
    /// The index of the thread in its block, and flags.
    thread: u16,
    /// A bit for each byte of the granule that was accessed.
    bytes: u16,
}

impl Record {
    /// A record of an access by `lane` now. `block` is the number of its block, or 0 in shared memory.
    #[inline(always)]
    pub fn new(
        lane: &impl Accessor,
        block: u32,
        access_kind: AccessKind,
        bytes: u16,
        location: &'static Location<'static>,
    ) -> Self {
        let flags = match access_kind {
            AccessKind::Load | AccessKind::Store => 0,
            AccessKind::Atomic => ATOMIC,
            AccessKind::BlockAtomic => ATOMIC | BLOCK_SCOPE,
        };
        Self {
            block,
            time: lane.time(),
            location: encode(location),
            thread: lane.index() as u16 | flags | VALID,
            bytes,
        }
    }

    pub fn block(&self) -> u32 {
        self.block
    }

    pub fn thread(&self) -> u32 {
        u32::from(self.thread & THREAD)
    }

    pub fn time(&self) -> u32 {
        self.time
    }

    pub fn location(&self) -> Option<&'static Location<'static>> {
        decode(self.location)
    }

    /// The same record for another thread.
    fn of_thread(self, thread: u32) -> Self {
        Self {
            thread: self.thread & !THREAD | thread as u16,
            ..self
        }
    }

    fn is_valid(&self) -> bool {
        self.thread & VALID != 0
    }

    /// The kind of access; `plain` if it was not atomic.
    fn access_kind(&self, plain: AccessKind) -> AccessKind {
        match (self.thread & ATOMIC != 0, self.thread & BLOCK_SCOPE != 0) {
            (false, _) => plain,
            (true, false) => AccessKind::Atomic,
            (true, true) => AccessKind::BlockAtomic,
        }
    }

    /// Whether this access and `later`, which `lane` does now, race. The caller knows that one of them is a write.
    fn races_with(&self, later: &Self, lane: &impl Accessor) -> bool {
        if self.bytes & later.bytes == 0 {
            return false;
        }
        let both_atomic = self.thread & later.thread & ATOMIC != 0;
        if self.block != later.block {
            return if both_atomic {
                (self.thread | later.thread) & BLOCK_SCOPE != 0
            } else {
                !lane.has_acquired(self.block, self)
            };
        }
        !both_atomic && !lane.happens_after(self)
    }
}

/// The last write of a granule. A cell with the tag of another launch counts as empty.
#[repr(C)]
pub(crate) struct WriteCell {
    tag: u32,
    record: Record,
}

// SAFETY: all fields are integers, for which zero is valid.
unsafe impl Zeroable for WriteCell {}

/// The reads of a granule since its last write.
#[repr(C)]
pub(crate) struct ReadCell {
    tag: u32,
    /// The lanes of the warp of `first` that have read since the time of `first`.
    lanes: u32,
    /// The first reader.
    first: Record,
    /// A reader of another warp or another block, if valid.
    second: Record,
}

// SAFETY: all fields are integers, for which zero is valid.
unsafe impl Zeroable for ReadCell {}

/// An earlier access that races with a new one.
pub(crate) struct Conflict {
    pub record: Record,
    pub access_kind: AccessKind,
}

/// Checks an access by `lane` against the records of a granule, and records it.
///
/// # Safety
///
/// The cells must be valid, and nothing else may access them during the call.
pub(crate) unsafe fn check_and_record(
    write: *mut WriteCell,
    read: *mut ReadCell,
    tag: u32,
    access: Record,
    writes: bool,
    lane: &impl Accessor,
) -> Result<(), Conflict> {
    // SAFETY: the cells are valid and not aliased, by the contract of this function.
    let (write, read) = unsafe { (&mut *write, &mut *read) };
    if write.tag == tag && write.record.races_with(&access, lane) {
        return Err(Conflict {
            record: write.record,
            access_kind: write.record.access_kind(AccessKind::Store),
        });
    }
    if !writes {
        read.record(tag, access, lane);
        return Ok(());
    }
    if read.tag == tag {
        if let Some(record) = read.race(&access, lane) {
            let access_kind = record.access_kind(AccessKind::Load);
            return Err(Conflict {
                record,
                access_kind,
            });
        }
        read.tag = 0;
    }
    *write = WriteCell {
        tag,
        record: access,
    };
    Ok(())
}

/// The last write of a granule, if there is one.
///
/// # Safety
///
/// As for [`check_and_record`].
pub(crate) unsafe fn last_write(write: *const WriteCell, tag: u32) -> Option<Record> {
    // SAFETY: the cell is valid and not aliased, by the contract of this function.
    let write = unsafe { &*write };
    (write.tag == tag && write.record.is_valid()).then_some(write.record)
}

impl ReadCell {
    /// The record of a read that races with `write`, if any.
    fn race(&self, write: &Record, lane: &impl Accessor) -> Option<Record> {
        let warp = self.first.thread() & !31;
        let mut lanes = self.lanes;
        while lanes != 0 {
            let reader = self.first.of_thread(warp | lanes.trailing_zeros());
            if reader.races_with(write, lane) {
                return Some(reader);
            }
            lanes &= lanes - 1;
        }
        (self.second.is_valid() && self.second.races_with(write, lane)).then_some(self.second)
    }

    /// Records a read.
    fn record(&mut self, tag: u32, access: Record, lane: &impl Accessor) {
        let bit = 1 << (access.thread() & 31);
        let first = self.first;
        let same_kind = first.bytes == access.bytes
            && (first.thread ^ access.thread) & (ATOMIC | BLOCK_SCOPE) == 0;
        if self.tag != tag || !same_kind {
            self.tag = tag;
            self.lanes = bit;
            self.first = access;
            self.second.thread = 0;
        } else if first.block != access.block {
            self.second = access;
        } else if lane.orders_block_before(first.time) {
            // A barrier lies between the reads: an access that happens after this read also happens after the first.
            self.lanes = bit;
            self.first = access;
            if self.second.block == access.block {
                self.second.thread = 0;
            }
        } else if (first.thread() ^ access.thread()) & !31 != 0 {
            self.second = access;
        } else if lane.orders_warp_before(first.time) {
            self.lanes = bit;
            self.first = access;
        } else if first.time <= access.time {
            self.lanes |= bit;
        }
    }
}

/// The address that encoded locations are relative to. All locations lie in the read-only data of the program, so their
/// distances fit 32 bits.
static ANCHOR: u8 = 0;

/// A location in 32 bits; zero if it does not fit.
#[inline(always)]
fn encode(location: &'static Location<'static>) -> u32 {
    let distance =
        ptr::from_ref(location).expose_provenance() as i64 - ptr::from_ref(&ANCHOR).addr() as i64;
    i32::try_from(distance).map_or(0, i32::cast_unsigned)
}

fn decode(code: u32) -> Option<&'static Location<'static>> {
    if code == 0 {
        return None;
    }
    let address = ptr::from_ref(&ANCHOR).addr() as i64 + i64::from(code.cast_signed());
    // SAFETY: a code other than zero comes from `encode`, so this is the address of a `&'static Location`.
    Some(unsafe { &*ptr::with_exposed_provenance(address as usize) })
}
