//! The rows of each bin of a phase, listed on the device.

use crate::csr::extent;
use crate::device::{Device, DeviceBuffer};
use crate::error::Error;
use cuda_std::memory::{Global, GlobalMut};
use std::ops::Range;
use warprow_kernels::spgemm::Items;
use warprow_kernels::spgemm::analysis::{row_lists, work};
use warprow_kernels::spgemm::products::bins::BINS;

/// The items of each bin, one bin's after the other's.
#[derive(Debug)]
pub(super) struct Lists {
    counts: Vec<u32>,
    list: DeviceBuffer<u32>,
}

impl Lists {
    /// Lists the rows by their words, which a kernel has made and counted. It waits for the counts.
    pub(super) fn make(
        device: &Device,
        rows: u32,
        words: &DeviceBuffer<u32>,
        counts: &DeviceBuffer<u32>,
    ) -> Result<Self, Error> {
        let host_counts = counts.download()?;
        let mut cursors = device.zeros::<u32>(BINS as usize)?;
        let (counts, cursors) = (counts.read_only(), cursors.mutable());
        Self::of_counted(device, rows, words, host_counts, counts, cursors)
    }

    /// Lists the rows by their words, of which so many are in each bin, as the host knows and the device; each bin has a cursor,
    /// zero.
    pub(super) fn of_counted(
        device: &Device,
        rows: u32,
        words: &DeviceBuffer<u32>,
        host_counts: Vec<u32>,
        counts: Global<u32>,
        cursors: GlobalMut<u32>,
    ) -> Result<Self, Error> {
        let items: u64 = (host_counts[1..BINS as usize].iter())
            .map(|&count| u64::from(count))
            .sum();
        let items = extent("the number of chunks of rows", items as usize)?;
        let list = Self::place(device, rows, words, counts, cursors, items)?;
        Ok(Self::new(host_counts, list))
    }

    /// Launches the kernel that lists the rows, `items` items at most; each bin has a cursor, zero.
    pub(super) fn place(
        device: &Device,
        rows: u32,
        words: &DeviceBuffer<u32>,
        counts: Global<u32>,
        cursors: GlobalMut<u32>,
        items: u32,
    ) -> Result<DeviceBuffer<u32>, Error> {
        let mut list = device.uninitialized::<u32>(2 * items as usize)?;
        if items > 0 {
            let arguments = (rows, words.read_only(), counts, cursors, list.mutable());
            // SAFETY: a word for each row; the list has a pair for each item counted, but the first bin's.
            unsafe { device.launch(&row_lists::place(), work::launch_rows(rows), arguments)? };
        }
        Ok(list)
    }

    /// The lists of items counted.
    pub(super) fn new(counts: Vec<u32>, list: DeviceBuffer<u32>) -> Self {
        Self { counts, list }
    }

    /// How many items a bin has.
    pub(super) fn count(&self, bin: u32) -> u32 {
        self.counts[bin as usize]
    }

    /// How many items some bins have together.
    pub(super) fn count_of(&self, bins: Range<u32>) -> u32 {
        bins.map(|bin| self.count(bin)).sum()
    }

    /// The items of some bins that follow each other; `None` if there are none.
    pub(super) fn items(&self, bins: Range<u32>) -> Option<Items> {
        let count = self.count_of(bins.clone());
        (count > 0).then(|| Items {
            first: self.count_of(1..bins.start),
            count,
            list: Global::from_address(self.list.read_only().address()),
        })
    }
}
