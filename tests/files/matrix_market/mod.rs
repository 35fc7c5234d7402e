//! Matrix Market files: what is read, what is refused and where, and that nothing is lost between writing and reading.

mod accepted;
mod compressed;
mod data_files;
mod memory;
mod properties;
mod refused;
#[cfg(unix)]
mod special_files;
mod written;

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use sprs::CsMatI;
use warprow::matrix_market::{ReadError, parse_matrix_market};

type Matrix<T> = CsMatI<T, u32, u32>;

fn parse(text: impl AsRef<[u8]>) -> Result<Matrix<f64>, ReadError> {
    parse_matrix_market(text.as_ref(), "test.mtx")
}

/// The rows of a matrix, absent entries as 0.
fn dense(matrix: &Matrix<f64>) -> Vec<Vec<f64>> {
    let mut rows = vec![vec![0.0; matrix.cols()]; matrix.rows()];
    for (&value, (row, column)) in matrix.iter() {
        rows[row as usize][column as usize] = value;
    }
    rows
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

const GENERAL: &str = "%%MatrixMarket matrix coordinate real general\n";
const INTEGER: &str = "%%MatrixMarket matrix coordinate integer general\n";
const PATTERN: &str = "%%MatrixMarket matrix coordinate pattern general\n";
const SYMMETRIC: &str = "%%MatrixMarket matrix coordinate real symmetric\n";
const SKEW: &str = "%%MatrixMarket matrix coordinate real skew-symmetric\n";
