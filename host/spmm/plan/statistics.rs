//! The statistics of a matrix that the cost model predicts times from.

use super::columns::Columns;
use super::length_bins::{CountingBins, LengthBins};
use super::locality::{Localities, NEIGHBOURS, RowSample};
use crate::csr::DevicePattern;
use crate::operand::OperandError;
use warprow_kernels::spmm::product::tasks::ROW_STEPS;

/// What the time of a product with a matrix depends on.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub cols: u32,
    /// Nonzeros.
    pub nonzeros: u32,
    /// An upper bound of a row's nonzeros.
    pub longest_row: u32,
    /// Its rows by the number of their nonzeros.
    pub lengths: LengthBins,
    /// Its columns, with what caches miss.
    pub columns: Columns,
    /// How far neighbouring rows share columns.
    pub locality: Localities,
    /// The distinct columns of neighbouring rows in the caller's order, divided by their nonzeros:
    /// [`distinct_share`](super::locality::distinct_share).
    pub distinct_share: f64,
    /// How far the lengths of rows differ: their standard deviation over their mean, if it is known.
    pub variation: Option<f64>,
    /// Whether the locality is that of another order than the caller's.
    pub is_ordered: bool,
    /// Whether nothing was counted, see [`assume`](Self::assume).
    pub are_assumed: bool,
}

/// Rows whose lengths have at most this [variation](Statistics::variation) are nearly of the same length.
const VARIATION_OF_EVEN_ROWS: f64 = 0.25;

/// The variation that is assumed.
const ASSUMED_VARIATION: f64 = 0.5;

/// The longest row that is assumed, in mean rows.
const ASSUMED_LONGEST_ROW: f64 = 4.0;

impl Statistics {
    /// Measures those of a matrix on its device, and waits for the device.
    pub fn measure(a: &DevicePattern) -> Result<Self, OperandError> {
        // All launches before the host waits for the first result.
        let windows = RowSample::count(a, None)?;
        let columns = CountingBins::columns(a.device(), a.cols, &a.col_idx)?;
        let lengths = CountingBins::rows(a)?;
        let (columns, lengths) = (columns.wait()?, lengths.wait()?);
        let RowSample {
            locality,
            distinct_share,
            variation,
        } = RowSample::of_windows(a, &columns, windows)?;
        let most = lengths.longest().min(a.cols.into()) as u32;
        Ok(Self {
            rows: a.rows,
            cols: a.cols,
            nonzeros: a.nonzeros(),
            longest_row: a.longest_row.unwrap_or(most),
            lengths,
            columns: Columns::new(columns),
            locality,
            distinct_share,
            variation: Some(variation),
            is_ordered: false,
            are_assumed: false,
        })
    }

    /// Those of a matrix of the same size whose nonzeros are spread evenly. It costs no time on the device.
    pub fn assume(a: &DevicePattern) -> Self {
        let longest = (ASSUMED_LONGEST_ROW * a.mean_row()).min(a.cols.into()) as u32;
        Self {
            rows: a.rows,
            cols: a.cols,
            nonzeros: a.nonzeros(),
            longest_row: a.longest_row.unwrap_or(longest),
            lengths: LengthBins::even(a.rows, a.nonzeros()),
            columns: Columns::even(a.cols, a.nonzeros()),
            locality: Localities::NONE,
            distinct_share: 1.0,
            variation: None,
            is_ordered: false,
            are_assumed: true,
        }
    }

    /// The same for the rows in an order with this locality.
    pub fn ordered(&self, locality: Localities) -> Self {
        Self {
            locality,
            is_ordered: true,
            ..self.clone()
        }
    }

    /// How far the lengths of rows differ, or what is assumed if nobody has counted.
    pub fn variation(&self) -> f64 {
        self.variation.unwrap_or(ASSUMED_VARIATION)
    }

    /// Mean number of nonzeros of a row.
    pub fn mean_row(&self) -> f64 {
        f64::from(self.nonzeros) / f64::from(self.rows.max(1))
    }

    /// Whether all rows have nearly the same number of nonzeros, as far as somebody has counted.
    pub fn has_even_rows(&self) -> bool {
        (self.variation).is_some_and(|found| found <= VARIATION_OF_EVEN_ROWS)
    }

    /// Steps of a row, if all rows have nearly the same number.
    pub fn even_row_steps(&self) -> Option<u32> {
        let steps = (self.mean_row().round() as u32).saturating_add(ROW_STEPS);
        self.has_even_rows().then_some(steps)
    }

    /// Whether rows are so dense that neighbours share columns in any order.
    pub fn any_rows_share(&self) -> bool {
        let density = self.mean_row() / f64::from(self.cols.max(1));
        density * f64::from(NEIGHBOURS) >= 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_of_the_longest_even_row_are_a_u32() {
        let of_rows = |rows, nonzeros, variation| Statistics {
            rows,
            cols: u32::MAX,
            nonzeros,
            longest_row: nonzeros / rows,
            lengths: LengthBins::even(rows, nonzeros),
            columns: Columns::even(u32::MAX, nonzeros),
            locality: Localities::NONE,
            distinct_share: 1.0,
            variation,
            is_ordered: false,
            are_assumed: false,
        };
        let steps = |rows, nonzeros| of_rows(rows, nonzeros, Some(0.0)).even_row_steps();
        assert_eq!(steps(1, u32::MAX), Some(u32::MAX));
        assert_eq!(steps(1000, 128_400), Some(128 + ROW_STEPS));
        assert_eq!(of_rows(9, 90, None).even_row_steps(), None);
        assert_eq!(of_rows(9, 90, Some(0.26)).even_row_steps(), None);
    }
}
