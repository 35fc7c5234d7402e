//! Shared memory of a block: first dynamic shared memory, then static arrays.
//!
//! An address consists of the number of an array and the place in shared memory, which is that of the hardware. So an
//! access is known to leave its array even if it lands in another one.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::limits::{MAX_SHARED, MAX_STATIC_SHARED};
use crate::memory::allocations::AlignedBytes;
use crate::memory::buffer::Zeroed;
use crate::memory::shadow::{ReadCell, WriteCell};

/// Number of bits of the place in an address, more than it needs: far out of bounds is not yet the next array.
const PLACE_BITS: u32 = 20;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;
/// The address of dynamic shared memory, array 1. There is no array 0, so 0 is never valid.
pub(crate) const BASE: u64 = 1 << PLACE_BITS;
/// Maximum number of static arrays.
const MAX_ARRAYS: usize = 254;
/// Maximum alignment of a static array.
const MAX_ALIGN: u32 = 1024;
/// The logarithm of the size of a granule of the race detector.
const GRANULE_BITS: u32 = 2;

pub(crate) struct Shared {
    /// Bytes of dynamic shared memory.
    dynamic: u32,
    /// Bytes in use.
    size: Cell<u32>,
    /// Where each array starts and ends. All arrays that do not exist are empty.
    arrays: [Cell<(u32, u32)>; MAX_ARRAYS + 2],
    /// Bytes of static variables, without padding.
    static_bytes: Cell<u32>,
    variables: RefCell<Vec<Variable>>,
    /// Allocated by the first block that uses shared memory.
    storage: OnceCell<Storage>,
}

/// A static variable. It has the same address in every block.
struct Variable {
    /// Identifies the variable in the source.
    site: usize,
    bytes: u32,
    align: u32,
    address: u64,
    element: Element,
}

/// The elements of an array, for reports: the name of their type, and their size in bytes; zero if it is not known.
pub(crate) type Element = (&'static str, u32);

/// Flag: an asynchronous copy to the granule is in flight. Its bytes count as never written.
const IN_FLIGHT: u8 = 1 << 4;

/// The contents of shared memory, and what the checks know about it.
pub(crate) struct Storage {
    data: Zeroed<AlignedBytes>,
    /// For each granule, a bit for each byte that the block has written, and [`IN_FLIGHT`].
    written: Zeroed<AtomicU8>,
    pub writes: Zeroed<WriteCell>,
    pub reads: Zeroed<ReadCell>,
}

impl Shared {
    pub fn new(dynamic: u32) -> Self {
        let arrays = [const { Cell::new((0, 0)) }; MAX_ARRAYS + 2];
        arrays[1].set((0, dynamic));
        Self {
            dynamic,
            size: Cell::new(dynamic),
            arrays,
            static_bytes: Cell::new(0),
            variables: RefCell::new(Vec::new()),
            storage: OnceCell::new(),
        }
    }

    /// Marks all contents as never written, for a new block.
    pub fn restart(&self) {
        if let Some(storage) = self.storage.get() {
            for granule in 0..(self.size.get() as usize).div_ceil(1 << GRANULE_BITS) {
                storage.written(granule).store(0, Relaxed);
            }
        }
    }

    /// Clears the records of the race detector, because the clock starts again.
    pub fn reset_times(&self) {
        if let Some(storage) = self.storage.get() {
            storage.clear_records();
        }
    }

    /// Bytes of static variables, without padding.
    pub fn static_bytes(&self) -> u32 {
        self.static_bytes.get()
    }

    /// Address and size in bytes of dynamic shared memory.
    pub fn dynamic(&self) -> (u64, u32) {
        (BASE, self.dynamic)
    }

    /// The place of `bytes` bytes at `address`, if they lie in one array.
    #[inline]
    pub fn place(&self, address: u64, bytes: u64) -> Option<u64> {
        let (place, (start, end)) = (address & PLACE_MASK, self.array(address));
        (place >= u64::from(start) && place + bytes <= u64::from(end)).then_some(place)
    }

    #[inline]
    fn array(&self, address: u64) -> (u32, u32) {
        let array = self.arrays.get((address >> PLACE_BITS) as usize);
        array.map_or((0, 0), Cell::get)
    }

    /// The offset of an address from the start of its array, and the size of the array.
    #[cold]
    pub fn within_array(&self, address: u64) -> (i64, u64) {
        let place = (address & PLACE_MASK).cast_signed();
        // A place in the upper half is in front of the next array.
        let in_front = place > PLACE_MASK.cast_signed() / 2;
        let next = address.wrapping_add(u64::from(in_front) << PLACE_BITS);
        let (start, end) = self.array(next);
        let place = place - (i64::from(in_front) << PLACE_BITS);
        (place - i64::from(start), u64::from(end - start))
    }

    /// The elements of the array that [`within_array`](Self::within_array) finds for an address.
    pub fn element(&self, address: u64) -> Element {
        let (offset, _) = self.within_array(address);
        let start = address.wrapping_sub(offset.cast_unsigned());
        let variables = self.variables.borrow();
        let found = variables.iter().find(|variable| variable.address == start);
        found.map_or(("", 0), |variable| variable.element)
    }

    #[inline]
    pub fn storage(&self) -> &Storage {
        self.storage.get_or_init(Storage::new)
    }

    /// The address of a static variable.
    ///
    /// # Errors
    ///
    /// If there is too little shared memory: the name of the quantity that exceeds its limit, its value, and the limit.
    ///
    /// # Panics
    ///
    /// If a site is used with two sizes or alignments, or the alignment is no power of two up to 1024.
    #[track_caller]
    pub fn variable(
        &self,
        site: usize,
        bytes: u32,
        align: u32,
        element: Element,
    ) -> Result<u64, (&'static str, u64, u32)> {
        let mut variables = self.variables.borrow_mut();
        if let Some(variable) = variables.iter().find(|variable| variable.site == site) {
            assert!(
                variable.bytes == bytes && variable.align == align,
                "a static variable of {bytes} bytes aligned to {align} at a site that has one of {} bytes \
                 aligned to {}",
                variable.bytes,
                variable.align
            );
            return Ok(variable.address);
        }
        assert!(
            align.is_power_of_two() && align <= MAX_ALIGN,
            "an alignment of {align} bytes: it must be a power of two, {MAX_ALIGN} at most"
        );
        let offset = u64::from(self.size.get()).next_multiple_of(u64::from(align));
        let end = offset + u64::from(bytes);
        let statics = u64::from(self.static_bytes.get()) + u64::from(bytes);
        if statics > u64::from(MAX_STATIC_SHARED) {
            return Err(("the static shared memory", statics, MAX_STATIC_SHARED));
        }
        if end > u64::from(MAX_SHARED) {
            return Err(("the static and dynamic shared memory", end, MAX_SHARED));
        }
        if variables.len() == MAX_ARRAYS {
            return Err((
                "the number of static arrays",
                1 + MAX_ARRAYS as u64,
                MAX_ARRAYS as u32,
            ));
        }
        self.static_bytes.set(statics as u32);
        self.size.set(end as u32);
        let array = variables.len() + 2;
        self.arrays[array].set((offset as u32, end as u32));
        let address = (array as u64) << PLACE_BITS | offset;
        variables.push(Variable {
            site,
            bytes,
            align,
            address,
            element,
        });
        Ok(address)
    }
}

impl Storage {
    fn new() -> Self {
        let granules = MAX_SHARED as usize >> GRANULE_BITS;
        Self {
            data: Zeroed::new(MAX_SHARED as usize / size_of::<AlignedBytes>()),
            written: Zeroed::new(granules),
            writes: Zeroed::new(granules),
            reads: Zeroed::new(granules),
        }
    }

    /// A pointer to the first of `MAX_SHARED` valid bytes, aligned to 16. Only the worker of the block uses them.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        self.data.pointer().cast()
    }

    fn written(&self, granule: usize) -> &AtomicU8 {
        // SAFETY: `at` checks the index and returns a valid pointer; the bits are only accessed as atomics.
        unsafe { &*self.written.at(granule) }
    }

    /// The granules of an access, and a bit for each byte that it touches in a granule.
    #[inline]
    pub fn granules(offset: u64, bytes: u64) -> (std::ops::RangeInclusive<usize>, u16) {
        const GRANULE: u64 = 1 << GRANULE_BITS;
        let (first, last) = (offset >> GRANULE_BITS, (offset + bytes - 1) >> GRANULE_BITS);
        let mask = ((1_u16 << bytes.min(GRANULE)) - 1) << (offset & (GRANULE - 1));
        (first as usize..=last as usize, mask)
    }

    /// Whether bytes of a granule can be read, or written if `reads` is false.
    #[inline]
    pub fn allows(&self, granule: usize, bytes: u16, reads: bool) -> bool {
        let written = if reads { bytes as u8 } else { 0 };
        self.written(granule).load(Relaxed) & (written | IN_FLIGHT) == written
    }

    pub fn is_in_flight(&self, granule: usize) -> bool {
        self.written(granule).load(Relaxed) & IN_FLIGHT != 0
    }

    #[inline]
    pub fn note_write(&self, granule: usize, bytes: u16) {
        let written = self.written(granule);
        written.store(written.load(Relaxed) | bytes as u8, Relaxed);
    }

    /// Notes whether an asynchronous copy to the granule is in flight. In either case nothing counts as written.
    pub fn note_copy(&self, granule: usize, in_flight: bool) {
        let state = if in_flight { IN_FLIGHT } else { 0 };
        self.written(granule).store(state, Relaxed);
    }

    fn clear_records(&self) {
        for granule in 0..self.writes.len() {
            // SAFETY: `at` returns valid cells, only this worker accesses them, and zero bytes are valid (`Zeroable`).
            unsafe {
                self.writes.at(granule).write_bytes(0, 1);
                self.reads.at(granule).write_bytes(0, 1);
            }
        }
    }
}
