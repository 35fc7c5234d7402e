//! Lines of a text, numbered, and the fields of a line.

use std::io::{self, Read};

use super::TextError;
use super::gzip::GzipFault;

/// Bytes of text in memory at a time. A line must be shorter; the format allows 1024 bytes.
const CHUNK: usize = 1 << 18;

/// The lines of a text, of which one chunk is in memory.
pub(crate) struct Lines<R> {
    reader: R,
    /// The first bytes of lines that are comments.
    comments: &'static [u8],
    chunk: Box<[u8]>,
    /// The part of the chunk that is not yet returned as lines.
    start: usize,
    end: usize,
    at_end: bool,
    number: u64,
}

impl<R: Read> Lines<R> {
    /// `comments` are the bytes that a comment may begin with.
    pub(crate) fn new(reader: R, comments: &'static [u8]) -> Self {
        Self {
            reader,
            comments,
            chunk: vec![0; CHUNK].into_boxed_slice(),
            start: 0,
            end: 0,
            at_end: false,
            number: 0,
        }
    }

    /// The number of the line last returned or failed at, counted from 1; 1 if there is none.
    pub(crate) fn number(&self) -> u64 {
        self.number.max(1)
    }

    /// The next line that is neither empty nor a comment, without its end.
    pub(crate) fn next_content(&mut self) -> Result<Option<Fields<'_>>, TextError> {
        while let Some((start, end)) = self.next_range()? {
            let first = self.chunk[start..end].trim_ascii_start().first();
            if first.is_some_and(|byte| !self.comments.contains(byte)) {
                return Ok(Some(Fields(&self.chunk[start..end])));
            }
        }
        Ok(None)
    }

    /// The next line, whatever it is, without its end.
    pub(crate) fn next_line(&mut self) -> Result<Option<Fields<'_>>, TextError> {
        let range = self.next_range()?;
        Ok(range.map(|(start, end)| Fields(&self.chunk[start..end])))
    }

    /// Where the next line lies in the chunk.
    fn next_range(&mut self) -> Result<Option<(usize, usize)>, TextError> {
        let mut searched = self.start;
        loop {
            let unsearched = &self.chunk[searched..self.end];
            if let Some(length) = unsearched.iter().position(|&byte| byte == b'\n') {
                let line = (self.start, searched + length);
                self.start = line.1 + 1;
                self.number += 1;
                return Ok(Some(line));
            }
            if self.at_end {
                if self.start == self.end {
                    return Ok(None);
                }
                let line = (self.start, self.end);
                self.start = self.end;
                self.number += 1;
                return Ok(Some(line));
            }
            searched = self.end - self.start;
            self.refill().inspect_err(|_| self.number += 1)?;
        }
    }

    /// Moves what is left to the chunk's start and reads on behind it.
    fn refill(&mut self) -> Result<(), TextError> {
        self.chunk.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == CHUNK {
            return Err(TextError::LineTooLong { most: CHUNK });
        }
        let read = loop {
            match self.reader.read(&mut self.chunk[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read.map_err(problem)?,
            }
        };
        self.end += read;
        self.at_end = read == 0;
        Ok(())
    }
}

fn problem(error: io::Error) -> TextError {
    match error.downcast::<GzipFault>() {
        Ok(GzipFault::Corrupt(error)) => TextError::Gzip(error),
        Ok(GzipFault::Ratio(most)) => TextError::GzipRatio { most },
        Err(error) => TextError::Io(error),
    }
}

/// What is left of a line, taken field by field; fields are separated by blanks.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// What is left, without blanks around it.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0.trim_ascii()
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.0.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let rest = &self.0[start..];
        let length = (rest.iter().position(u8::is_ascii_whitespace)).unwrap_or(rest.len());
        let (field, rest) = rest.split_at(length);
        self.0 = rest;
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time, with interruptions.
    struct Slow<'a>(&'a [u8], bool);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let length = self.0.len().min(1).min(buffer.len());
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn numbered(text: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut lines = Lines::new(Slow(text, false), b"%");
        let mut found = Vec::new();
        while let Some(fields) = lines.next_content().unwrap() {
            let line = fields.rest().to_vec();
            found.push((lines.number(), line));
        }
        found
    }

    #[test]
    fn empty_lines_and_comments_are_counted_and_left_out() {
        assert_eq!(
            numbered(b"a b\r\n\n  % c\n \t d  \n%\xff\ne"),
            [(1, b"a b".to_vec()), (4, b"d".to_vec()), (6, b"e".to_vec())]
        );
        assert_eq!(numbered(b""), []);
        assert_eq!(numbered(b"\n"), []);
    }

    #[test]
    fn lines_are_found_across_chunks() {
        let line = |length: usize| [vec![b'x'; length], b"\n".to_vec()].concat();
        let lengths = [CHUNK / 3, CHUNK - 1, 1, CHUNK / 2, CHUNK / 2 + 7];
        let text: Vec<u8> = lengths.iter().flat_map(|&length| line(length)).collect();
        let mut lines = Lines::new(&text[..], b"%");
        for length in lengths {
            assert_eq!(lines.next_content().unwrap().unwrap().rest().len(), length);
        }
        assert!(lines.next_content().unwrap().is_none());
    }

    #[test]
    fn a_line_without_end_is_an_error_at_its_number() {
        let mut lines = Lines::new(b"a\n".chain(io::repeat(b'%')), b"%");
        assert!(lines.next_content().unwrap().is_some());
        assert!(matches!(
            lines.next_content(),
            Err(TextError::LineTooLong { most: CHUNK })
        ));
        assert_eq!(lines.number(), 2);
    }
}
