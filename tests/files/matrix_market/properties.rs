//! What holds for all matrices and for all bytes.

use std::fmt::Debug;

use proptest::prelude::*;
use warprow::matrix_market::{ReadError, ReadOptions, read_matrix_market, write_matrix_market};

use super::{GENERAL, INTEGER, Matrix, PATTERN, SKEW, SYMMETRIC, gzip};

/// Matrices of all shapes, with any number but NaN as values.
fn matrices<T: Clone + Debug + 'static>(
    value: impl Strategy<Value = T> + Clone + 'static,
) -> impl Strategy<Value = Matrix<T>> {
    (0u32..12, 0u32..12).prop_flat_map(move |(rows, columns)| {
        let entries = (rows * columns) as usize;
        prop::collection::vec(prop::option::weighted(0.3, value.clone()), entries).prop_map(
            move |entries| {
                let (mut row_pointer, mut indices, mut data) = (vec![0], Vec::new(), Vec::new());
                for row in 0..rows {
                    for column in 0..columns {
                        if let Some(value) = &entries[(row * columns + column) as usize] {
                            indices.push(column);
                            data.push(value.clone());
                        }
                    }
                    row_pointer.push(indices.len() as u32);
                }
                Matrix::new(
                    (rows as usize, columns as usize),
                    row_pointer,
                    indices,
                    data,
                )
            },
        )
    })
}

/// Limits under which a text of a few bytes takes little memory.
fn tight() -> ReadOptions {
    ReadOptions::default()
        .max_sparse_rows(1 << 10)
        .max_entries(1 << 16)
}

/// The message quotes little of a file, and nothing that a terminal obeys.
pub(super) fn assert_safe(error: &ReadError) {
    let text = error.to_string();
    assert!(!text.contains(char::is_control), "{text:?}");
    // 80 characters of the file and what is said of them.
    assert!(text.chars().count() < 250, "{text}");
}

fn bits_f32(matrix: &Matrix<f32>) -> Vec<u32> {
    matrix.data().iter().map(|value| value.to_bits()).collect()
}

fn bits_f64(matrix: &Matrix<f64>) -> Vec<u64> {
    matrix.data().iter().map(|value| value.to_bits()).collect()
}

#[test]
fn what_proptest_finds_is_kept() {
    assert!(ProptestConfig::default().failure_persistence.is_some());
    let ignored = include_str!("../../../.gitignore");
    assert!(!ignored.contains("proptest"), "{ignored}");
}

proptest! {
    #[test]
    fn written_and_read_again_a_matrix_of_f32_is_the_same(
        matrix in matrices(any::<u32>().prop_map(f32::from_bits).prop_filter("NaN", |value| !value.is_nan())),
        extension in prop::sample::select(vec!["mtx", "mtx.gz"]),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("matrix").with_extension(extension);
        write_matrix_market(&path, matrix.view()).unwrap();
        let read = read_matrix_market::<f32>(&path).unwrap();
        prop_assert_eq!(bits_f32(&read), bits_f32(&matrix));
        prop_assert_eq!(read, matrix);
    }

    #[test]
    fn written_and_read_again_a_matrix_of_f64_is_the_same(
        matrix in matrices(any::<u64>().prop_map(f64::from_bits).prop_filter("NaN", |value| !value.is_nan())),
        extension in prop::sample::select(vec!["mtx", "mtx.gz"]),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("matrix").with_extension(extension);
        write_matrix_market(&path, matrix.view()).unwrap();
        let read = read_matrix_market::<f64>(&path).unwrap();
        prop_assert_eq!(bits_f64(&read), bits_f64(&matrix));
        prop_assert_eq!(read, matrix);
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_are_quoted_safely(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let after_a_banner = [GENERAL.as_bytes(), &bytes].concat();
        let as_gzip = [&[0x1f, 0x8b, 8, 0][..], &bytes].concat();
        for bytes in [bytes, after_a_banner, as_gzip] {
            if let Err(error) = tight().parse::<f64>(&bytes[..], "") {
                assert_safe(&error);
            }
        }
    }

    #[test]
    fn text_like_a_matrix_never_panics(
        banner in prop::sample::select(vec![GENERAL, INTEGER, PATTERN, SYMMETRIC, SKEW]),
        rest in "([0-9]{1,11}|-1|1e9|nan|%|[ \t\r\n]{1,2}){0,40}",
    ) {
        if let Ok(matrix) = tight().parse::<f64>(format!("{banner}{rest}").as_bytes(), "") {
            prop_assert!(matrix.check_compressed_structure().is_ok());
        }
    }

    #[test]
    fn a_valid_file_with_bytes_changed_or_cut_off_never_panics(
        matrix in matrices(-9i8..9),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        length in any::<prop::sample::Index>(),
        compress in any::<bool>(),
    ) {
        let mut text = format!("{GENERAL}{} {} {}\n", matrix.rows(), matrix.cols(), matrix.nnz()).into_bytes();
        for (value, (row, column)) in matrix.iter() {
            text.extend(format!("{} {} {value}\n", row + 1, column + 1).into_bytes());
        }
        let mut bytes = if compress { gzip(&text) } else { text };
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(length.index(bytes.len() + 1));
        if let Ok(matrix) = tight().parse::<f32>(&bytes[..], "") {
            prop_assert!(matrix.check_compressed_structure().is_ok());
        }
    }
}
