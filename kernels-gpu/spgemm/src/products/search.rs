//! A row's columns in shared memory, and the search for the place of a product among them.

use crate::products::operands::Structure;
use cuda_std::prelude::*;

/// Columns in ascending order, and an accumulator for each, with room for a power of two.
#[derive(Clone, Copy)]
pub struct Entries<T> {
    /// The room.
    pub capacity: u32,
    /// The sums.
    pub sums: Shared<T>,
    /// The columns; 2^32 - 1 past the last one.
    pub columns: Shared<u32>,
}

/// The place of a column among `capacity` ascending ones, a power of two, of which it is one.
///
/// # Safety
///
/// The columns are there.
#[inline(always)]
pub(crate) unsafe fn place(columns: Shared<u32>, capacity: u32, column: u32) -> usize {
    let mut place = 0;
    let mut step = capacity / 2;
    while step > 0 {
        // SAFETY: `place + step` is at most `capacity - 1` plus one.
        if unsafe { columns.load((place + step - 1) as usize) } < column {
            place += step;
        }
        step /= 2;
    }
    place as usize
}

impl<T: Real> Entries<T> {
    /// Bytes of shared memory.
    pub const fn bytes(capacity: u32) -> u32 {
        capacity * (size_of::<T>() as u32 + 4)
    }

    /// Entries in the dynamic shared memory, after those of `index` teams.
    #[inline(always)]
    pub fn of_team(index: u32, capacity: u32) -> Self {
        let base = shared::dynamic_shared_mem::<u8>();
        let sums = base
            .offset((index * Self::bytes(capacity)) as usize)
            .cast::<T>();
        Self {
            capacity,
            sums,
            columns: sums.offset(capacity as usize).cast::<u32>(),
        }
    }

    /// Loads `count` columns of `c` from `from` on, which are those of the entries from `start` on, with sums of zero; what
    /// thread `thread` of `threads` does of it. Columns that `c` wants it gets.
    ///
    /// # Safety
    ///
    /// There are so many columns, no more than there is room for; the team synchronises before it uses them.
    #[inline(always)]
    pub unsafe fn load(
        &self,
        c: &Structure,
        from: Global<u32>,
        [start, count]: [u32; 2],
        [thread, threads]: [u32; 2],
    ) {
        let mut i = thread;
        while i < self.capacity {
            // SAFETY: the caller's contract.
            unsafe {
                let mut column = u32::MAX;
                if i < count {
                    column = from.load(i as usize);
                    c.put(start + i, column);
                }
                self.columns.store(i as usize, column);
                self.sums.store(i as usize, T::ZERO);
            }
            i += threads;
        }
    }

    /// The place of a column that is one of them.
    ///
    /// # Safety
    ///
    /// The columns have been loaded.
    #[inline(always)]
    pub unsafe fn place(&self, column: u32) -> usize {
        // SAFETY: the caller's contract.
        unsafe { place(self.columns, self.capacity, column) }
    }

    /// Writes the first `count` sums from `to` on: what thread `thread` of `threads` does of it.
    ///
    /// # Safety
    ///
    /// There is room for them; the team has synchronised.
    #[inline(always)]
    pub unsafe fn write(&self, to: GlobalMut<T>, count: u32, thread: u32, threads: u32) {
        let mut i = thread;
        while i < count {
            // SAFETY: the caller's contract.
            unsafe { to.store(i as usize, self.sums.load(i as usize)) };
            i += threads;
        }
    }
}
