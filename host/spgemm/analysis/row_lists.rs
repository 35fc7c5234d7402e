//! Lists of the rows in each bin of a phase, made on the device.

use crate::device::{Device, DeviceBuffer};
use crate::operand::{OperandError, extent};
use cuda_std::memory::{Global, GlobalMut};
use std::ops::Range;
use warprow_kernels::spgemm::RowList;
use warprow_kernels::spgemm::analysis::{row_lists, work};
use warprow_kernels::spgemm::products::bins::BINS;

/// The items of all bins, one bin after the other.
#[derive(Debug)]
pub struct RowLists {
    counts: Vec<u32>,
    list: DeviceBuffer<u32>,
}

impl RowLists {
    /// Lists the rows by their words, which a kernel has made and counted. It waits for the counts.
    pub fn make(
        device: &Device,
        rows: u32,
        words: &DeviceBuffer<u32>,
        counts: &DeviceBuffer<u32>,
    ) -> Result<Self, OperandError> {
        let host_counts = counts.download()?;
        let mut cursors = device.zeros::<u32>(BINS as usize)?;
        let (counts, cursors) = (counts.read_only(), cursors.mutable());
        Self::of_counted(device, rows, words, host_counts, counts, cursors)
    }

    /// Lists the rows by their words. `host_counts` and `counts` have the number of items of each bin, on the host and
    /// on the device; `cursors` has a zero for each bin.
    pub fn of_counted(
        device: &Device,
        rows: u32,
        words: &DeviceBuffer<u32>,
        host_counts: Vec<u32>,
        counts: Global<u32>,
        cursors: GlobalMut<u32>,
    ) -> Result<Self, OperandError> {
        let items: u64 = (host_counts[1..BINS as usize].iter())
            .map(|&count| u64::from(count))
            .sum();
        let items = extent("the number of chunks of rows", items as usize)?;
        let list = Self::fill(device, rows, words, counts, cursors, items)?;
        Ok(Self::new(host_counts, list))
    }

    /// Launches the kernel that lists the rows, at most `items` items; the cursors are zeros.
    pub fn fill(
        device: &Device,
        rows: u32,
        words: &DeviceBuffer<u32>,
        counts: Global<u32>,
        cursors: GlobalMut<u32>,
        items: u32,
    ) -> Result<DeviceBuffer<u32>, OperandError> {
        let mut list = device.uninitialized::<u32>(2 * items as usize)?;
        if items > 0 {
            let arguments = (rows, words.read_only(), counts, cursors, list.mutable());
            // SAFETY: `words` has a number for each row, and `list` has two for each item that is not in the first bin,
            // by the contract of this function.
            unsafe {
                device.launch(
                    &row_lists::fill_row_lists(),
                    work::launch_rows(rows),
                    arguments,
                )?
            };
        }
        Ok(list)
    }

    /// The lists of items that have been counted.
    pub fn new(counts: Vec<u32>, list: DeviceBuffer<u32>) -> Self {
        Self { counts, list }
    }

    /// Frees the items; their counts stay.
    pub fn free_items(&mut self, device: &Device) -> Result<(), OperandError> {
        self.list = device.uninitialized(0)?;
        Ok(())
    }

    /// Whether no bin but the first, of which nothing is launched, has items.
    pub fn is_empty(&self) -> bool {
        self.count_of(1..BINS) == 0
    }

    /// How many items a bin has.
    pub fn count(&self, bin: u32) -> u32 {
        self.counts[bin as usize]
    }

    /// The number of items of some bins together.
    pub fn count_of(&self, bins: Range<u32>) -> u32 {
        bins.map(|bin| self.count(bin)).sum()
    }

    /// The items of some bins that follow each other; `None` if there are none.
    pub fn items(&self, bins: Range<u32>) -> Option<RowList> {
        let count = self.count_of(bins.clone());
        (count > 0).then(|| RowList {
            first: self.count_of(1..bins.start),
            count,
            list: Global::from_address(self.list.read_only().address()),
        })
    }

    /// The items of a bin: for each a row, and the number of its chunk or part. It waits for the device.
    pub fn download_items(&self, bin: u32) -> Result<Vec<[u32; 2]>, OperandError> {
        let first = 2 * self.count_of(1..bin) as usize;
        let items = self
            .list
            .slice(first..first + 2 * self.count(bin) as usize)?;
        let items = items.download()?;
        Ok(items
            .chunks_exact(2)
            .map(|item| [item[0], item[1]])
            .collect())
    }
}
