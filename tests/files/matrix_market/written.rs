//! Files as they are written.

use std::fs;
use std::path::{Path, PathBuf};

use warprow::matrix_market::{Output, write_matrix_market};

use super::Matrix;

#[test]
fn a_failed_write_leaves_what_was_there() {
    let directory = tempfile::tempdir().unwrap();
    let matrix = Matrix::new((1, 1), vec![0u32, 1], vec![0u32], vec![1.0f32]);
    // A directory cannot be replaced by a file.
    let path = directory.path().join("taken.mtx");
    fs::create_dir(&path).unwrap();
    let error = write_matrix_market(&path, matrix.view()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with(&format!("cannot write {}: ", path.display())),
        "{error}"
    );
    let left: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["taken.mtx"]);
    assert!(write_matrix_market(directory.path().join("no/such.mtx"), matrix.view()).is_err());
    assert!(write_matrix_market("..", matrix.view()).is_err());
}

#[test]
fn a_written_file_is_general_real_and_replaces_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.mtx");
    // Longer than the matrix, to see that nothing of it remains.
    fs::write(&path, "x".repeat(1000)).unwrap();
    // Stored by columns.
    let matrix = Matrix::new_csc((2, 2), vec![0u32, 1, 2], vec![1u32, 0], vec![1e300, -0.0]);
    write_matrix_market(&path, matrix.view()).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        text,
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n2 1 1e300\n1 2 -0.0\n"
    );
    write_matrix_market(directory.path().join("a.mtx.GZ"), matrix.view()).unwrap();
    assert_eq!(
        fs::read(directory.path().join("a.mtx.GZ")).unwrap()[..2],
        [0x1f, 0x8b]
    );
}

#[test]
fn a_view_of_some_rows_is_written_as_a_matrix_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.mtx");
    let matrix = Matrix::new(
        (4, 2),
        vec![0u32, 1, 1, 3, 4],
        vec![0u32, 0, 1, 1],
        vec![1.0f32, 2.0, 3.0, 4.0],
    );
    write_matrix_market(&path, matrix.slice_outer(1..3)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        text,
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n2 1 2.0\n2 2 3.0\n"
    );
}

pub fn one() -> Matrix<f32> {
    Matrix::new((1, 1), vec![0u32, 1], vec![0u32], vec![1.0f32])
}

pub const ONE: &str = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1.0\n";

pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn names_may_be_as_long_as_the_system_allows() {
    let directory = tempfile::tempdir().unwrap();
    for length in [244, 255] {
        let path = directory.path().join("m".repeat(length));
        write_matrix_market(&path, one().view()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), ONE);
    }
}

#[test]
fn a_place_is_tested_before_there_is_a_matrix_and_left_alone_until_then() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for place in ["no/such.mtx", "new/", ".", ""] {
        let place = if place.is_empty() {
            PathBuf::new()
        } else {
            path(place)
        };
        assert!(Output::create(&place).is_err(), "{}", place.display());
    }
    fs::write(path("a.mtx"), "before").unwrap();
    let output = Output::create(path("a.mtx")).unwrap();
    let partial = output.partial_path().unwrap().to_owned();
    assert!(partial.exists());
    assert_eq!(fs::read_to_string(path("a.mtx")).unwrap(), "before");
    drop(output);
    assert_eq!(names(directory.path()), ["a.mtx"]);
    assert_eq!(fs::read_to_string(path("a.mtx")).unwrap(), "before");
}
