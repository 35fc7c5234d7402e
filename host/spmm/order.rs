//! The order of a matrix's rows in a plan.

use super::SpmmElement;
use crate::csr::{DeviceCsr, gather, number};
use crate::device::DeviceBuffer;
use crate::error::Error;
use crate::sort::sort_pairs;
use cuda_std::memory::Global;
use warprow_kernels::order;

/// How often a row takes the label of most of its columns. Planted communities of 60 to 600 rows with 85 % of the nonzeros
/// inside, 10 to 75 a row, were found in 6 to 8 rounds; more did not help, and with 5 nonzeros a row not either.
const ROUNDS: u32 = 8;

/// The order in which a plan keeps the rows of A. X and Y are in the caller's order whatever it is.
///
/// What an order is good for: rows that run at the same time should read the same rows of X, which are then in a cache.
/// As a measure, take the distinct columns of 64 neighbouring rows, as a part of their nonzeros. On shuffled graphs of 20,000
/// rows with 85 % of the nonzeros in communities of 60 to 600 rows it is
///
/// | nonzeros a row | `Given` | `FirstColumn` | `Clustered` | by the communities planted |
/// |---|---|---|---|---|
/// | 5 | .99 | .88 | .78 | .77 |
/// | 10 | .99 | .89 | .60 | .63 |
/// | 30 | .96 | .76 | .38 | .38 |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RowOrder {
    /// The caller's.
    #[default]
    Given,
    /// By the first column of each row.
    FirstColumn,
    /// By the most frequent column of each row: columns numbered by their nonzeros, most first, rows sorted by their first
    /// column then, and the columns' numbers put back.
    FrequentColumn,
    /// By communities, which label propagation finds, and by the first column in each. It helps where the matrix has
    /// communities.
    Clustered,
}

impl RowOrder {
    /// All orders.
    pub const ALL: &[Self] = &[
        Self::Given,
        Self::FirstColumn,
        Self::FrequentColumn,
        Self::Clustered,
    ];

    /// The name by which a user selects it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::FirstColumn => "first_column",
            Self::FrequentColumn => "frequent_column",
            Self::Clustered => "clustered",
        }
    }

    /// The rows of `a` in this order, by their numbers in the given one; `None` if it is that.
    pub(super) fn of_rows<T: SpmmElement>(
        self,
        a: &DeviceCsr<T>,
    ) -> Result<Option<DeviceBuffer<u32>>, Error> {
        if a.rows == 0 {
            return Ok(None);
        }
        let given = || number(a.device(), a.rows);
        match self {
            Self::Given => Ok(None),
            Self::FirstColumn => sorted(given()?, first_columns(a)?, a.cols).map(Some),
            Self::FrequentColumn => sorted(given()?, frequent_columns(a)?, a.cols).map(Some),
            Self::Clustered => {
                let by_first_column = sorted(given()?, first_columns(a)?, a.cols)?;
                let label = gather(&by_first_column, &labels(a)?)?;
                sorted(by_first_column, label, a.cols).map(Some)
            }
        }
    }
}

/// `rows` sorted by their keys, which are at most `greatest`.
fn sorted(
    mut rows: DeviceBuffer<u32>,
    mut key: DeviceBuffer<u32>,
    greatest: u32,
) -> Result<DeviceBuffer<u32>, Error> {
    let device = rows.device().clone();
    let bits = u32::BITS - greatest.leading_zeros();
    sort_pairs(&device, &mut key, &mut rows, bits)?;
    Ok(rows)
}

/// The first column of each row.
fn first_columns<T: SpmmElement>(a: &DeviceCsr<T>) -> Result<DeviceBuffer<u32>, Error> {
    let device = a.device();
    let mut key = device.uninitialized::<u32>(a.rows as usize)?;
    let (row_ptr, col_idx) = pointers(a);
    let arguments = (a.rows, a.cols, row_ptr, col_idx, key.mutable());
    // SAFETY: the matrix's own sizes, and a key for each row.
    unsafe {
        device.launch(
            &order::first_columns(),
            order::launch_threads(a.rows),
            arguments,
        )?;
    }
    Ok(key)
}

/// The number of each row's most frequent column, the columns numbered by their nonzeros, most first.
fn frequent_columns<T: SpmmElement>(a: &DeviceCsr<T>) -> Result<DeviceBuffer<u32>, Error> {
    let device = a.device();
    let mut column_key = device.uninitialized::<u32>(a.cols as usize)?;
    let mut rank = device.uninitialized::<u32>(a.cols as usize)?;
    let mut key = device.uninitialized::<u32>(a.rows as usize)?;
    let (row_ptr, col_idx) = pointers(a);
    if a.cols > 0 {
        let config = order::launch_threads(a.cols);
        // A column has at most as many nonzeros as there are rows: the key is the rest.
        // SAFETY: a key for each column, a rank for each place in their order.
        unsafe {
            device.launch(
                &order::fill(),
                config,
                (a.cols, a.rows, column_key.mutable()),
            )?;
            if a.nnz() > 0 {
                device.launch(
                    &order::count_columns(),
                    order::launch_threads(a.nnz()),
                    (a.nnz(), col_idx, column_key.mutable()),
                )?;
            }
            let columns = sorted(number(device, a.cols)?, column_key, a.rows)?;
            device.launch(
                &order::ranks(),
                config,
                (a.cols, columns.read_only(), rank.mutable()),
            )?;
        }
    }
    let arguments = (
        a.rows,
        a.cols,
        row_ptr,
        col_idx,
        rank.read_only(),
        key.mutable(),
    );
    // SAFETY: the matrix's own sizes, a rank for each column, and a key for each row.
    unsafe {
        device.launch(
            &order::least_ranks(),
            order::launch_warps(a.rows),
            arguments,
        )?;
    }
    Ok(key)
}

/// The label of each row, the number of a column. In a square matrix, whose rows and columns are the same things, a row's label
/// is its column's for the next round; else columns take labels from their rows in turn.
fn labels<T: SpmmElement>(a: &DeviceCsr<T>) -> Result<DeviceBuffer<u32>, Error> {
    let transposed = (a.rows != a.cols).then(|| a.transpose()).transpose()?;
    let mut of_rows = propagate(a, 0, &number(a.device(), a.cols)?)?;
    for round in 1..ROUNDS {
        let of_columns = match &transposed {
            Some(transposed) => propagate(transposed, round, &of_rows)?,
            None => of_rows,
        };
        of_rows = propagate(a, round, &of_columns)?;
    }
    Ok(of_rows)
}

/// For each row of `a` the label that most of its columns have.
fn propagate<T: SpmmElement>(
    a: &DeviceCsr<T>,
    round: u32,
    of_columns: &DeviceBuffer<u32>,
) -> Result<DeviceBuffer<u32>, Error> {
    let device = a.device();
    let mut of_rows = device.uninitialized::<u32>(a.rows as usize)?;
    if a.rows > 0 {
        let (row_ptr, col_idx) = pointers(a);
        let labels = (of_columns.read_only(), of_rows.mutable());
        let arguments = (a.rows, round, row_ptr, col_idx, labels.0, labels.1);
        // SAFETY: the matrix's own sizes, a label for each column, numbers of columns, and room for one for each row.
        unsafe {
            device.launch(
                &order::propagate_labels(),
                order::launch_warps(a.rows),
                arguments,
            )?;
        }
    }
    Ok(of_rows)
}

fn pointers<T: SpmmElement>(a: &DeviceCsr<T>) -> (Global<u32>, Global<u32>) {
    (a.row_ptr.read_only(), a.col_idx.read_only())
}
