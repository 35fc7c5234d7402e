//! Locality: how a matrix's nonzeros spread over its columns, and how far rows that are near each other share columns.
//!
//! Nonzeros of one column read the same row of X. A cache that holds the rows of X of the columns with the most
//! nonzeros serves the nonzeros in these columns ([`ColumnProfile`]). If rows that run at the same time share
//! columns, it serves more ([`distinct_share`], [`Localities`]); both are measured on a sample of the rows, see
//! [`row_windows`](super::row_windows).

use super::length_bins::ColumnProfile;
use super::row_windows::{RowWindow, windows};
use crate::csr::DevicePattern;
use crate::device::DeviceBuffer;
use crate::operand::OperandError;
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
