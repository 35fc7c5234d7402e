//! What is refused, and where.

use std::io::{self, BufReader, Read};

use warprow::matrix_market::{
    Problem, ReadError, ReadOptions, parse_matrix_market, read_matrix_market,
};

use super::properties::assert_safe;
use super::{GENERAL, INTEGER, PATTERN, SKEW, SYMMETRIC, parse};

#[test]
fn every_error_says_where_what_was_wanted_and_what_was_found() {
    let banner = "wanted the banner `%%MatrixMarket matrix coordinate <field> <symmetry>`, found";
    let size = "wanted the size line `rows columns entries`, found";
    let cases: &[(&str, &str, u64, &str)] = &[
        ("", "", 1, &format!("{banner} an empty file")),
        ("", "\n", 1, &format!("{banner} ``")),
        ("", "1 1 1\n", 1, &format!("{banner} `1 1 1`")),
        (
            "",
            "%%MatrixMarket matrix coordinate real\n",
            1,
            &format!("{banner} `%%MatrixMarket matrix coordinate real`"),
        ),
        (
            "",
            "%%MatrixMarket vector coordinate real general\n",
            1,
            "wanted `matrix` as the object, found `vector`",
        ),
        (
            "",
            "%%MatrixMarket matrix array real general\n",
            1,
            "wanted `coordinate` as the format, found `array`",
        ),
        (
            "",
            "%%MatrixMarket matrix coordinate complex general\n",
            1,
            "wanted `real`, `integer` or `pattern` as the field, found `complex`",
        ),
        (
            "",
            "%%MatrixMarket matrix coordinate real hermitian\n",
            1,
            "wanted `general`, `symmetric` or `skew-symmetric` as the symmetry, found `hermitian`",
        ),
        (
            "",
            "%%MatrixMarket matrix coordinate pattern skew-symmetric\n",
            1,
            "wanted a real or integer field with skew-symmetric, found `pattern`",
        ),
        (GENERAL, "", 1, &format!("{size} the end of the file")),
        (
            GENERAL,
            "% c\n\n",
            3,
            &format!("{size} the end of the file"),
        ),
        (GENERAL, "\n2 2\n", 3, &format!("{size} `2 2`")),
        (GENERAL, "2 2 1 1\n", 2, &format!("{size} `2 2 1 1`")),
        (GENERAL, "2 -2 1\n", 2, &format!("{size} `2 -2 1`")),
        (GENERAL, "2 2 1.0\n", 2, &format!("{size} `2 2 1.0`")),
        (
            GENERAL,
            "4294967295 1 0\n",
            2,
            "wanted at most 4294967294 rows, found 4294967295",
        ),
        (
            GENERAL,
            "1 4294967296 0\n",
            2,
            "wanted at most 4294967295 columns, found 4294967296",
        ),
        (
            GENERAL,
            "1 1 99999999999999999999999\n",
            2,
            "wanted at most 4294967295 entries, found 18446744073709551615",
        ),
        (
            GENERAL,
            "4000000000 1 1\n1 1 1\n",
            2,
            "wanted at most 67108864 rows with 1 entries, found 4000000000; \
             ReadOptions::max_sparse_rows raises the limit",
        ),
        (
            SYMMETRIC,
            "2 3 0\n",
            2,
            "wanted as many columns as rows in a symmetric matrix, found 2 rows and 3 columns",
        ),
        (
            SKEW,
            "3 2 0\n",
            2,
            "wanted as many columns as rows in a skew-symmetric matrix, found 3 rows and 2 columns",
        ),
        (
            GENERAL,
            "2 3 2\n1 1 1\n%\n0 1 1\n",
            5,
            "wanted a row index from 1 to 2, found `0`",
        ),
        (
            GENERAL,
            "2 3 1\n3 1 1\n",
            3,
            "wanted a row index from 1 to 2, found `3`",
        ),
        (
            GENERAL,
            "2 3 1\n1 0 1\n",
            3,
            "wanted a column index from 1 to 3, found `0`",
        ),
        (
            GENERAL,
            "2 3 1\n1 4294967297 1\n",
            3,
            "wanted a column index from 1 to 3, found `4294967297`",
        ),
        (
            GENERAL,
            "0 0 1\n1 1 1\n",
            3,
            "wanted a row index from 1 to 0, found `1`",
        ),
        (
            GENERAL,
            "2 3 1\n1 -1 1\n",
            3,
            "wanted a column index, found `-1`",
        ),
        (
            GENERAL,
            "2 3 1\nx 1 1\n",
            3,
            "wanted a row index, found `x`",
        ),
        (
            GENERAL,
            "2 3 1\n1\n",
            3,
            "wanted a column index, found the end of the line",
        ),
        (
            GENERAL,
            "2 3 1\n1 1\n",
            3,
            "wanted a value of the field `real`, found the end of the line",
        ),
        (
            GENERAL,
            "2 3 1\n1 1 1.5x\n",
            3,
            "wanted a value of the field `real`, found `1.5x`",
        ),
        (
            GENERAL,
            "2 3 1\n1 1 1d0\n",
            3,
            "wanted a value of the field `real`, found `1d0`",
        ),
        (
            INTEGER,
            "2 3 1\n1 1 1.5\n",
            3,
            "wanted a value of the field `integer`, found `1.5`",
        ),
        (
            INTEGER,
            "2 3 1\n1 1 nan\n",
            3,
            "wanted a value of the field `integer`, found `nan`",
        ),
        (
            INTEGER,
            "2 3 1\n1 1 -\n",
            3,
            "wanted a value of the field `integer`, found `-`",
        ),
        (
            GENERAL,
            "2 3 1\n1 1 1e309\n",
            3,
            "wanted a number in the range of f64, found `1e309`, which is not representable",
        ),
        (
            GENERAL,
            "2 3 1\n1 1 1 2\n",
            3,
            "wanted the end of the line, found `2`",
        ),
        (
            PATTERN,
            "2 3 1\n1 1 1\n",
            3,
            "wanted the end of the line, found `1`",
        ),
        (
            SKEW,
            "2 2 1\n2 2 0\n",
            3,
            "wanted no entry on the diagonal of a skew-symmetric matrix, found (2, 2)",
        ),
        (
            GENERAL,
            "2 3 3\n1 1 1\n2 2 2\n",
            4,
            "wanted 3 entries, found the end of the file after 2",
        ),
        (
            GENERAL,
            "9 9 1000000000\n1 1 1\n",
            3,
            "wanted 1000000000 entries, found the end of the file after 1",
        ),
        (
            GENERAL,
            "2 3 1\n1 1 1\n\n2 2 2\n",
            5,
            "wanted the end of the file after 1 entries, found `2 2 2`",
        ),
    ];
    for (header, rest, line, message) in cases {
        let error = parse(format!("{header}{rest}")).expect_err(rest);
        assert_eq!(
            error.to_string(),
            format!("test.mtx:{line}: {message}"),
            "{header}{rest}"
        );
    }
}

#[test]
fn no_message_quotes_much_of_a_file_or_a_control_character() {
    let long = "\u{1b}[31mx".repeat(10_000);
    let banner = |word: usize| {
        let mut words = ["%%MatrixMarket", "matrix", "coordinate", "real", "general"];
        words[word] = &long;
        words.join(" ")
    };
    let texts = (0..5).map(banner).chain([
        format!("{GENERAL}{long}"),
        format!("{GENERAL}1 1 1\n{long} 1 1"),
        format!("{GENERAL}1 1 1\n1 {long} 1"),
        format!("{GENERAL}1 1 1\n1 1 {long}"),
        format!("{GENERAL}1 1 1\n1 1 1 {long}"),
        format!("{GENERAL}1 1 0\n{long}"),
        format!("{GENERAL}1 1 1\n1 1 1{}", "0".repeat(10_000)),
        format!("{GENERAL}1 1 1\n1{} 1 1", "0".repeat(10_000)),
    ]);
    for text in texts {
        assert_safe(&parse(&text).unwrap_err());
        // Bytes that are not UTF-8 are quoted by another way.
        assert_safe(&parse([text.as_bytes(), b"\xff"].concat()).unwrap_err());
    }
}

#[test]
fn a_number_beyond_f32_is_read_as_f64_alone() {
    let text = format!("{GENERAL}1 1 1\n1 1 -1e39\n");
    assert_eq!(parse(&text).unwrap().data(), [-1e39]);
    let error = parse_matrix_market::<f32>(text.as_bytes(), "a").unwrap_err();
    assert_eq!(
        error.to_string(),
        "a:3: wanted a number in the range of f32, found `-1e39`, which is not representable"
    );
}

#[test]
fn bytes_that_are_not_utf_8_are_errors_outside_of_comments() {
    let cases: [(&str, &[u8], u64); 5] = [
        ("", b"%%MatrixMarket \xff", 1),
        (GENERAL, b"1 \xff 1", 2),
        (GENERAL, b"1 1 1\n1 \xff 1", 3),
        (GENERAL, b"1 1 1\n1 1 \xff", 3),
        (GENERAL, b"1 1 1\n1 1 1 \xff", 3),
    ];
    for (header, rest, wanted_line) in cases {
        let error = parse([header.as_bytes(), rest].concat()).unwrap_err();
        let ReadError::Content {
            line,
            problem: Problem::NotUtf8 { found },
            ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(*line, wanted_line);
        assert!(found.contains("\\xff"), "{error}");
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_named() {
    let error = read_matrix_market::<f32>("no/such/file.mtx").unwrap_err();
    assert!(matches!(error, ReadError::Open { .. }));
    assert!(
        error
            .to_string()
            .starts_with("cannot open no/such/file.mtx: "),
        "{error}"
    );
}

#[test]
fn a_failure_to_read_is_reported_at_its_line() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the disk burns"))
        }
    }
    let text = format!("{GENERAL}2 2 2\n1 1 1\n");
    let error = parse_matrix_market::<f32>(BufReader::new(text.as_bytes().chain(Failing)), "a")
        .unwrap_err();
    assert_eq!(error.to_string(), "a:4: cannot read: the disk burns");
}

#[test]
fn options_move_the_limits() {
    let parse = |options: ReadOptions, text: &str| {
        (options.parse::<f64>(text.as_bytes(), "a"))
            .map(|matrix| matrix.nnz())
            .map_err(|error| error.to_string())
    };
    // Three entries, five with the other triangle.
    let symmetric = format!("{SYMMETRIC}3 3 3\n1 1 1\n2 1 1\n3 2 1\n");
    assert_eq!(
        parse(ReadOptions::default().max_entries(5), &symmetric),
        Ok(5)
    );
    assert_eq!(
        parse(ReadOptions::default().max_entries(4), &symmetric),
        Err("a:5: wanted at most 4 entries, found 5".to_owned())
    );
    let sparse = format!("{GENERAL}32 1 2\n32 1 1\n1 1 1\n");
    let sparser = format!("{GENERAL}33 1 2\n33 1 1\n1 1 1\n");
    assert_eq!(
        parse(ReadOptions::default().max_sparse_rows(0), &sparse),
        Ok(2)
    );
    assert_eq!(
        parse(ReadOptions::default().max_sparse_rows(33), &sparser),
        Ok(2)
    );
    assert!(
        parse(ReadOptions::default().max_sparse_rows(31), &sparser)
            .unwrap_err()
            .starts_with("a:2: wanted at most 32 rows")
    );
}
