//! The statistics of a matrix that the cost model predicts times from.

use super::locality::{ColumnProfile, Localities, NEIGHBOURS, RowSample};
use crate::csr::DevicePattern;
use crate::operand::OperandError;

/// What the time of a product with a matrix depends on.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub cols: u32,
    /// Nonzeros.
    pub nonzeros: u32,
    /// An upper bound of a row's nonzeros. If nobody has counted them, it is that of a column's.
    pub longest_row: u32,
    /// Its columns.
    pub columns: ColumnProfile,
    /// Its order of rows.
    pub locality: Localities,
    /// How far the lengths of rows differ: their standard deviation over their mean, if it is known.
    pub variation: Option<f64>,
    /// Whether that is another than the caller's.
    pub is_ordered: bool,
    /// Whether nothing was counted, see [`assume`](Self::assume).
    pub are_assumed: bool,
}

/// Rows whose lengths have at most this [variation](Statistics::variation) are nearly of the same length.
pub const VARIATION_OF_EVEN_ROWS: f64 = 0.25;

/// The longest row that is assumed, in mean rows.
const ASSUMED_LONGEST_ROW: f64 = 4.0;

impl Statistics {
    /// Measures those of a matrix on its device, and waits for the device.
    pub fn measure(a: &DevicePattern) -> Result<Self, OperandError> {
        let columns = ColumnProfile::measure(a.device(), a.cols, &a.col_idx)?;
        let RowSample {
            locality,
            variation,
        } = RowSample::measure(a, &columns, None)?;
        let most = columns.longest().min(a.cols.into()) as u32;
        Ok(Self {
            rows: a.rows,
            cols: a.cols,
            nonzeros: a.nonzeros(),
            longest_row: a.longest_row.unwrap_or(most),
            columns,
            locality,
            variation: Some(variation),
            is_ordered: false,
            are_assumed: false,
        })
    }

    /// Those of a matrix of the same size whose nonzeros are spread evenly. It costs no time on the device.
    pub fn assume(a: &DevicePattern) -> Self {
        let mean_row = f64::from(a.nonzeros()) / f64::from(a.rows.max(1));
        let longest = (ASSUMED_LONGEST_ROW * mean_row).min(a.cols.into()) as u32;
        Self {
            rows: a.rows,
            cols: a.cols,
            nonzeros: a.nonzeros(),
            longest_row: a.longest_row.unwrap_or(longest),
            columns: ColumnProfile::even(a.cols, a.nonzeros()),
            locality: Localities::NONE,
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

    /// Mean number of nonzeros of a row.
    pub fn mean_row(&self) -> f64 {
        f64::from(self.nonzeros) / f64::from(self.rows.max(1))
    }

    /// Whether rows are so dense that neighbours share columns in any order.
    pub fn any_rows_share(&self) -> bool {
        let density = self.mean_row() / f64::from(self.cols.max(1));
        density * f64::from(NEIGHBOURS) >= 2.0
    }
}
