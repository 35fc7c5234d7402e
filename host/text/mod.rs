//! Text files, plain or compressed by gzip, line by line.

mod gzip;
mod lines;

use std::io::{self, BufRead, Read};

use crate::quote::quote;
use gzip::BoundedGzip;
pub(crate) use lines::{Fields, Lines};

/// The first byte of a gzip file; no text in UTF-8 begins with it.
const GZIP_MAGIC: u8 = 0x1f;

/// What can be wrong with any text, whatever its format.
#[derive(Debug)]
pub(crate) enum TextError {
    /// Reading failed.
    Io(io::Error),
    /// The compressed data ends early or is corrupt.
    Gzip(io::Error),
    /// The compressed data expands to too much text.
    GzipRatio { most: u32 },
    /// A line is too long.
    LineTooLong { most: usize },
    /// Something other than a comment is not UTF-8.
    NotUtf8 { found: String },
}

/// The text that a reader gives, decompressed if its first byte is that of gzip: at most `max_gzip_ratio` bytes for
/// each of the data.
pub(crate) fn decompressed<'a>(
    mut reader: impl BufRead + 'a,
    max_gzip_ratio: u32,
) -> Result<Box<dyn Read + 'a>, TextError> {
    let start = reader.fill_buf().map_err(TextError::Io)?;
    Ok(if start.first() == Some(&GZIP_MAGIC) {
        Box::new(BoundedGzip::new(reader, max_gzip_ratio))
    } else {
        Box::new(reader)
    })
}

/// A number of decimal digits alone, capped at the greatest u64; `None` for anything else.
#[inline]
pub(crate) fn parse_count(field: &[u8]) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    field.iter().try_fold(0u64, |count, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| count.saturating_mul(10).saturating_add(digit.into()))
    })
}

/// Found text as [`crate::quote`] shows it. Text that is not UTF-8 is an error of its own.
#[cold]
pub(crate) fn quoted(found: &[u8]) -> Result<String, TextError> {
    let quoted = quote(found);
    match std::str::from_utf8(found) {
        Ok(_) => Ok(quoted),
        Err(_) => Err(TextError::NotUtf8 { found: quoted }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_an_error_of_their_own() {
        let error = quoted(b"caf\xe9").unwrap_err();
        assert!(matches!(error, TextError::NotUtf8 { found } if found == "`caf\\xe9`"));
    }

    #[test]
    fn a_count_has_digits_alone() {
        assert_eq!(parse_count(b"0420"), Some(420));
        assert_eq!(parse_count(b"99999999999999999999"), Some(u64::MAX));
        for text in [&b""[..], b"-1", b"+1", b"1.0", b" 1"] {
            assert_eq!(parse_count(text), None);
        }
    }
}
