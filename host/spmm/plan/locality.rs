//! Locality: how a matrix's nonzeros spread over its columns, and how far rows that are near each other share columns.
//!
//! Nonzeros of one column read the same row of X. A cache that holds the rows of X of the columns with the most
//! nonzeros serves the nonzeros in these columns ([`ColumnProfile`]). If rows that run at the same time share
//! columns, it serves more ([`distinct_share`], [`Localities`]); both are measured on a sample of the rows, see
//! [`row_windows`](super::row_windows).

use super::row_windows::{RowWindow, windows};
use crate::csr::DevicePattern;
use crate::device::{Device, DeviceBuffer};
use crate::operand::OperandError;
use warprow_kernels::spmm::plan::columns::{self, BINS};
use warprow_kernels::spmm::plan::reuse::{MAX_WINDOW_ROWS, sampled_one_in};

/// Rows that a multiprocessor works on at the same time.
pub const NEIGHBOURS: u32 = 64;

/// Maximum number of windows of [`NEIGHBOURS`] rows in the sample.
const MAX_WINDOWS: u32 = 1024;

/// Rows of the windows whose locality is measured: of neighbouring tasks, of a multiprocessor, of the L2 cache.
const WINDOW_ROWS: [u32; 3] = [8, NEIGHBOURS, MAX_WINDOW_ROWS];

/// Maximum number of windows of each size in the sample.
const LOCALITY_WINDOWS: [u32; 3] = [MAX_WINDOWS, MAX_WINDOWS, 128];

/// The least locality, as the logarithm of none is infinite.
const LEAST_LOCALITY: f64 = 1e-3;

/// Element `b`: the number of columns or rows that have `2^b` to `2^(b+1) - 1` nonzeros, and the number of their
/// nonzeros.
pub type LengthBins = [(u64, u64); BINS];

/// A histogram of the columns of a matrix by the number of their nonzeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnProfile {
    bins: LengthBins,
}

/// The histogram of so many columns or rows, whose nonzeros have been counted.
fn binned(
    device: &Device,
    count: u32,
    counts: &DeviceBuffer<u32>,
) -> Result<LengthBins, OperandError> {
    let mut bins = device.zeros::<u64>(2 * BINS)?;
    if count > 0 {
        let arguments = (count, counts.read_only(), bins.mutable());
        // SAFETY: a count for each of them; the bins are zeroed.
        unsafe { device.launch(&columns::bin(), columns::launch_bin(count), arguments)? };
    }
    let numbers = bins.download()?;
    Ok(std::array::from_fn(|bin| {
        (numbers[2 * bin], numbers[2 * bin + 1])
    }))
}

/// The histogram of `nonzeros` nonzeros that are spread evenly over as many of `count` columns or rows as they can be.
fn even_bins(count: u32, nonzeros: u32) -> LengthBins {
    let mut bins = [(0, 0); BINS];
    let used = count.min(nonzeros);
    if let Some(each) = nonzeros.checked_div(used) {
        bins[each.ilog2() as usize] = (used.into(), nonzeros.into());
    }
    bins
}

/// A histogram of the rows of a matrix by the number of their nonzeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLengths {
    bins: LengthBins,
}

impl RowLengths {
    /// Counts those of a matrix on its device, and waits for the device.
    pub fn measure(a: &DevicePattern) -> Result<Self, OperandError> {
        let device = a.device();
        let mut counts = device.uninitialized::<u32>(a.rows as usize)?;
        if a.rows > 0 {
            let arguments = (a.rows, a.row_ptr.read_only(), counts.mutable());
            // SAFETY: the matrix has `rows + 1` row pointers; a count for each row.
            unsafe { device.launch(&columns::lengths(), columns::launch_bin(a.rows), arguments)? };
        }
        let bins = binned(device, a.rows, &counts)?;
        Ok(Self { bins })
    }

    /// Those of `nonzeros` nonzeros that are spread evenly over `rows` rows.
    pub fn even(rows: u32, nonzeros: u32) -> Self {
        Self {
            bins: even_bins(rows, nonzeros),
        }
    }

    /// Those of so many rows each with so many nonzeros.
    #[cfg(test)]
    pub fn of(rows: &[(u32, u32)]) -> Self {
        let mut bins = [(0, 0); BINS];
        for &(rows, nonzeros) in rows {
            let bin = &mut bins[(nonzeros / rows).ilog2() as usize];
            *bin = (bin.0 + u64::from(rows), bin.1 + u64::from(nonzeros));
        }
        Self { bins }
    }

    /// An upper bound of the nonzeros of a row.
    pub fn longest(&self) -> u64 {
        let last = self.bins.iter().rposition(|(rows, _)| *rows > 0);
        last.map_or(0, |bin| (1 << (bin + 1)) - 1)
    }

    /// Each bin that has rows: a power of two that is above their lengths, their number, and that of their nonzeros.
    pub fn iter(&self) -> impl Iterator<Item = (u64, f64, f64)> {
        let bins = (1..).map(|log| 1 << log).zip(self.bins);
        bins.filter(|(_, (rows, _))| *rows > 0)
            .map(|(above, (rows, nonzeros))| (above, rows as f64, nonzeros as f64))
    }
}

impl ColumnProfile {
    /// Counts the nonzeros of each column of a matrix on its device, and waits for the device.
    pub fn measure(
        device: &Device,
        cols: u32,
        col_idx: &DeviceBuffer<u32>,
    ) -> Result<Self, OperandError> {
        let mut counts = device.zeros::<u32>(cols as usize)?;
        if !col_idx.is_empty() {
            // Row pointers are u32.
            let nonzeros = col_idx.len() as u32;
            // SAFETY: columns are below `cols`, each has a zeroed count.
            unsafe {
                let arguments = (nonzeros, col_idx.read_only(), counts.mutable());
                device.launch(
                    &columns::count(),
                    columns::launch_count(nonzeros),
                    arguments,
                )?;
            }
        }
        let bins = binned(device, cols, &counts)?;
        Ok(Self { bins })
    }

    /// The expected number of distinct columns of `nonzeros` nonzeros that are drawn at random from the matrix.
    pub fn expected_distinct(&self, nonzeros: f64) -> f64 {
        let all: u64 = self.bins.iter().map(|(_, nonzeros)| nonzeros).sum();
        self.bins
            .iter()
            .filter(|(columns, _)| *columns > 0)
            .map(|&(columns, of_bin)| {
                let (columns, of_bin) = (columns as f64, of_bin as f64);
                // The number of draws of one column nearly has a Poisson distribution.
                let mean = nonzeros * of_bin / (all as f64 * columns);
                columns * -(-mean).exp_m1()
            })
            .sum()
    }

    /// That of `nonzeros` nonzeros that are spread evenly over as many of `columns` columns as they can be.
    pub fn even(columns: u32, nonzeros: u32) -> Self {
        Self {
            bins: even_bins(columns, nonzeros),
        }
    }

    /// The number of columns that have nonzeros.
    pub fn used(&self) -> f64 {
        let columns: u64 = self.bins.iter().map(|(columns, _)| columns).sum();
        columns as f64
    }

    /// The share of the nonzeros that lie in the `columns` columns with the most nonzeros, from 0 to 1. Columns of
    /// one bin count alike.
    pub fn covered(&self, columns: f64) -> f64 {
        let all: u64 = self.bins.iter().map(|(_, nonzeros)| nonzeros).sum();
        let (mut left, mut covered) = (columns, 0.0);
        for &(columns, nonzeros) in self.bins.iter().rev() {
            let taken = left.min(columns as f64);
            if taken <= 0.0 {
                continue;
            }
            covered += nonzeros as f64 * (taken / columns as f64);
            left -= taken;
        }
        if all == 0 { 1.0 } else { covered / all as f64 }
    }
}

/// The distinct columns of [`NEIGHBOURS`] consecutive rows, divided by the nonzeros of these rows: 1 if they share
/// none, and for a matrix without nonzeros. The rows are taken in `order`, if there is one. It waits for the device.
pub fn distinct_share(
    a: &DevicePattern,
    order: Option<&DeviceBuffer<u32>>,
) -> Result<f64, OperandError> {
    let (mut counted, mut distinct) = (0_u64, 0_u64);
    for window in windows(a, &[(NEIGHBOURS, MAX_WINDOWS)], order)?.concat() {
        counted += u64::from(window.counted);
        distinct += u64::from(window.distinct);
    }
    Ok(if counted == 0 {
        1.0
    } else {
        distinct as f64 / counted as f64
    })
}

/// The distinct columns of consecutive rows, divided by those of as many nonzeros drawn at random from the matrix: 1
/// if the order of the rows does not help.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Localities {
    /// Of 8 rows.
    pub near: f64,
    /// Of [`NEIGHBOURS`] rows.
    pub middle: f64,
    /// Of a thousand rows. Graphs of communities whose rows lie together have 0.2 to 0.4.
    pub far: f64,
}

impl Localities {
    /// Of rows in an order that does not help.
    pub const NONE: Self = Self {
        near: 1.0,
        middle: 1.0,
        far: 1.0,
    };

    /// Of so many rows, between the measured numbers. The distinct columns of rows that overlap, as those of a band do,
    /// grow by a power of the rows, so the logarithms are interpolated.
    pub fn of(&self, rows: f64) -> f64 {
        let localities = [self.near, self.middle, self.far].map(|local| local.max(LEAST_LOCALITY));
        let measured = WINDOW_ROWS.into_iter().zip(localities);
        let mut before = (0.0, 0.0);
        let rows = rows.max(1.0).log2();
        for (window, local) in measured {
            let node = (f64::from(window).log2(), local.ln());
            if rows <= node.0 {
                let part = (rows - before.0) / (node.0 - before.0);
                return (before.1 + part * (node.1 - before.1)).exp();
            }
            before = node;
        }
        before.1.exp()
    }
}

/// What a sample of a matrix's rows tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowSample {
    /// How far neighbouring rows share columns.
    pub locality: Localities,
    /// The standard deviation of the nonzeros of a row over their mean, as far as windows of neighbouring rows tell: as
    /// if their lengths were independent.
    pub variation: f64,
}

impl RowSample {
    /// Measures the rows of a matrix in `order`, or in the matrix's own. It waits for the device.
    pub fn measure(
        a: &DevicePattern,
        columns: &ColumnProfile,
        order: Option<&DeviceBuffer<u32>>,
    ) -> Result<Self, OperandError> {
        let kinds: Vec<_> = WINDOW_ROWS.into_iter().zip(LOCALITY_WINDOWS).collect();
        let mean_row = f64::from(a.nonzeros()) / f64::from(a.rows.max(1));
        let found = windows(a, &kinds, order)?;
        let locality = |kind: usize| {
            let (mut counted, mut distinct) = (0.0, 0.0);
            for window in found.get(kind).into_iter().flatten() {
                let one_of = f64::from(sampled_one_in(window.nonzeros));
                counted += one_of * f64::from(window.counted);
                distinct += one_of * f64::from(window.distinct);
            }
            let nonzeros = mean_row * f64::from(WINDOW_ROWS[kind].min(a.rows));
            let expected = columns.expected_distinct(nonzeros) / nonzeros;
            if counted == 0.0 {
                1.0
            } else {
                (distinct / counted / expected).min(1.0)
            }
        };
        let smallest = found.first().map_or(&[][..], |windows| &windows[..]);
        Ok(Self {
            locality: Localities {
                near: locality(0),
                middle: locality(1),
                far: locality(2),
            },
            variation: variation(smallest, WINDOW_ROWS[0]),
        })
    }
}

/// The standard deviation of the nonzeros of a row over their mean, from windows of so many rows; 0 if they are fewer
/// than two.
fn variation(windows: &[RowWindow], rows: u32) -> f64 {
    // The last window may have fewer rows.
    let whole = &windows[..windows.len().saturating_sub(1)];
    let count = whole.len() as f64;
    let nonzeros = || whole.iter().map(|window| f64::from(window.nonzeros));
    let mean = nonzeros().sum::<f64>() / count;
    if whole.len() < 2 || mean == 0.0 {
        return 0.0;
    }
    let squares: f64 = nonzeros().map(|nonzeros| (nonzeros - mean).powi(2)).sum();
    (squares / (count - 1.0) * f64::from(rows)).sqrt() / mean
}

#[cfg(test)]
mod tests;
