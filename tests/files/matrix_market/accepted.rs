//! What is read, and as what.

use warprow::matrix_market::parse_matrix_market;

use super::{GENERAL, INTEGER, Matrix, PATTERN, SYMMETRIC, dense, parse};

#[test]
fn what_other_readers_accept_is_accepted() {
    let same = [
        "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 1.5\n2 3 -2\n",
        "%%MATRIXMARKET MATRIX Coordinate REAL General\n2 3 2\n1 1 1.5\n2 3 -2",
        "%MatrixMarket matrix coordinate double general extra\n2 3 2\n1 1 +1.5\n2 3 -2.\n",
        "%%MatrixMarket matrix coordinate real general\r\n% comment\r\n\r\n2 3 2\r\n1 1 15e-1\r\n2 3 -2E0\r\n",
        "  %%MatrixMarket\tmatrix coordinate  real general \n %c\n\t2\t3 2 \n\n  2 3 -2 \n%c\n1   1 .15E+1\n\n%c\n \n",
        "%%MatrixMarket matrix coordinate real general\n02 003 2\n01 1 1.5\n2 000000000000000000003 -2.0\n",
    ];
    for text in same {
        let matrix = parse(text).unwrap_or_else(|error| panic!("{error} in {text:?}"));
        assert_eq!(
            dense(&matrix),
            [[1.5, 0.0, 0.0], [0.0, 0.0, -2.0]],
            "{text:?}"
        );
    }
    let latin_1 = [GENERAL.as_bytes(), b"% caf\xe9\n1 1 1\n% \xff\n1 1 2\n"].concat();
    assert_eq!(dense(&parse(latin_1).unwrap()), [[2.0]]);
}

#[test]
fn special_values_are_read_in_any_case() {
    let text = format!("{GENERAL}1 5 5\n1 1 nan\n1 2 NaN\n1 3 inf\n1 4 -Infinity\n1 5 1e-999\n");
    let matrix = parse(text).unwrap();
    let values = matrix.data();
    assert!(values[0].is_nan() && values[1].is_nan());
    assert_eq!(values[2..], [f64::INFINITY, f64::NEG_INFINITY, 0.0]);
}

#[test]
fn numbers_are_rounded_once_to_the_element_type() {
    // A little more than half way to the next f32; rounded to f64 first, it would be half way, and go down.
    let number = "1.00000005960464477540";
    assert_eq!(number.parse::<f64>().unwrap() as f32, 1.0);
    let text = format!("{GENERAL}1 1 1\n1 1 {number}\n");
    let single: Matrix<f32> = parse_matrix_market(text.as_bytes(), "").unwrap();
    assert_eq!(single.data(), [1.0 + f32::EPSILON]);
    let integer = format!("{INTEGER}1 1 1\n1 1 -9007199254740993\n");
    assert_eq!(parse(integer).unwrap().data(), [-9007199254740992.0]);
}

#[test]
fn duplicates_are_summed() {
    assert_eq!(
        dense(&parse(format!("{PATTERN}2 2 3\n2 1\n1 2\n2 1\n")).unwrap()),
        [[0.0, 1.0], [2.0, 0.0]]
    );
    // Both triangles of a symmetric matrix stand for both.
    let symmetric = parse(format!("{SYMMETRIC}2 2 3\n2 1 1\n1 2 2\n1 1 5\n")).unwrap();
    assert_eq!(dense(&symmetric), [[5.0, 3.0], [3.0, 0.0]]);
}

#[test]
fn empty_matrices_are_read() {
    for (rows, columns) in [(0, 0), (0, 4), (4, 0), (3, 2)] {
        let matrix = parse(format!("{GENERAL}{rows} {columns} 0\n")).unwrap();
        assert_eq!((matrix.shape(), matrix.nnz()), ((rows, columns), 0));
    }
    let wide = parse(format!("{GENERAL}1 4294967295 1\n1 4294967295 1\n")).unwrap();
    assert_eq!(wide.indices(), [u32::MAX - 1]);
}
