//! B without its empty columns.
//!
//! A row of many products has a bitmap of all columns that it spans. If B has few nonzeros in very many columns, nearly
//! all of these bits stay zero: a row that spans 2^32 columns takes 2300 windows. The columns of B that have nonzeros
//! are then numbered from 0 on. Their order stays, so the values of A, B and C are the same for both numberings.

use crate::csr::DevicePattern;
use crate::operand::OperandError;
use std::sync::Arc;

/// B may have this many columns without being narrowed: some ten windows of a bitmap.
const FEW_COLUMNS: u32 = 1 << 24;

/// B may have this many columns for each nonzero without being narrowed.
const COLUMNS_PER_NONZERO: u64 = 64;

/// B without its empty columns.
pub struct NarrowedColumns {
    /// B with numbers in place of its columns.
    pub b: Arc<DevicePattern>,
    /// The column of each number.
    columns: Vec<u32>,
    /// All columns of B.
    cols: u32,
}

impl NarrowedColumns {
    /// Whether nearly all columns of B are empty, and B has enough columns for that to matter.
    pub fn are_worth_it(b: &DevicePattern) -> bool {
        b.cols > FEW_COLUMNS && u64::from(b.cols) > COLUMNS_PER_NONZERO * u64::from(b.nonzeros())
    }

    /// Numbers the columns of B that have nonzeros. The host does it, as the nonzeros are few.
    pub fn of(b: &DevicePattern) -> Result<Self, OperandError> {
        let column_of_each = b.col_idx.download()?;
        let mut columns = column_of_each.clone();
        parallel::sort_u32(&mut columns);
        columns.dedup();
        let number = |place: usize| {
            let column = column_of_each[place];
            columns.partition_point(|&other| other < column) as u32
        };
        let mut numbers = vec![0; column_of_each.len()];
        parallel::fill(&mut numbers, number);
        let pattern = DevicePattern {
            device: b.device.clone(),
            rows: b.rows,
            // No more than nonzeros.
            cols: columns.len() as u32,
            row_ptr: b.device.upload(&b.row_ptr.download()?)?,
            col_idx: b.device.upload(&numbers)?,
            longest_row: b.longest_row,
        };
        Ok(Self {
            b: Arc::new(pattern),
            columns,
            cols: b.cols,
        })
    }

    /// The pattern of C, of which `c` has numbers in place of the columns.
    pub fn widen(&self, c: &DevicePattern) -> Result<Arc<DevicePattern>, OperandError> {
        let numbers = c.col_idx.download()?;
        let column = |place: usize| self.columns[numbers[place] as usize];
        let mut columns = vec![0; numbers.len()];
        parallel::fill(&mut columns, column);
        Ok(Arc::new(DevicePattern {
            device: c.device.clone(),
            rows: c.rows,
            cols: self.cols,
            row_ptr: c.device.upload(&c.row_ptr.download()?)?,
            col_idx: c.device.upload(&columns)?,
            longest_row: c.longest_row,
        }))
    }
}
