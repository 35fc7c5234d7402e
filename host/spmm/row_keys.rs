//! Keys by which the rows of a matrix are sorted, made on the device: see [`order`].

use crate::csr::{DeviceCsr, DevicePattern, number};
use crate::device::DeviceBuffer;
use crate::error::Error;
use crate::sort::sort_pairs;
use cuda_std::element::Element;
use cuda_std::memory::Global;
use warprow_kernels::spmm::plan::order;

/// How often a row takes the label of most of its columns. Planted communities of 60 to 600 rows with 85 % of the nonzeros
/// inside, 10 to 75 a row, were found in 6 to 8 rounds; more did not help, and with 5 nonzeros a row not either.
const ROUNDS: u32 = 8;

/// The rows, those with the most nonzeros first.
pub(super) fn longest_first(a: &DevicePattern) -> Result<DeviceBuffer<u32>, Error> {
    sorted(number(a.device(), a.rows)?, missing_columns(a)?, a.cols)
}

/// `rows` sorted by their keys, which are at most `greatest`.
pub(super) fn sorted(
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
pub(super) fn first_columns(a: &DevicePattern) -> Result<DeviceBuffer<u32>, Error> {
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

/// The columns that each row has not.
fn missing_columns(a: &DevicePattern) -> Result<DeviceBuffer<u32>, Error> {
    let device = a.device();
    let mut key = device.uninitialized::<u32>(a.rows as usize)?;
    let arguments = (a.rows, a.cols, a.row_ptr.read_only(), key.mutable());
    // SAFETY: the matrix's own sizes, and a key for each row, which has at most as many nonzeros as there are columns.
    unsafe {
        device.launch(
            &order::missing_columns(),
            order::launch_threads(a.rows),
            arguments,
        )?;
    }
    Ok(key)
}

/// The number of each row's most frequent column, the columns numbered by their nonzeros, most first.
pub(super) fn frequent_columns(a: &DevicePattern) -> Result<DeviceBuffer<u32>, Error> {
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
            if a.nonzeros() > 0 {
                device.launch(
                    &order::count_columns(),
                    order::launch_threads(a.nonzeros()),
                    (a.nonzeros(), col_idx, column_key.mutable()),
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
pub(super) fn labels<T: Element>(a: &DeviceCsr<T>) -> Result<DeviceBuffer<u32>, Error> {
    let pattern = a.pattern();
    let (rows, cols) = (pattern.rows, pattern.cols);
    let transposed = (rows != cols).then(|| a.transpose()).transpose()?;
    let mut of_columns = number(a.device(), cols)?;
    let mut of_rows = a.device().uninitialized(rows as usize)?;
    for round in 0..ROUNDS {
        propagate(pattern, round, &of_columns, &mut of_rows)?;
        match &transposed {
            _ if round + 1 == ROUNDS => {}
            Some(transposed) => propagate(transposed.pattern(), round, &of_rows, &mut of_columns)?,
            None => std::mem::swap(&mut of_rows, &mut of_columns),
        }
    }
    Ok(of_rows)
}

/// For each row of `a` the label that most of its columns have.
fn propagate(
    a: &DevicePattern,
    round: u32,
    of_columns: &DeviceBuffer<u32>,
    of_rows: &mut DeviceBuffer<u32>,
) -> Result<(), Error> {
    if a.rows == 0 {
        return Ok(());
    }
    let (row_ptr, col_idx) = pointers(a);
    let labels = (of_columns.read_only(), of_rows.mutable());
    let arguments = (a.rows, round, row_ptr, col_idx, labels.0, labels.1);
    let config = order::launch_warps(a.rows);
    // SAFETY: the matrix's own sizes, a label for each column, numbers of columns or rows, and room for one for each row.
    unsafe {
        a.device()
            .launch(&order::propagate_labels(), config, arguments)
    }
}

fn pointers(a: &DevicePattern) -> (Global<u32>, Global<u32>) {
    (a.row_ptr.read_only(), a.col_idx.read_only())
}
