//! Shadow memory: which granules of an allocation were written, and how the launch uses them.

use std::ops::RangeInclusive;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU16, Ordering::Relaxed};

use crate::memory::buffer::{Zeroable, Zeroed};
use crate::memory::shadow::{ReadCell, WriteCell};

/// Shadow memory: what the checks know about each granule of an allocation.
pub(crate) struct Shadow {
    /// The logarithm of the size of a granule.
    granule_bits: u32,
    /// The flags below for each granule.
    flags: Zeroed<AtomicU8>,
    /// For each granule without [`INITIALISED`], a bit for each byte that was written. It is allocated at the first
    /// write of a part of a granule.
    parts: OnceLock<Option<Zeroed<AtomicU16>>>,
    /// For each page of granules, whether a flag of the current launch is set.
    dirty_pages: Zeroed<AtomicU8>,
    /// Records of the race detector. They are allocated at the first access that is not a read-only load.
    cells: OnceLock<(Zeroed<WriteCell>, Zeroed<ReadCell>)>,
}

// SAFETY: 0 is a valid value of an atomic integer, which needs no drop.
unsafe impl Zeroable for AtomicU8 {}
// SAFETY: as above.
unsafe impl Zeroable for AtomicU16 {}

/// Flag: all bytes of the granule were written at some time.
const INITIALISED: u8 = 1;
/// Flag: this launch has read the granule through a read-only pointer.
const READ_ONLY: u8 = 2;
/// Flag: this launch has written the granule.
const WRITTEN: u8 = 4;
/// The logarithm of the number of granules of a page.
const PAGE_BITS: usize = 12;

/// Why a granule cannot be read through a read-only pointer.
pub(crate) enum Unreadable {
    /// It was never written.
    Uninitialised,
    /// This launch has written it.
    Written,
}

impl Shadow {
    pub fn try_new(size: u64, granule: u32) -> Option<Self> {
        let granules = usize::try_from(size.div_ceil(u64::from(granule))).ok()?;
        Some(Self {
            granule_bits: granule.trailing_zeros(),
            flags: Zeroed::try_new(granules)?,
            dirty_pages: Zeroed::try_new(granules.div_ceil(1 << PAGE_BITS))?,
            parts: OnceLock::new(),
            cells: OnceLock::new(),
        })
    }

    /// The size of a granule in bytes.
    pub fn granule_bytes(&self) -> u64 {
        1 << self.granule_bits
    }

    /// The granule that contains `offset`.
    #[inline]
    pub fn granule(&self, offset: u64) -> usize {
        (offset >> self.granule_bits) as usize
    }

    /// A bit for each byte of a granule that an access of `bytes` at `offset` touches; it is the same in each of its
    /// granules.
    #[inline]
    pub fn bytes_in_granule(&self, offset: u64, bytes: u64) -> u16 {
        let granule = 1_u64 << self.granule_bits;
        let within = offset & (granule - 1);
        (((1_u32 << bytes.min(granule)) - 1) << within) as u16
    }

    /// The records of the race detector; `None` if the host has not enough memory.
    pub fn cells(&self) -> Option<(&Zeroed<WriteCell>, &Zeroed<ReadCell>)> {
        if self.cells.get().is_none() {
            let granules = self.flags.len();
            let cells = (Zeroed::try_new(granules)?, Zeroed::try_new(granules)?);
            // If another worker was faster, its cells are used and these are dropped.
            let _ = self.cells.set(cells);
        }
        self.cells.get().map(|(writes, reads)| (writes, reads))
    }

    /// The bytes of host memory that [`Shadow::cells`] needs.
    pub fn cell_bytes(&self) -> u64 {
        let cell = size_of::<WriteCell>() + size_of::<ReadCell>();
        self.flags.len() as u64 * cell as u64
    }

    #[inline]
    fn flag(&self, granule: usize) -> &AtomicU8 {
        // SAFETY: `at` checks the index and returns a valid pointer; the flags are only accessed as atomics.
        unsafe { &*self.flags.at(granule) }
    }

    fn mark_page(&self, granule: usize) {
        // SAFETY: as in `flag`.
        unsafe { &*self.dirty_pages.at(granule >> PAGE_BITS) }.store(1, Relaxed);
    }

    /// Whether the bytes of a granule were written at some time.
    #[inline]
    pub fn is_initialised(&self, granule: usize, bytes: u16) -> bool {
        self.flag(granule).load(Relaxed) & INITIALISED != 0
            || self.is_part_initialised(granule, bytes)
    }

    #[cold]
    fn is_part_initialised(&self, granule: usize, bytes: u16) -> bool {
        self.initialised_bytes(granule) & bytes == bytes
    }

    /// A bit for each byte of a granule.
    fn all_bytes(&self) -> u16 {
        self.bytes_in_granule(0, 1 << self.granule_bits)
    }

    /// A bit for each byte of a granule that was written at some time.
    fn initialised_bytes(&self, granule: usize) -> u16 {
        if self.flag(granule).load(Relaxed) & INITIALISED != 0 {
            return self.all_bytes();
        }
        match self.parts.get() {
            None => 0,
            Some(Some(parts)) => self.part(parts, granule).load(Relaxed),
            // The host has no memory for them. Then nothing is reported.
            Some(None) => self.all_bytes(),
        }
    }

    fn part<'a>(&self, parts: &'a Zeroed<AtomicU16>, granule: usize) -> &'a AtomicU16 {
        // SAFETY: `at` checks the index and returns a valid pointer; the bits are only accessed as atomics.
        unsafe { &*parts.at(granule) }
    }

    /// Notes that bytes of a granule were written.
    fn initialise(&self, granule: usize, bytes: u16) {
        let (flag, all) = (self.flag(granule), self.all_bytes());
        if flag.load(Relaxed) & INITIALISED != 0 {
            return;
        }
        if bytes != all {
            let parts = self.parts.get_or_init(|| Zeroed::try_new(self.flags.len()));
            let written = parts.as_ref().map_or(all, |parts| {
                self.part(parts, granule).fetch_or(bytes, Relaxed) | bytes
            });
            if written != all {
                return;
            }
        }
        flag.fetch_or(INITIALISED, Relaxed);
    }

    /// Notes that bytes of a granule have no value any more.
    fn forget(&self, granule: usize, bytes: u16) {
        let left = self.initialised_bytes(granule) & !bytes;
        if let Some(parts) = self.parts.get_or_init(|| Zeroed::try_new(self.flags.len())) {
            self.part(parts, granule).store(left, Relaxed);
            self.flag(granule).fetch_and(!INITIALISED, Relaxed);
        }
    }

    /// Checks and notes a read-only load of granules. Returns what is wrong with one of them, if anything.
    #[inline]
    pub fn note_read_only(
        &self,
        granules: RangeInclusive<usize>,
        bytes: u16,
    ) -> Option<Unreadable> {
        for granule in granules {
            let flag = self.flag(granule).load(Relaxed);
            if flag != INITIALISED | READ_ONLY {
                if flag & INITIALISED == 0 && !self.is_part_initialised(granule, bytes) {
                    return Some(Unreadable::Uninitialised);
                }
                self.mark_page(granule);
                if self.flag(granule).fetch_or(READ_ONLY, Relaxed) & WRITTEN != 0 {
                    return Some(Unreadable::Written);
                }
            }
        }
        None
    }

    /// Notes a write of bytes of a granule. Returns false if this launch has read the granule through a read-only
    /// pointer.
    #[inline]
    pub fn note_write(&self, granule: usize, bytes: u16) -> bool {
        let flag = self.flag(granule);
        let state = flag.load(Relaxed);
        if state == INITIALISED | WRITTEN {
            return true;
        }
        self.mark_page(granule);
        if state & INITIALISED == 0 {
            self.initialise(granule, bytes);
        }
        flag.fetch_or(WRITTEN, Relaxed) & READ_ONLY == 0
    }

    /// The granules of `bytes` bytes from `offset`, and for each a bit for each of these bytes.
    fn granules(&self, offset: u64, bytes: u64) -> impl Iterator<Item = (usize, u16)> {
        let (bits, end) = (self.granule_bits, offset + bytes);
        let part = move |granule| {
            let start = offset.max(granule << bits);
            let len = end.min((granule + 1) << bits) - start;
            (granule as usize, self.bytes_in_granule(start, len))
        };
        let granules = offset >> bits..end.div_ceil(1 << bits);
        granules.map(part).filter(|&(_, bytes)| bytes != 0)
    }

    /// Notes that the host has written `bytes` at `offset`.
    pub fn note_host_write(&self, offset: u64, bytes: u64) {
        for (granule, bytes) in self.granules(offset, bytes) {
            self.initialise(granule, bytes);
        }
    }

    /// The offset of the first of `bytes` bytes from `offset` that was never written, if any.
    pub fn first_uninitialised(&self, offset: u64, bytes: u64) -> Option<u64> {
        let missing = |(granule, bytes): (usize, u16)| {
            if self.flag(granule).load(Relaxed) & INITIALISED != 0 {
                return None;
            }
            let missing = bytes & !self.initialised_bytes(granule);
            let first =
                ((granule as u64) << self.granule_bits) + u64::from(missing.trailing_zeros());
            (missing != 0).then_some(first)
        };
        self.granules(offset, bytes).find_map(missing)
    }

    /// Notes that the host has copied `bytes` from `source_offset` in another allocation to `offset`. A byte counts as
    /// written if its source does.
    pub fn note_host_copy(&self, offset: u64, source: &Self, source_offset: u64, bytes: u64) {
        let is_written = |at| {
            source
                .first_uninitialised(source_offset + (at - offset), 1)
                .is_none()
        };
        for (granule, copied) in self.granules(offset, bytes) {
            let start = (granule as u64) << self.granule_bits;
            let (first, len) = (copied.trailing_zeros(), copied.count_ones());
            let from = source_offset + (start + u64::from(first) - offset);
            if source.first_uninitialised(from, len.into()).is_none() {
                self.initialise(granule, copied);
                continue;
            }
            for byte in first..first + len {
                if is_written(start + u64::from(byte)) {
                    self.initialise(granule, 1 << byte);
                } else {
                    self.forget(granule, 1 << byte);
                }
            }
        }
    }

    /// Clears the flags of the current launch.
    pub fn end_launch(&self) {
        for page in 0..self.dirty_pages.len() {
            // SAFETY: as in `flag`.
            if unsafe { &*self.dirty_pages.at(page) }.swap(0, Relaxed) != 0 {
                for granule in page << PAGE_BITS..self.flags.len().min((page + 1) << PAGE_BITS) {
                    self.flag(granule).fetch_and(INITIALISED, Relaxed);
                }
            }
        }
    }
}
