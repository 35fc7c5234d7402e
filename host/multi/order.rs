//! The order in which a matrix's rows are divided among parts: the caller's, or clusters if these share more.

use crate::csr::{CsrMatrix, DeviceCsr};
use crate::device::Device;
use crate::operand::OperandError;
use crate::scalar::Scalar;
use crate::spmm::{RowOrder, SpmmError, rows_in_order};
use sprs::{CsMatI, CsMatViewI};
use std::sync::Arc;

/// Rows that one thread copies at a time.
const ROWS: usize = 1 << 10;

/// An order of a matrix's rows. The columns of a square matrix are put into the same order, so that a part owns the
/// rows of X with the numbers of its rows of A.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The number of each row in the caller's order; `None` if that is the order. Clones share the list.
    original: Option<Arc<Vec<u32>>>,
}

impl Order {
    /// The caller's order.
    pub fn given() -> Self {
        Self::default()
    }

    /// Row 0, row `parts`, row `2 * parts` and so on, then row 1, row `parts + 1`: part i gets the rows whose numbers
    /// are i modulo `parts`. Also the number of rows of each part.
    pub fn cyclic(rows: u32, parts: u32) -> (Self, Vec<usize>) {
        let of_part = |part: u32| (part..rows).step_by(parts as usize);
        let original = (0..parts).flat_map(of_part).collect();
        let counts = (0..parts).map(|part| of_part(part).len()).collect();
        (Self::of_permutation(original), counts)
    }

    /// The rows of a matrix that is stored by rows, in an order that the device finds.
    ///
    /// # Errors
    ///
    /// Lists that are no matrix; too little device memory; the driver's.
    pub fn find<T: Scalar>(
        device: &Device,
        a: CsMatViewI<'_, T, u32, u32>,
        order: RowOrder,
    ) -> Result<Self, SpmmError> {
        if order == RowOrder::Given {
            return Ok(Self::given());
        }
        // The values do not count.
        let values = vec![0.0_f32; a.nnz()];
        let pattern = DeviceCsr::upload_outer(device, &a, &values)?;
        let original = rows_in_order(order, pattern.pattern())?;
        match original {
            Some(rows) => Ok(Self::of_permutation(rows.download()?)),
            None => Ok(Self::given()),
        }
    }

    /// An order of the rows by their numbers in the caller's order.
    ///
    /// # Errors
    ///
    /// The numbers are no permutation.
    pub fn of_rows(original: Vec<u32>) -> Result<Self, OperandError> {
        let mut found = vec![false; original.len()];
        for (row, &number) in original.iter().enumerate() {
            let place = found.get_mut(number as usize);
            if place.is_none_or(|found| std::mem::replace(found, true)) {
                return Err(OperandError::Structure {
                    line: "row",
                    number: row,
                    reason: format!(
                        "in the order of the rows, row {number} is there twice or never"
                    ),
                });
            }
        }
        Ok(Self::of_permutation(original))
    }

    /// The order of a permutation. Equal orders have equal fields: the caller's order has no list.
    fn of_permutation(original: Vec<u32>) -> Self {
        let is_given = (0..).zip(&original).all(|(row, &number)| row == number);
        let original = (!is_given).then(|| Arc::new(original));
        Self { original }
    }

    /// The number of each row in the caller's order; `None` if that is the order.
    pub fn original(&self) -> Option<&[u32]> {
        Some(self.original.as_ref()?.as_slice())
    }

    /// The caller's number of a row.
    pub fn original_row(&self, row: usize) -> usize {
        match &self.original {
            Some(original) => original[row] as usize,
            None => row,
        }
    }

    /// The matrix in this order: its rows, and the columns if it is square.
    ///
    /// # Panics
    ///
    /// If the matrix has another number of rows, or is stored by columns.
    pub fn apply<T: Scalar>(&self, a: CsMatViewI<'_, T, u32, u32>) -> CsrMatrix<T> {
        assert!(a.is_csr(), "the matrix is stored by rows");
        let Some(original) = self.original() else {
            return a.to_owned();
        };
        assert_eq!(original.len(), a.rows());
        let is_square = a.rows() == a.cols();
        let mut number = vec![0; if is_square { a.cols() } else { 0 }];
        if is_square {
            for (new, &old) in (0..).zip(original) {
                number[old as usize] = new;
            }
        }
        let pointers = a.indptr();
        let mut row_ptr = Vec::with_capacity(original.len() + 1);
        row_ptr.push(0);
        let mut nonzeros = 0;
        for &old in original {
            nonzeros += pointers.nnz_in_outer_sz(old as usize) as u32;
            row_ptr.push(nonzeros);
        }
        let (mut columns, mut values) = (vec![0; a.nnz()], vec![T::ONE; a.nnz()]);
        let tasks = tasks(original, &row_ptr, &mut columns, &mut values);
        parallel::each_task(tasks, |task| {
            let mut places = task.columns.iter_mut().zip(task.values);
            let mut row: Vec<(u32, T)> = Vec::new();
            for &old in task.rows {
                let old = a.outer_view(old as usize);
                let old = old.expect("it is a row of the matrix");
                let renumbered = (old.indices().iter())
                    .map(|&column| number.get(column as usize).copied().unwrap_or(column));
                row.clear();
                row.extend(renumbered.zip(old.data().iter().copied()));
                row.sort_unstable_by_key(|&(column, _)| column);
                for (&entry, place) in row.iter().zip(&mut places) {
                    (*place.0, *place.1) = entry;
                }
            }
        });
        CsMatI::new((a.rows(), a.cols()), row_ptr, columns, values)
    }
}

/// Rows that one thread copies, by their numbers in the caller's order, and where their nonzeros go.
struct Task<'a, T> {
    rows: &'a [u32],
    columns: &'a mut [u32],
    values: &'a mut [T],
}

/// The tasks of a matrix with the rows `original` and the row pointers `row_ptr`.
fn tasks<'a, T>(
    original: &'a [u32],
    row_ptr: &[u32],
    mut columns: &'a mut [u32],
    mut values: &'a mut [T],
) -> Vec<Task<'a, T>> {
    let mut first = 0;
    let task = |rows: &'a [u32]| {
        let len = (row_ptr[first + rows.len()] - row_ptr[first]) as usize;
        first += rows.len();
        let task;
        (task, columns) = std::mem::take(&mut columns).split_at_mut(len);
        let of_values;
        (of_values, values) = std::mem::take(&mut values).split_at_mut(len);
        Task {
            rows,
            columns: task,
            values: of_values,
        }
    };
    original.chunks(ROWS).map(task).collect()
}
