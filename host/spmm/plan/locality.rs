//! Locality: how far rows that are near each other share columns.
//!
//! If rows that run at the same time share columns, caches serve more nonzeros than those of the most frequent columns
//! ([`ColumnProfile`]). [`Localities`] compares the distinct columns of windows of consecutive rows with those of as many
//! nonzeros at random, so hubs alone make no locality. Windows are a sample of the rows, see [`reuse`].

use super::column_profile::ColumnProfile;
use crate::csr::DevicePattern;
use crate::device::{DeviceBuffer, optional_pointer};
use crate::operand::OperandError;
use warprow_kernels::spmm::plan::reuse::{self, MAX_WINDOW_ROWS};

/// Rows that a multiprocessor works on at the same time.
pub const NEIGHBOURS: u32 = 64;

/// Maximum number of windows of [`NEIGHBOURS`] rows in the sample.
const MAX_WINDOWS: u32 = 1024;

/// Rows of the windows whose locality is measured: of neighbouring tasks, of a multiprocessor, of the L2 cache.
const WINDOW_ROWS: [u32; 3] = [8, NEIGHBOURS, MAX_WINDOW_ROWS];

/// Maximum number of windows of each size in the sample.
const LOCALITY_WINDOWS: [u32; 3] = [MAX_WINDOWS, MAX_WINDOWS, 128];

/// Nonzeros of a window that are read at most, in those of a mean window. Windows with more have hubs.
const MAX_MEAN_WINDOWS: f64 = 4.0;

/// The distinct columns of [`NEIGHBOURS`] consecutive rows, divided by the nonzeros of these rows: 1 if they share
/// none, and for a matrix without nonzeros. The rows are taken in `order`, if there is one. It waits for the device.
pub fn distinct_share(
    a: &DevicePattern,
    order: Option<&DeviceBuffer<u32>>,
) -> Result<f64, OperandError> {
    let sample = Sample {
        rows: NEIGHBOURS,
        windows: MAX_WINDOWS,
        nonzeros: u32::MAX,
    };
    let (mut counted, mut distinct) = (0_u64, 0_u64);
    for window in windows(a, &[sample], order)?.concat() {
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
    #[cfg(test)]
    pub const NONE: Self = Self {
        near: 1.0,
        middle: 1.0,
        far: 1.0,
    };

    /// Of so many rows, between the measured numbers.
    pub fn of(&self, rows: f64) -> f64 {
        let logs = WINDOW_ROWS.map(|rows| f64::from(rows).log2());
        let nodes = [
            (0.0, 1.0),
            (logs[0], self.near),
            (logs[1], self.middle),
            (logs[2], self.far),
        ];
        let rows = rows.max(1.0).log2();
        let between = nodes.windows(2).find(|ends| rows <= ends[1].0);
        between.map_or(self.far, |ends| {
            let part = (rows - ends[0].0) / (ends[1].0 - ends[0].0);
            ends[0].1 + part * (ends[1].1 - ends[0].1)
        })
    }

    /// Measures them for the rows of a matrix in `order`, or in the matrix's own. It waits for the device.
    pub fn measure(
        a: &DevicePattern,
        columns: &ColumnProfile,
        order: Option<&DeviceBuffer<u32>>,
    ) -> Result<Self, OperandError> {
        let mean_row = f64::from(a.nonzeros()) / f64::from(a.rows.max(1));
        let samples = [0, 1, 2].map(|kind| {
            let rows = WINDOW_ROWS[kind];
            let mean = mean_row * f64::from(rows.min(a.rows));
            Sample {
                rows,
                windows: LOCALITY_WINDOWS[kind],
                nonzeros: (MAX_MEAN_WINDOWS * mean).ceil() as u32,
            }
        });
        let found = windows(a, &samples, order)?;
        let locality = |kind: usize| {
            found
                .get(kind)
                .map_or(1.0, |found| of_windows(found, columns))
        };
        Ok(Self {
            near: locality(0),
            middle: locality(1),
            far: locality(2),
        })
    }
}

/// The distinct columns of some windows, divided by those of as many nonzeros at random.
fn of_windows(windows: &[RowWindow], columns: &ColumnProfile) -> f64 {
    let mut distinct = 0.0;
    // Windows, and their nonzeros, by the logarithm of these: their mean has nearly the mean number of distinct columns.
    let mut by_size = [(0.0, 0.0); u32::BITS as usize];
    for window in windows {
        let one_in = reuse::sampled_one_in(window.nonzeros);
        distinct += f64::from(one_in) * f64::from(window.distinct);
        if let Some(size) = window.nonzeros.checked_ilog2() {
            let (windows, nonzeros) = &mut by_size[size as usize];
            *windows += 1.0;
            *nonzeros += f64::from(window.nonzeros);
        }
    }
    let expected = by_size.iter().filter(|(windows, _)| *windows > 0.0);
    let expected =
        expected.map(|(windows, nonzeros)| windows * columns.expected_distinct(nonzeros / windows));
    let expected: f64 = expected.sum();
    if expected == 0.0 {
        1.0
    } else {
        (distinct / expected).min(1.0)
    }
}

/// What is counted: windows of consecutive rows.
#[derive(Clone, Copy)]
struct Sample {
    /// Rows of a window.
    rows: u32,
    /// Maximum number of windows.
    windows: u32,
    /// Nonzeros that are read of a window, about, if it has more.
    nonzeros: u32,
}

/// Consecutive rows, and what was counted of them.
#[derive(Clone, Copy)]
struct RowWindow {
    /// The nonzeros that were read.
    nonzeros: u32,
    /// Those of them in the sample of the columns.
    counted: u32,
    /// The distinct columns in the sample.
    distinct: u32,
}

/// Counts the windows of each sample, of rows in `order` or in the matrix's own.
fn windows(
    a: &DevicePattern,
    samples: &[Sample],
    order: Option<&DeviceBuffer<u32>>,
) -> Result<Vec<Vec<RowWindow>>, OperandError> {
    if a.nonzeros() == 0 {
        return Ok(vec![]);
    }
    let counts: Vec<u32> = samples
        .iter()
        .map(|sample| a.rows.div_ceil(sample.rows).min(sample.windows))
        .collect();
    let all: usize = counts.iter().map(|&count| count as usize).sum();
    let mut found = a.device().uninitialized::<u32>(3 * all)?;
    let mut first = 0;
    for (sample, &count) in samples.iter().zip(&counts) {
        let (row_ptr, col_idx) = (a.row_ptr.read_only(), a.col_idx.read_only());
        let arguments = (
            a.rows,
            sample.rows,
            sample.nonzeros,
            row_ptr,
            col_idx,
            optional_pointer(order),
            found.mutable().offset(3 * first),
        );
        // SAFETY: row pointers and columns are those of one matrix, which has a nonzero and so a row; columns are below
        // `a.cols`, so none is `u32::MAX`; `order` is a permutation of the rows; `found` has three numbers for each
        // window.
        unsafe {
            a.device()
                .launch(&reuse::count_distinct(), reuse::launch(count), arguments)?
        };
        first += count as usize;
    }
    let numbers = found.download()?;
    let mut windows = numbers.chunks_exact(3).map(|window| RowWindow {
        nonzeros: window[0],
        counted: window[1],
        distinct: window[2],
    });
    let of_sample = |&count: &u32| windows.by_ref().take(count as usize).collect();
    Ok(counts.iter().map(of_sample).collect())
}

#[cfg(test)]
mod tests;
