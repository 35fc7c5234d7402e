//! Keys by which the rows of a matrix are sorted, made on the device: see [`order`].

use crate::csr::{DevicePattern, ReorderedPattern, copy, gather, number};
use crate::device::DeviceBuffer;
use crate::primitives::sort::sort_pairs;
use crate::spmm::error::SpmmError;
use cuda_std::memory::Global;
use std::sync::Arc;
use warprow_kernels::spmm::plan::order;

/// Rounds of label propagation after the first labels. Two more find at most 7 % fewer distinct columns in clusters.
const ROUNDS: u32 = 5;

/// The rows, the longest first.
pub fn longest_first(a: &DevicePattern) -> Result<DeviceBuffer<u32>, SpmmError> {
    sorted(number(a.device(), a.rows)?, missing_columns(a)?, a.cols)
}

/// `rows` sorted by as many bits of their keys as `greatest` has. The sort is stable. Keys are at most `greatest`, or
/// columns below it and [`NO_LABEL`](order::NO_LABEL), which comes last: in so many bits it has only ones, and no
/// column has.
pub fn sorted(
    mut rows: DeviceBuffer<u32>,
    mut key: DeviceBuffer<u32>,
    greatest: u32,
) -> Result<DeviceBuffer<u32>, SpmmError> {
    let device = rows.device().clone();
    sort_pairs(&device, &mut key, &mut rows, bits_of(greatest))?;
    Ok(rows)
}

fn bits_of(number: u32) -> u32 {
    u32::BITS - number.leading_zeros()
}

/// The rows by their first column, empty ones last.
pub fn by_first_column(a: &DevicePattern) -> Result<DeviceBuffer<u32>, SpmmError> {
    sorted(number(a.device(), a.rows)?, first_columns(a)?, a.cols)
}

/// The rows in clusters: by their labels, and of the same label in the order of `rows`.
pub fn clustered(
    a: &Arc<DevicePattern>,
    rows: &DeviceBuffer<u32>,
) -> Result<DeviceBuffer<u32>, SpmmError> {
    let label = gather(rows, &labels(a)?)?;
    sorted(copy(rows.as_slice())?, label, a.cols)
}

/// The first column of each row; [`NO_LABEL`](order::NO_LABEL) if it is empty.
fn first_columns(a: &DevicePattern) -> Result<DeviceBuffer<u32>, SpmmError> {
    let device = a.device();
    let mut key = device.uninitialized::<u32>(a.rows as usize)?;
    let (row_ptr, col_idx) = pointers(a);
    let arguments = (a.rows, row_ptr, col_idx, key.mutable());
    // SAFETY: row pointers and columns are those of one matrix; `key` has an element for each row.
    unsafe {
        device.launch(
            &order::first_columns(),
            order::launch_threads(a.rows),
            arguments,
        )?;
    }
    Ok(key)
}

/// Columns minus the row's nonzeros: an ascending key for descending lengths.
fn missing_columns(a: &DevicePattern) -> Result<DeviceBuffer<u32>, SpmmError> {
    let device = a.device();
    let mut key = device.uninitialized::<u32>(a.rows as usize)?;
    let arguments = (a.rows, a.cols, a.row_ptr.read_only(), key.mutable());
    // SAFETY: `a.rows + 1` row pointers; `key` has an element for each row; a row has at most `a.cols` nonzeros.
    unsafe {
        device.launch(
            &order::missing_columns(),
            order::launch_threads(a.rows),
            arguments,
        )?;
    }
    Ok(key)
}

/// The rows by their column with the most nonzeros, empty ones last.
pub fn by_frequent_column(a: &DevicePattern) -> Result<DeviceBuffer<u32>, SpmmError> {
    sorted(number(a.device(), a.rows)?, frequent_columns(a)?, a.cols)
}

/// For each row the lowest rank of its columns, where rank 0 is the column with the most nonzeros.
fn frequent_columns(a: &DevicePattern) -> Result<DeviceBuffer<u32>, SpmmError> {
    let device = a.device();
    let mut column_key = device.uninitialized::<u32>(a.cols as usize)?;
    let mut rank = device.uninitialized::<u32>(a.cols as usize)?;
    let mut key = device.uninitialized::<u32>(a.rows as usize)?;
    let (row_ptr, col_idx) = pointers(a);
    if a.cols > 0 {
        let config = order::launch_threads(a.cols);
        // The key is -1 minus the column's nonzeros. A column has at most one nonzero for each row, so the sort needs
        // only as many low bits of the key as the number of rows has.
        column_key.fill_bytes(0xff)?;
        // SAFETY: `column_key` and `rank` have an element for each column; columns are below `cols`.
        unsafe {
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
    // SAFETY: row pointers and columns are those of one matrix; a rank for each column and a key for each row.
    unsafe {
        device.launch(
            &order::least_ranks(),
            order::launch_warps(a.rows),
            arguments,
        )?;
    }
    Ok(key)
}

/// The label of each row: the number of a column, the same for rows with many common columns. An empty row has
/// [`NO_LABEL`](order::NO_LABEL), and so has, from the next round on, a row with columns of such rows alone.
///
/// The first label of a row is its first column. In each round a row takes the label that most of its columns have.
/// In a square matrix, row and column i are the same node and have one label; else columns take the label of most of
/// their rows in turn.
fn labels(pattern: &Arc<DevicePattern>) -> Result<DeviceBuffer<u32>, SpmmError> {
    let (rows, cols) = (pattern.rows, pattern.cols);
    let transposed = (rows != cols).then(|| ReorderedPattern::new(pattern).transpose());
    let transposed = transposed.transpose()?;
    let next = |round: u32, of_rows: &DeviceBuffer<u32>| match &transposed {
        Some(transposed) => {
            let of_columns = propagate(&transposed.pattern, round, of_rows)?;
            propagate(pattern, round, &of_columns)
        }
        None => propagate(pattern, round, of_rows),
    };
    (1..=ROUNDS).try_fold(first_columns(pattern)?, |of_rows, round| {
        next(round, &of_rows)
    })
}

/// For each row of `a` the label that most of its columns have.
fn propagate(
    a: &DevicePattern,
    round: u32,
    of_columns: &DeviceBuffer<u32>,
) -> Result<DeviceBuffer<u32>, SpmmError> {
    let mut of_rows = a.device().uninitialized(a.rows as usize)?;
    if a.rows == 0 {
        return Ok(of_rows);
    }
    let (row_ptr, col_idx) = pointers(a);
    let labels = (of_columns.read_only(), of_rows.mutable());
    let arguments = (a.rows, round, row_ptr, col_idx, labels.0, labels.1);
    let config = order::launch_labels(a.rows);
    // SAFETY: row pointers and columns are those of one matrix; a label for each column, room for one for each row.
    unsafe {
        a.device()
            .launch(&order::propagate_labels(), config, arguments)?;
    }
    Ok(of_rows)
}

fn pointers(a: &DevicePattern) -> (Global<u32>, Global<u32>) {
    (a.row_ptr.read_only(), a.col_idx.read_only())
}
