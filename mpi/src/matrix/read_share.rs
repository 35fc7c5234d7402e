//! Reading a Matrix Market file by all ranks: each reads its share of the bytes, whatever rows the entries are in.

use crate::world::World;
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use warprow::matrix_market::ReadOptions;
use warprow::{CsrMatrix, Scalar};

/// The most rows of a matrix that has less than one entry for every 16 rows.
const MOST_SPARSE_ROWS: u64 = 1 << 26;

/// This rank's share of a matrix: of its shape, with the entries of a part of the file. The ranks' shares add up to the
/// matrix. The file is in Matrix Market's coordinate format, and plain text.
///
/// # Errors
///
/// A file that cannot be read, or is no such matrix; on all ranks, if all of them find fewer or more lines of entries
/// than the file says.
pub fn read_share<T: Scalar>(world: &World, path: &Path) -> Result<CsrMatrix<T>> {
    let name = path.display();
    let of_file = || format!("cannot read {name}");
    let mut file = BufReader::new(File::open(path).with_context(of_file)?);
    let header = Header::read(&mut file).with_context(of_file)?;
    // As `ReadOptions` has it by default, for the whole file.
    let most_rows = MOST_SPARSE_ROWS.max(header.entries.saturating_mul(16));
    ensure!(
        header.rows <= most_rows,
        "{name}: wanted are at most {most_rows} rows with {} entries, found {}",
        header.entries,
        header.rows
    );
    let bytes = file.get_ref().metadata().with_context(of_file)?.len();
    let entries_bytes = bytes.saturating_sub(header.bytes);
    let ideal = |rank: usize| {
        let share = u128::from(entries_bytes) * rank as u128 / world.size() as u128;
        header.bytes + share as u64
    };
    let start = line_start(&mut file, header.bytes, ideal(world.rank())).with_context(of_file)?;
    let end = line_start(&mut file, header.bytes, ideal(world.rank() + 1)).with_context(of_file)?;
    file.seek(SeekFrom::Start(start)).with_context(of_file)?;
    let lines = count_lines((&mut file).take(end - start)).with_context(of_file)?;
    let of_all: u64 = world.all(lines).iter().sum();
    ensure!(
        of_all == header.entries,
        "{name}: the file says that it has {} entries, found are {of_all}",
        header.entries
    );
    // The share is a file of its own, whose size line says how many entries follow.
    let (rows, columns) = (header.rows, header.columns);
    let top = format!("{}\n{rows} {columns} {lines}\n", header.banner);
    file.seek(SeekFrom::Start(start)).with_context(of_file)?;
    let whole = Cursor::new(top).chain(file.take(end - start));
    // A share may have few entries for its rows.
    let options = ReadOptions::default().max_sparse_rows(u32::MAX);
    let part = format!("{name}, bytes {start} to {end}, with 2 lines before");
    Ok(options.parse(whole, &part)?)
}

/// What a file begins with.
struct Header {
    banner: String,
    rows: u64,
    columns: u64,
    /// Lines of entries.
    entries: u64,
    /// Where the lines of entries begin.
    bytes: u64,
}

impl Header {
    fn read(file: &mut impl BufRead) -> Result<Self> {
        let (mut banner, mut bytes) = (None, 0);
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = file.read_until(b'\n', &mut line)?;
            ensure!(length > 0, "the file ends before the line with its size");
            bytes += length as u64;
            let text = std::str::from_utf8(&line).context(
                "all ranks read plain text alone, and this is none; without --read parts it may be compressed",
            )?;
            let text = text.trim();
            if banner.is_none() {
                let lower = text.to_ascii_lowercase();
                ensure!(
                    lower.starts_with("%%matrixmarket matrix coordinate"),
                    "wanted is `%%MatrixMarket matrix coordinate` in line 1"
                );
                banner = Some(text.to_owned());
            } else if !text.is_empty() && !text.starts_with('%') {
                let numbers: Vec<u64> = text
                    .split_whitespace()
                    .map_while(|word| word.parse().ok())
                    .collect();
                let [rows, columns, entries] = numbers[..] else {
                    anyhow::bail!(
                        "wanted are rows, columns and entries in the line after the comments"
                    );
                };
                let banner = banner.context("a file begins with its banner")?;
                return Ok(Self {
                    banner,
                    rows,
                    columns,
                    entries,
                    bytes,
                });
            }
        }
    }
}

/// The start of the first line that begins at a position or behind it.
fn line_start(file: &mut (impl BufRead + Seek), first: u64, position: u64) -> std::io::Result<u64> {
    if position <= first {
        return Ok(first);
    }
    file.seek(SeekFrom::Start(position - 1))?;
    let mut rest = Vec::new();
    let length = file.read_until(b'\n', &mut rest)?;
    Ok(position - 1 + length as u64)
}

/// The lines that are neither empty nor comments.
fn count_lines(mut text: impl BufRead) -> std::io::Result<u64> {
    let (mut count, mut line) = (0, Vec::new());
    loop {
        line.clear();
        if text.read_until(b'\n', &mut line)? == 0 {
            return Ok(count);
        }
        let first = line.iter().find(|byte| !byte.is_ascii_whitespace());
        count += u64::from(first.is_some_and(|&byte| byte != b'%'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_begin_with_lines_and_cover_all_of_them() {
        let text = "ab\n\ncde\nf\n%\ng";
        for shares in 1..=20_u64 {
            let mut file = Cursor::new(text);
            let bytes = text.len() as u64 - 3;
            let starts = (0..=shares)
                .map(|share| line_start(&mut file, 3, 3 + bytes * share / shares).unwrap());
            let starts: Vec<u64> = starts.collect();
            assert_eq!((starts[0], starts[shares as usize]), (3, text.len() as u64));
            let parts = starts
                .windows(2)
                .map(|ends| &text[ends[0] as usize..ends[1] as usize]);
            let counts = parts.map(|part| {
                assert!(
                    part.is_empty() || part.ends_with('\n') || part.ends_with('g'),
                    "{part:?}"
                );
                count_lines(part.as_bytes()).unwrap()
            });
            assert_eq!(counts.sum::<u64>(), 3, "cde, f and g");
        }
    }

    #[test]
    fn a_header_ends_after_the_line_with_the_size() {
        let text = "%%MatrixMarket matrix coordinate real general\n% c\n\n3 4 5\n1 1 1.0\n";
        let header = Header::read(&mut text.as_bytes()).unwrap();
        assert_eq!((header.rows, header.columns, header.entries), (3, 4, 5));
        assert_eq!(&text[header.bytes as usize..], "1 1 1.0\n");
        for wrong in [
            "",
            "%%MatrixMarket matrix array real general\n3 4\n",
            "%%MatrixMarket matrix coordinate real general\n3 x 5\n",
        ] {
            assert!(Header::read(&mut wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
