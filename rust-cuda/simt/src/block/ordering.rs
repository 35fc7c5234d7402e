//! What the memory model asks about a lane.

use super::Lane;
use crate::limits::WARP_SIZE;
use crate::memory::shadow::{Accessor, Record};

impl Accessor for Lane {
    #[inline]
    fn index(&self) -> u32 {
        Self::index(self)
    }

    #[inline]
    fn time(&self) -> u32 {
        Self::time(self)
    }

    fn happens_after(&self, record: &Record) -> bool {
        let (thread, time) = (record.thread(), record.time());
        thread == self.index
            || self.orders_block_before(time)
            || (thread / WARP_SIZE == self.index / WARP_SIZE
                && self.warp().orders(thread % WARP_SIZE, time, self.lane()))
            || self.has_acquired(self.block().number(), record)
    }

    #[cold]
    fn has_acquired(&self, block: u32, record: &Record) -> bool {
        Self::has_acquired(self, block, record)
    }

    #[inline]
    fn orders_block_before(&self, time: u32) -> bool {
        self.block().orders_all_before(time)
    }

    #[inline]
    fn orders_warp_before(&self, time: u32) -> bool {
        self.warp().orders_all_before(time)
    }
}
