//! Locality: how a matrix's nonzeros spread over its columns, and how far rows that are near each other share columns.
//!
//! Nonzeros of one column read the same row of X. A cache that holds the rows of X of the columns with the most
//! nonzeros serves the nonzeros in these columns ([`LengthBins`]). If rows that run at the same time share
//! columns, it serves more ([`distinct_share`], [`Localities`]); both are measured on a sample of the rows, see
//! [`row_windows`](super::row_windows).

use super::length_bins::LengthBins;
use super::row_windows::{CountingWindows, RowWindow};
use crate::csr::DevicePattern;
use crate::device::DeviceBuffer;
use crate::operand::OperandError;
use warprow_kernels::spmm::plan::windows::{MAX_WINDOW_ROWS, sampled_one_in};

/// Rows that a multiprocessor works on at the same time.
pub const NEIGHBOURS: u32 = 64;

/// Rows of the windows whose locality is measured: of neighbouring tasks, of a multiprocessor, of the L2 cache.
const WINDOW_ROWS: [u32; 3] = [8, NEIGHBOURS, MAX_WINDOW_ROWS];

/// Minimum and maximum number of windows of each size in the sample.
const MIN_WINDOWS: [u32; 3] = [256, 128, 16];
const MAX_WINDOWS: [u32; 3] = [1024, 1024, 128];

/// Nonzeros that the windows of a size should have, as far as the limits allow.
const ENOUGH_NONZEROS: f64 = 2e6;

/// Nonzeros that the windows of [`shared_beside_first_column`] should have: enough to tell parts of 0.001 apart.
const PROBED_NONZEROS: f64 = 2e5;

/// Minimum and maximum number of these windows.
const MIN_PROBED: u32 = 32;
const MAX_PROBED: u32 = 256;

/// For each size of windows its rows, and the maximum number of windows in a sample of a matrix whose rows have so many
/// nonzeros in the mean.
fn window_sizes(mean_row: f64) -> [(u32, u32); 3] {
    std::array::from_fn(|size| {
        let rows = WINDOW_ROWS[size];
        let enough = windows_with(ENOUGH_NONZEROS, rows, mean_row);
        (rows, enough.clamp(MIN_WINDOWS[size], MAX_WINDOWS[size]))
    })
}

/// How many windows of so many rows have these nonzeros.
fn windows_with(nonzeros: f64, rows: u32, mean_row: f64) -> u32 {
    (nonzeros / (mean_row * f64::from(rows)).max(1.0)) as u32
}

/// The least locality: 0 has no logarithm.
const LEAST_LOCALITY: f64 = 1e-3;

/// The distinct columns of [`NEIGHBOURS`] consecutive rows, divided by the nonzeros of these rows: 1 if they share
/// none, and for a matrix without nonzeros. The rows are taken in `order`, if there is one. It waits for the device.
pub fn distinct_share(
    a: &DevicePattern,
    order: Option<&DeviceBuffer<u32>>,
) -> Result<f64, OperandError> {
    let [_, neighbours, _] = window_sizes(a.mean_row());
    let windows = CountingWindows::count(a, &[neighbours], order)?;
    Ok(share(&windows.wait()?.concat()))
}

/// The distinct columns of windows, divided by their nonzeros; 1 if they have none.
fn share(windows: &[RowWindow]) -> f64 {
    let (mut counted, mut distinct) = (0.0, 0.0);
    for window in windows {
        let one_in = f64::from(sampled_one_in(window.nonzeros));
        counted += one_in * f64::from(window.counted);
        distinct += one_in * f64::from(window.distinct);
    }
    if counted == 0.0 {
        1.0
    } else {
        distinct / counted
    }
}

/// The part of their columns, apart from the first one of each row, that [`NEIGHBOURS`] rows in an order share, beside
/// what as many nonzeros at random would share. It waits for the device.
pub fn shared_beside_first_column(
    a: &DevicePattern,
    columns: &LengthBins,
    order: &DeviceBuffer<u32>,
) -> Result<f64, OperandError> {
    let enough = windows_with(PROBED_NONZEROS, NEIGHBOURS, a.mean_row());
    let sizes = [(NEIGHBOURS, enough.clamp(MIN_PROBED, MAX_PROBED))];
    let windows = CountingWindows::count_without_first(a, &sizes, order)?
        .wait()?
        .concat();
    // Each window has its own expectation: rows in the order of their first columns lie together by length, too, and
    // windows of long rows share most at random.
    let (mut nonzeros, mut expected) = (0.0, 0.0);
    for window in &windows {
        nonzeros += f64::from(window.nonzeros);
        expected += columns.expected_distinct(window.nonzeros.into());
    }
    if nonzeros == 0.0 {
        return Ok(0.0);
    }
    Ok((1.0 - share(&windows) * nonzeros / expected).max(0.0))
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

    /// These, less a part of what `better` is below them.
    pub fn towards(&self, better: Self, part: f64) -> Self {
        let less = |from: f64, to: f64| from - part * (from - to).max(0.0);
        Self {
            near: less(self.near, better.near),
            middle: less(self.middle, better.middle),
            far: less(self.far, better.far),
        }
    }

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
    /// The [`distinct_share`].
    pub distinct_share: f64,
    /// The standard deviation of the nonzeros of a row over their mean, as far as windows of neighbouring rows tell: as
    /// if their lengths were independent.
    pub variation: f64,
}

impl RowSample {
    /// Measures the rows of a matrix in `order`, or in the matrix's own. It waits for the device.
    pub fn measure(
        a: &DevicePattern,
        columns: &LengthBins,
        order: Option<&DeviceBuffer<u32>>,
    ) -> Result<Self, OperandError> {
        Self::of_windows(a, columns, Self::count(a, order)?)
    }

    /// Counts the windows of the sample on the device.
    pub fn count(
        a: &DevicePattern,
        order: Option<&DeviceBuffer<u32>>,
    ) -> Result<CountingWindows, OperandError> {
        CountingWindows::count(a, &window_sizes(a.mean_row()), order)
    }

    /// What the windows of a matrix tell. It waits for the device.
    pub fn of_windows(
        a: &DevicePattern,
        columns: &LengthBins,
        windows: CountingWindows,
    ) -> Result<Self, OperandError> {
        let mean_row = a.mean_row();
        let found = windows.wait()?;
        let locality = |kind: usize| {
            if a.nonzeros() == 0 {
                return 1.0;
            }
            let nonzeros = mean_row * f64::from(WINDOW_ROWS[kind].min(a.rows));
            let expected = columns.expected_distinct(nonzeros) / nonzeros;
            (share(&found[kind]) / expected).min(1.0)
        };
        Ok(Self {
            locality: Localities {
                near: locality(0),
                middle: locality(1),
                far: locality(2),
            },
            distinct_share: share(&found[1]),
            variation: variation(&found[0], WINDOW_ROWS[0]),
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
