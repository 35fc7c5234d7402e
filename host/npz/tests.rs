//! Files as `scipy` writes them, made here, and files that are wrong.

use super::*;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use std::io::Write;

/// An npy file.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    crate::npy::write_header(&mut bytes, descr, shape).unwrap();
    bytes.extend(data);
    bytes
}

fn integers(numbers: &[i64]) -> Vec<u8> {
    let data: Vec<u8> = numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    npy("<i8", &format!("({},)", numbers.len()), &data)
}

fn floats(numbers: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    npy("<f4", &format!("({},)", numbers.len()), &data)
}

fn text(text: &str) -> Vec<u8> {
    npy(&format!("|S{}", text.len()), "()", text.as_bytes())
}

fn zip(members: &[(&str, Vec<u8>)], compressed: bool) -> Vec<u8> {
    let mut zip = ZipArchiveWriter::new(Vec::new());
    for (name, content) in members {
        let name = format!("{name}.npy");
        let method = match compressed {
            true => CompressionMethod::DEFLATE,
            false => CompressionMethod::STORE,
        };
        let (mut entry, config) = zip
            .new_file(&name)
            .compression_method(method)
            .start()
            .unwrap();
        let descriptor = if compressed {
            let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::fast()));
            writer.write_all(content).unwrap();
            let (encoder, descriptor) = writer.finish().unwrap();
            encoder.finish().unwrap();
            descriptor
        } else {
            let mut writer = config.wrap(&mut entry);
            writer.write_all(content).unwrap();
            writer.finish().unwrap().1
        };
        entry.finish(descriptor).unwrap();
    }
    zip.finish().unwrap()
}

/// The matrix `[. 2 .; 1 . 3]` in csr.
fn csr() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("indices", integers(&[1, 0, 2])),
        ("indptr", integers(&[0, 1, 3])),
        ("format", text("csr")),
        ("shape", integers(&[2, 3])),
        ("data", floats(&[2.0, 1.0, 3.0])),
    ]
}

fn with(member: &'static str, content: Vec<u8>) -> Vec<u8> {
    let mut members = csr();
    members.retain(|(name, _)| *name != member);
    members.push((member, content));
    zip(&members, false)
}

fn parse<T: Scalar>(bytes: &[u8]) -> Result<CsMatI<T, u32, u32>, NpzProblem> {
    NpzOptions::default().parse(bytes)
}

fn refused(bytes: &[u8]) -> String {
    parse::<f32>(bytes).unwrap_err().to_string()
}

fn wanted() -> CsMatI<f32, u32, u32> {
    CsMatI::new((2, 3), vec![0, 1, 3], vec![1, 0, 2], vec![2.0, 1.0, 3.0])
}

#[test]
fn csr_csc_and_coo_give_the_same_matrix_compressed_or_not() {
    let csc = vec![
        ("indices", integers(&[1, 0, 1])),
        ("indptr", integers(&[0, 1, 2, 3])),
        ("format", text("csc")),
        ("shape", integers(&[2, 3])),
        ("data", floats(&[1.0, 2.0, 3.0])),
    ];
    let coo = vec![
        ("row", integers(&[1, 0, 1, 1])),
        ("col", integers(&[2, 1, 0, 2])),
        ("format", text("coo")),
        ("shape", integers(&[2, 3])),
        ("data", floats(&[1.0, 2.0, 1.0, 2.0])),
    ];
    for members in [csr(), csc, coo] {
        for compressed in [false, true] {
            assert_eq!(parse::<f32>(&zip(&members, compressed)).unwrap(), wanted());
        }
    }
}

#[test]
fn rows_in_any_order_are_sorted_and_duplicates_summed() {
    let mut members = csr();
    members[0].1 = integers(&[1, 2, 0, 2]);
    members[1].1 = integers(&[0, 1, 4]);
    members[4].1 = floats(&[2.0, 1.0, 1.0, 2.0]);
    assert_eq!(parse::<f32>(&zip(&members, false)).unwrap(), wanted());
}

#[test]
fn what_is_written_is_read() {
    let mut a = wanted();
    let mut bytes = Vec::new();
    write_members(&mut bytes, a.view()).unwrap();
    assert_eq!(parse::<f32>(&bytes).unwrap(), a);
    a = a.to_csc();
    bytes.clear();
    write_members(&mut bytes, a.view()).unwrap();
    assert_eq!(parse::<f32>(&bytes).unwrap(), wanted());
    for shape in [(0, 0), (0, 3), (3, 0)] {
        let empty = CsMatI::<f64, u32, u32>::new(shape, vec![0; shape.0 + 1], vec![], vec![]);
        bytes.clear();
        write_members(&mut bytes, empty.view()).unwrap();
        assert_eq!(parse::<f64>(&bytes).unwrap(), empty);
    }
}

#[test]
fn arrays_that_do_not_fit_each_other_are_refused_with_their_place() {
    for (member, content, message) in [
        (
            "indices",
            integers(&[1, 0, 3]),
            "array `indices`, element 2: wanted a number from 0 to 2, found 3",
        ),
        (
            "indices",
            integers(&[1, -1, 2]),
            "array `indices`, element 1: wanted a number from 0 to 2, found -1",
        ),
        (
            "indices",
            integers(&[1, 0]),
            "array `indices`: wanted 3 elements, found 2",
        ),
        (
            "indptr",
            integers(&[0, 1]),
            "array `indptr`: wanted 3 elements, found 2",
        ),
        (
            "indptr",
            integers(&[0, 4, 3]),
            "array `indptr`, element 2: wanted a number from 4 to 4294967295, found 3",
        ),
        (
            "indptr",
            integers(&[1, 1, 3]),
            "array `indptr`, element 0: wanted a number from 0 to 0, found 1",
        ),
        (
            "data",
            floats(&[1.0]),
            "array `data`: wanted 3 elements, found 1",
        ),
        (
            "data",
            text("abc"),
            "array `data`: wanted elements of floats",
        ),
        (
            "indices",
            floats(&[1.0]),
            "array `indices`: wanted elements of integers",
        ),
        (
            "shape",
            integers(&[2]),
            "array `shape`: wanted rows and columns",
        ),
        (
            "shape",
            integers(&[2, 1 << 40]),
            "array `shape`: wanted rows and columns",
        ),
        (
            "format",
            text("bsr"),
            "wanted the format csr, csc or coo, found `bsr`",
        ),
    ] {
        let found = refused(&with(member, content));
        assert!(found.starts_with(message), "{found}");
    }
    let missing = zip(&csr()[..4], false);
    assert!(refused(&missing).starts_with("wanted an array `data`"));
    assert!(refused(b"").starts_with("no zip file"));
    assert!(refused(b"PK\x03\x04 but no more").starts_with("no zip file"));
}

#[test]
fn rows_that_no_entry_needs_are_limited() {
    let coo = vec![
        ("row", integers(&[0])),
        ("col", integers(&[0])),
        ("format", text("coo")),
        ("shape", integers(&[4_000_000_000, 1])),
        ("data", floats(&[1.0])),
    ];
    assert!(refused(&zip(&coo, true)).starts_with("wanted at most 67108864 rows with 1 entries"));
}

#[test]
fn no_cut_of_a_file_and_no_change_of_a_byte_panics() {
    for compressed in [false, true] {
        let bytes = zip(&csr(), compressed);
        for length in 0..bytes.len() {
            assert!(parse::<f32>(&bytes[..length]).is_err());
        }
        for place in 0..bytes.len() {
            for byte in [0, b'9', 0xff] {
                let mut changed = bytes.clone();
                changed[place] = byte;
                let _ = parse::<f32>(&changed);
            }
        }
    }
}

#[test]
fn a_matrix_has_at_most_as_many_entries_as_32_bits_count() {
    assert!(check_entries(u32::MAX as usize).is_ok());
    let error = check_entries(1 << 32).unwrap_err();
    assert_eq!(
        error.to_string(),
        "wanted at most 4294967295 entries, found 4294967296"
    );
}
