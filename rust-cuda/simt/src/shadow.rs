//! Race detection: who touched a word last, and whether that is ordered before who touches it now.
//!
//! A word's writer and readers are kept as records that carry the block's clock. The clock ticks at every barrier and
//! every `sync_warp`; [`Lane::follows`] tells from it whether an earlier access of the block is ordered before a
//! lane's next one. Records that do not fit are dropped, never guessed: that loses races and invents none.

use std::panic::Location;
use std::ptr;

use crate::block::Lane;
use crate::buffer::Zeroable;
use crate::fault::Touch;

const THREAD: u16 = 0x3ff;
const ATOMIC: u16 = 1 << 10;
const BLOCK_SCOPE: u16 = 1 << 11;
const VALID: u16 = 1 << 15;

/// One access of one thread to one granule.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Record {
    block: u32,
    time: u32,
    location: u32,
    /// The thread's index in its block, and flags.
    thread: u16,
    /// The bytes of the granule that were touched, a bit each.
    bytes: u16,
}

impl Record {
    /// `block` tells accesses of different blocks apart, where they can meet.
    pub fn new(
        lane: &Lane,
        block: u32,
        touch: Touch,
        bytes: u16,
        location: &'static Location<'static>,
    ) -> Self {
        let flags = match touch {
            Touch::Load | Touch::Store => 0,
            Touch::Atomic => ATOMIC,
            Touch::BlockAtomic => ATOMIC | BLOCK_SCOPE,
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

    fn of_thread(self, thread: u32) -> Self {
        Self {
            thread: self.thread & !THREAD | thread as u16,
            ..self
        }
    }

    fn is_valid(&self) -> bool {
        self.thread & VALID != 0
    }

    fn touch(&self, plain: Touch) -> Touch {
        match (self.thread & ATOMIC != 0, self.thread & BLOCK_SCOPE != 0) {
            (false, _) => plain,
            (true, false) => Touch::Atomic,
            (true, true) => Touch::BlockAtomic,
        }
    }

    /// Whether `later`, by `lane` just now, races with this access, one of the two being a write.
    fn races_with(&self, later: &Self, lane: &Lane) -> bool {
        if self.bytes & later.bytes == 0 {
            return false;
        }
        let both_atomic = self.thread & later.thread & ATOMIC != 0;
        if self.block != later.block {
            return if both_atomic {
                (self.thread | later.thread) & BLOCK_SCOPE != 0
            } else {
                !lane.fenced_for_device()
            };
        }
        !both_atomic && !lane.follows(self) && !lane.fenced_in_block()
    }
}

/// The last write of a granule. Cells of another launch, by the tag, are as good as empty.
#[repr(C)]
pub(crate) struct WriteCell {
    tag: u32,
    record: Record,
}

// SAFETY: plain integers.
unsafe impl Zeroable for WriteCell {}

/// The reads of a granule since its last write.
#[repr(C)]
pub(crate) struct ReadCell {
    tag: u32,
    /// The lanes of `first`'s warp that have read at `first`'s time.
    lanes: u32,
    first: Record,
    /// A reader of another warp or another block than `first`'s, if valid.
    second: Record,
}

// SAFETY: plain integers.
unsafe impl Zeroable for ReadCell {}

/// An access that races with a new one.
pub(crate) struct Conflict {
    pub record: Record,
    pub touch: Touch,
}

/// Checks `access` by `lane` against what a granule's cells hold, and enters it.
///
/// # Safety
///
/// The cells are valid, and nobody else touches them meanwhile.
pub(crate) unsafe fn enter(
    write: *mut WriteCell,
    read: *mut ReadCell,
    tag: u32,
    access: Record,
    writes: bool,
    lane: &Lane,
) -> Result<(), Conflict> {
    // SAFETY: the caller's contract.
    let (write, read) = unsafe { (&mut *write, &mut *read) };
    if write.tag == tag && write.record.races_with(&access, lane) {
        return Err(Conflict {
            record: write.record,
            touch: write.record.touch(Touch::Store),
        });
    }
    if !writes {
        read.enter(tag, access, lane);
        return Ok(());
    }
    if read.tag == tag {
        if let Some(record) = read.race(&access, lane) {
            let touch = record.touch(Touch::Load);
            return Err(Conflict { record, touch });
        }
        read.tag = 0;
    }
    *write = WriteCell {
        tag,
        record: access,
    };
    Ok(())
}

impl ReadCell {
    /// A reader that a write races with.
    fn race(&self, write: &Record, lane: &Lane) -> Option<Record> {
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

    fn enter(&mut self, tag: u32, access: Record, lane: &Lane) {
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
        } else if lane.block().orders_all_before(first.time) {
            // Whatever is ordered after this read is ordered after the earlier ones of the block too.
            self.lanes = bit;
            self.first = access;
            if self.second.block == access.block {
                self.second.thread = 0;
            }
        } else if (first.thread() ^ access.thread()) & !31 != 0 {
            self.second = access;
        } else if lane.warp().orders_all_before(first.time) {
            self.lanes = bit;
            self.first = access;
        } else if first.time <= access.time {
            self.lanes |= bit;
        }
    }
}

/// What locations are counted from: their distance to it fits 32 bits, as all live in the program's read-only data.
static ANCHOR: u8 = 0;

/// A location in 32 bits; zero for one that is further away than that.
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
    // SAFETY: codes other than zero come from `encode` alone, so this is the address of a location that lives for ever.
    Some(unsafe { &*ptr::with_exposed_provenance(address as usize) })
}
