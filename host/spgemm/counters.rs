//! What the kernels of a product count in: one buffer of zeros, so that one call makes them and one copy fetches those that
//! the host wants together.

use crate::device::{Device, DeviceBuffer};
use crate::error::Error;
use cuda_std::memory::GlobalMut;
use warprow_kernels::spgemm::analysis::entry_work::tiles;
use warprow_kernels::spgemm::products::bins::BINS;

/// The counters of a product.
#[derive(Debug)]
pub(super) struct Counters(DeviceBuffer<u32>);

/// What the host wants to know of a phase: the items of each bin, and two numbers.
pub(super) struct Counted {
    /// The items of each bin.
    pub bins: Vec<u32>,
    /// All products and the room for columns; or all entries, and 0.
    pub totals: [u64; 2],
}

/// Words of the items of each bin, and the totals behind them.
const PHASE: usize = BINS as usize + 4;

/// Where the words are: of the symbolic phase, of the numeric one, the cursors of both, the number of long rows, the next
/// tile, and the tiles' sums.
const NUMERIC: usize = PHASE;
const CURSORS: usize = 2 * PHASE;
const LONG_ROWS: usize = CURSORS + 2 * BINS as usize;
const NEXT_TILE: usize = LONG_ROWS + 1;
const SUMS: usize = LONG_ROWS + 2;

impl Counters {
    /// Zeros, for a product of so many rows.
    pub fn new(device: &Device, rows: u32) -> Result<Self, Error> {
        Ok(Self(device.zeros(SUMS + 2 * tiles(rows) as usize)?))
    }

    /// The items of each bin of the symbolic phase, or of the numeric one.
    pub fn bins(&mut self, numeric: bool) -> GlobalMut<u32> {
        self.at(if numeric { NUMERIC } else { 0 })
    }

    /// The totals of the symbolic phase, or of the numeric one.
    pub fn totals(&mut self, numeric: bool) -> GlobalMut<u64> {
        let phase = if numeric { NUMERIC } else { 0 };
        self.at(phase + BINS as usize).cast()
    }

    /// Where the next item of each bin goes.
    pub fn cursors(&mut self, numeric: bool) -> GlobalMut<u32> {
        self.at(CURSORS + if numeric { BINS as usize } else { 0 })
    }

    /// The number of long rows of A.
    pub fn long_rows(&mut self) -> GlobalMut<u32> {
        self.at(LONG_ROWS)
    }

    /// The next tile of rows.
    pub fn next_tile(&mut self) -> GlobalMut<u32> {
        self.at(NEXT_TILE)
    }

    /// The sum of each tile of rows.
    pub fn sums(&mut self) -> GlobalMut<u64> {
        self.at(SUMS).cast()
    }

    /// What was counted in a phase; it waits for the device.
    pub fn counted(&self, numeric: bool) -> Result<Counted, Error> {
        let mut words = [0; PHASE];
        let start = if numeric { NUMERIC } else { 0 };
        self.0.copy_part_to_slice(start, &mut words)?;
        let (bins, totals) = words.split_at(BINS as usize);
        let total = |at: usize| u64::from(totals[at]) | u64::from(totals[at + 1]) << 32;
        Ok(Counted {
            bins: bins.to_vec(),
            totals: [total(0), total(2)],
        })
    }

    fn at(&mut self, word: usize) -> GlobalMut<u32> {
        self.0.mutable().offset(word)
    }
}

// Sums are of 8 bytes.
const _: () = assert!(PHASE.is_multiple_of(2) && SUMS.is_multiple_of(2));
