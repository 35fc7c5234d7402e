//! Random values, uniform in [-1, 1).

use ndarray::Array2;
use rand::RngExt;
use rayon::prelude::*;

use super::distinct::stream;
use crate::scalar::Scalar;

/// Values from one random stream.
const CHUNK: usize = 1 << 16;

/// The first stream of sparse values and of dense ones. Streams of nonzeros start at 0, so no numbers are used twice.
const SPARSE_STREAMS: u64 = 1 << 62;
const DENSE_STREAMS: u64 = 2 << 62;

/// A dense matrix, row-major, with values uniform in [-1, 1).
///
/// # Panics
///
/// If the matrix has more than `isize::MAX` bytes.
#[must_use]
pub fn dense<T: Scalar>(rows: usize, columns: usize, seed: u64) -> Array2<T> {
    let Some(length) = rows.checked_mul(columns) else {
        panic!("a dense {rows} x {columns} matrix does not fit the address space");
    };
    Array2::from_shape_vec((rows, columns), values(length, seed, DENSE_STREAMS))
        .expect("the length is that of the shape")
}

/// The values of a sparse matrix.
pub(super) fn sparse_values<T: Scalar>(length: usize, seed: u64) -> Vec<T> {
    values(length, seed, SPARSE_STREAMS)
}

fn values<T: Scalar>(length: usize, seed: u64, first_stream: u64) -> Vec<T> {
    let mut values = vec![T::ONE; length];
    values
        .par_chunks_mut(CHUNK)
        .enumerate()
        .for_each(|(chunk, values)| {
            let mut random = stream(seed, first_stream + chunk as u64);
            for value in values {
                // With as many bits as the significand has, the difference is exact and never rounds up to 1.
                let bits = random.random::<u64>() >> (64 - T::SIGNIFICAND_BITS);
                *value = T::from_f64(bits as f64 * 2.0 * T::UNIT_ROUNDOFF - 1.0);
            }
        });
    values
}
