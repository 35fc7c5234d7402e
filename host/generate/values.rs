//! Random values, uniform in [-1, 1).

use ndarray::Array2;
use rand::RngExt;

use super::GenerateError;
use super::distinct::stream;
use crate::scalar::Scalar;

/// Values from one random stream.
const CHUNK: usize = 1 << 16;

/// The first stream of sparse values and of dense ones. Streams of nonzeros start at 0, so no numbers are used twice.
const SPARSE_STREAMS: u64 = 1 << 62;
const DENSE_STREAMS: u64 = 2 << 62;

/// A dense matrix, row-major, with values uniform in [-1, 1).
///
/// # Errors
///
/// If the host has too little memory for it, or a matrix without elements has more than `isize::MAX` rows or columns.
pub fn dense<T: Scalar>(
    rows: usize,
    columns: usize,
    seed: u64,
) -> Result<Array2<T>, GenerateError> {
    let wanted = (rows as u128 * columns as u128).saturating_mul(size_of::<T>() as u128);
    let mut elements = Vec::new();
    let length = rows.checked_mul(columns);
    length
        .and_then(|length| elements.try_reserve_exact(length).ok())
        .ok_or(GenerateError::OutOfMemory {
            rows,
            columns,
            wanted,
        })?;
    elements.resize(rows * columns, T::ONE);
    fill(&mut elements, seed, DENSE_STREAMS);
    Array2::from_shape_vec((rows, columns), elements)
        .map_err(|_| GenerateError::DenseShape { rows, columns })
}

/// The values of a sparse matrix.
pub(super) fn sparse_values<T: Scalar>(length: usize, seed: u64) -> Vec<T> {
    let mut values = vec![T::ONE; length];
    fill(&mut values, seed, SPARSE_STREAMS);
    values
}

fn fill<T: Scalar>(values: &mut [T], seed: u64, first_stream: u64) {
    parallel::each_row_mut(values, CHUNK, |chunk, values| {
        let mut random = stream(seed, first_stream + chunk as u64);
        for value in values {
            // With as many bits as the significand has, the difference is exact and never rounds up to 1.
            let bits = random.random::<u64>() >> (64 - T::SIGNIFICAND_BITS);
            *value = T::from_f64(bits as f64 * 2.0 * T::UNIT_ROUNDOFF - 1.0);
        }
    });
}
