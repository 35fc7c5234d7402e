//! The matrices in `data/`.

use std::fs;
use std::path::Path;

use warprow::matrix_market::read_matrix_market;

use super::{Matrix, dense};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data");

fn data(name: &str) -> Matrix<f64> {
    read_matrix_market(Path::new(DATA).join(name)).unwrap()
}

#[test]
fn small_data_files_are_the_matrices_drawn_in_them() {
    assert_eq!(
        dense(&data("small.mtx")),
        [
            [1.0, 0.0, 2.5, 0.0],
            [0.0, 0.0, 0.0, -3.0],
            [0.0, 0.0, 0.0, 0.0],
            [4.0, 0.0, -0.5, 6.0],
            [0.0, 0.0, 7.0, 0.0],
        ]
    );
    assert_eq!(
        dense(&data("symmetric.mtx")),
        [
            [2.0, -1.0, 0.0, 0.0],
            [-1.0, 2.0, -1.0, 0.5],
            [0.0, -1.0, 0.0, 0.0],
            [0.0, 0.5, 0.0, 3.0],
        ]
    );
    assert_eq!(
        dense(&data("skew.mtx")),
        [[0.0, -1.0, 2.0], [1.0, 0.0, -3.0], [-2.0, 3.0, 0.0]]
    );
    assert_eq!(
        dense(&data("pattern.mtx")),
        [
            [0.0, 1.0, 0.0, 1.0, 0.0],
            [0.0; 5],
            [1.0, 1.0, 0.0, 0.0, 1.0],
        ]
    );
}

#[test]
fn the_table_of_the_data_readme_is_that_of_the_files() {
    let readme = fs::read_to_string(Path::new(DATA).join("README.md")).unwrap();
    for name in [
        "debian-bookworm-depends.mtx.gz",
        "small.mtx",
        "symmetric.mtx",
        "skew.mtx",
        "pattern.mtx",
    ] {
        let matrix = data(name);
        let lengths: Vec<usize> = matrix.outer_iterator().map(|row| row.nnz()).collect();
        let row = format!(
            "| `{name}` | {} | {} | {} | {} |",
            matrix.rows(),
            matrix.nnz(),
            lengths.iter().max().unwrap(),
            lengths.iter().filter(|&&length| length == 0).count()
        );
        assert!(
            readme.contains(&row),
            "data/README.md lacks the line\n{row}"
        );
    }
}
