//! Decompression of gzip data, with a limit on the length of the text.

use std::fmt;
use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;

/// Up to this many bytes of text, any ratio is allowed: they take little memory.
const FREE: u64 = 16 << 20;

/// Decompresses gzip data of one or several members. Its errors carry a [`GzipFault`] if the data is wrong.
pub(crate) struct BoundedGzip<R> {
    decoder: MultiGzDecoder<Counted<R>>,
    max_ratio: u32,
    produced: u64,
}

/// What is wrong with the data, as the payload of an [`io::Error`].
#[derive(Debug)]
pub(crate) enum GzipFault {
    /// It cannot be decompressed.
    Corrupt(io::Error),
    /// The text is more than this many times as long as the data.
    Ratio(u32),
}

impl fmt::Display for GzipFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt(error) => error.fmt(f),
            Self::Ratio(most) => write!(f, "more than {most} bytes for a byte"),
        }
    }
}

impl std::error::Error for GzipFault {}

impl<R: BufRead> BoundedGzip<R> {
    pub(crate) fn new(reader: R, max_ratio: u32) -> Self {
        Self {
            decoder: MultiGzDecoder::new(Counted {
                reader,
                consumed: 0,
            }),
            max_ratio,
            produced: 0,
        }
    }
}

impl<R: BufRead> Read for BoundedGzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self
            .decoder
            .read(buffer)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof
                | io::ErrorKind::InvalidInput
                | io::ErrorKind::InvalidData => io::Error::other(GzipFault::Corrupt(error)),
                _ => error,
            })?;
        self.produced += read as u64;
        let consumed = self.decoder.get_ref().consumed;
        if self.produced > FREE.max(consumed.saturating_mul(self.max_ratio.into())) {
            return Err(io::Error::other(GzipFault::Ratio(self.max_ratio)));
        }
        Ok(read)
    }
}

/// Counts the bytes that are taken from a reader.
struct Counted<R> {
    reader: R,
    consumed: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.consumed += read as u64;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.consumed += amount as u64;
        self.reader.consume(amount);
    }
}
