//! The counters of a product's kernels: one buffer, which one call fills with zeros, and of which one copy fetches
//! all counters of a phase.

use crate::device::{Device, DeviceBuffer};
use crate::operand::OperandError;
use cuda_std::memory::GlobalMut;
use warprow_kernels::spgemm::analysis::numeric_bins::tiles;
use warprow_kernels::spgemm::products::bins::BINS;

/// The counters of a product.
#[derive(Debug)]
pub struct Counters(DeviceBuffer<u32>);

/// A phase of a product.
#[derive(Clone, Copy, Debug)]
pub enum PhaseName {
    /// It computes the structure of C.
    Symbolic,
    /// It computes the values of C.
    Numeric,
}

impl PhaseName {
    /// The first word of its counters.
    fn start(self) -> usize {
        match self {
            Self::Symbolic => 0,
            Self::Numeric => NUMERIC,
        }
    }
}

/// The counts of a phase that the host reads: the items of each bin, and two totals.
pub struct PhaseCounts {
    /// The items of each bin.
    pub bins: Vec<u32>,
    /// Symbolic phase: all products, and the columns to stage. Numeric phase: all entries, and 0.
    pub totals: [u64; 2],
}

impl PhaseCounts {
    fn of_words(words: &[u32]) -> Self {
        let (bins, totals) = words.split_at(BINS as usize);
        let total = |at: usize| u64::from(totals[at]) | u64::from(totals[at + 1]) << 32;
        Self {
            bins: bins.to_vec(),
            totals: [total(0), total(2)],
        }
    }
}

/// Words of the items of each bin, and the totals behind them.
const PHASE: usize = BINS as usize + 4;

/// Where the words are: of the symbolic phase, of the numeric one, the cursors of both, the number of long rows, the
/// next tile, and the tiles' sums.
const NUMERIC: usize = PHASE;
const CURSORS: usize = 2 * PHASE;
const LONG_ROWS: usize = CURSORS + 2 * BINS as usize;
const NEXT_TILE: usize = LONG_ROWS + 1;
const SUMS: usize = LONG_ROWS + 2;

impl Counters {
    /// Zeros, for a product of so many rows.
    pub fn new(device: &Device, rows: u32) -> Result<Self, OperandError> {
        Ok(Self(device.zeros(SUMS + 2 * tiles(rows) as usize)?))
    }

    /// The items of each bin of a phase.
    pub fn bins(&mut self, phase: PhaseName) -> GlobalMut<u32> {
        self.at(phase.start())
    }

    /// The totals of a phase.
    pub fn totals(&mut self, phase: PhaseName) -> GlobalMut<u64> {
        self.at(phase.start() + BINS as usize).cast()
    }

    /// Where the next item of each bin goes.
    pub fn cursors(&mut self, phase: PhaseName) -> GlobalMut<u32> {
        self.at(match phase {
            PhaseName::Symbolic => CURSORS,
            PhaseName::Numeric => CURSORS + BINS as usize,
        })
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

    /// The counts of a phase. It waits for the device.
    pub fn counted(&self, phase: PhaseName) -> Result<PhaseCounts, OperandError> {
        let mut words = [0; PHASE];
        self.0.copy_part_to_slice(phase.start(), &mut words)?;
        Ok(PhaseCounts::of_words(&words))
    }

    /// As [`counted`](Self::counted), while the device goes on with what `launch` launches, which must not change the
    /// counts of the phase.
    pub fn counted_beside<R>(
        &self,
        phase: PhaseName,
        launch: impl FnOnce() -> Result<R, OperandError>,
    ) -> Result<(PhaseCounts, R), OperandError> {
        let start = phase.start();
        let words = self.0.slice(start..start + PHASE)?.start_words()?;
        let launched = launch()?;
        Ok((PhaseCounts::of_words(&words.wait()?), launched))
    }

    fn at(&mut self, word: usize) -> GlobalMut<u32> {
        self.0.mutable().offset(word)
    }
}

// Sums are of 8 bytes.
const _: () = assert!(PHASE.is_multiple_of(2) && SUMS.is_multiple_of(2));
