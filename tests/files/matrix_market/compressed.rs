//! Files compressed by gzip, whole, broken and hostile.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use warprow::matrix_market::{Problem, ReadError, ReadOptions, read_matrix_market};

use super::{GENERAL, dense, gzip, parse};

#[test]
fn gzip_is_told_by_its_content() {
    let directory = tempfile::tempdir().unwrap();
    let text = format!("{GENERAL}2 2 1\n2 1 3\n");
    for (name, content) in [
        ("compressed.mtx", gzip(text.as_bytes())),
        ("plain.mtx.gz", text.clone().into_bytes()),
    ] {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        assert_eq!(
            dense(&read_matrix_market(&path).unwrap()),
            [[0.0, 0.0], [3.0, 0.0]]
        );
    }
    // Compressed in pieces, as parallel compressors do.
    let (start, end) = text.split_at(50);
    let members = [gzip(start.as_bytes()), gzip(end.as_bytes())].concat();
    assert_eq!(dense(&parse(members).unwrap()), [[0.0, 0.0], [3.0, 0.0]]);
}

#[test]
fn truncated_and_corrupt_gzip_data_are_errors() {
    let text = format!(
        "{GENERAL}100 100 100\n{}",
        (1..=100)
            .map(|i| format!("{i} {i} {}\n", i * i))
            .collect::<String>()
    );
    let whole = gzip(text.as_bytes());
    assert!(parse(&whole).is_ok());
    for length in 1..whole.len() {
        let error = parse(&whole[..length]).unwrap_err();
        assert!(
            matches!(
                &error,
                ReadError::Content {
                    problem: Problem::Gzip(_),
                    ..
                }
            ),
            "{length}: {error}"
        );
    }
    // The checksum is the last but four bytes.
    let mut corrupt = whole.clone();
    let checksum = corrupt.len() - 8;
    corrupt[checksum] ^= 1;
    let error = parse(&corrupt).unwrap_err();
    assert!(error.to_string().starts_with("test.mtx:"), "{error}");
    assert!(matches!(
        error,
        ReadError::Content {
            line: 102..,
            problem: Problem::Gzip(_),
            ..
        }
    ));
}

#[test]
fn a_gzip_bomb_is_refused_when_its_ratio_shows() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder
        .write_all(format!("{GENERAL}1 1 4000000000\n").as_bytes())
        .unwrap();
    let lines = b"1 1 1\n".repeat(10_000);
    for _ in 0..1000 {
        encoder.write_all(&lines).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 1 << 20);
    let error = parse(&bomb).unwrap_err();
    assert!(
        matches!(
            error,
            ReadError::Content {
                problem: Problem::GzipRatio { most: 100 },
                ..
            }
        ),
        "{error}"
    );
    // 60 MB of text, of which at most 100 times the bomb's length was read.
    let ReadError::Content { line, .. } = error else {
        unreachable!()
    };
    assert!(line < 9_000_000, "{line}");

    let error = ReadOptions::default()
        .max_gzip_ratio(2000)
        .parse::<f32>(&bomb[..], "bomb")
        .unwrap_err();
    assert!(
        matches!(
            error,
            ReadError::Content {
                problem: Problem::TooFewEntries {
                    found: 10_000_000,
                    ..
                },
                ..
            }
        ),
        "{error}"
    );
}
