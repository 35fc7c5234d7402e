//! The start of an npy file: magic, version, and a dictionary in the syntax of Python.

use std::io::Read;

use super::elements::Element;
use super::{NUMBERS, NpyProblem};
use crate::quote::quote;

/// The most bytes of a header: what version 1 of the format can have.
pub(super) const MAX_HEADER: u32 = u16::MAX as u32;

/// Bytes of the magic and the version.
const START: u64 = 8;

/// What a file declares.
pub(super) struct Header {
    pub(super) element: Element,
    /// The description of the element type, quoted.
    descr: String,
    pub(super) big_endian: bool,
    /// Whether the first axis changes fastest.
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<usize>,
    /// Bytes from the start of the file to the first element.
    pub(super) length: u64,
}

impl Header {
    /// Reads up to the first element.
    pub(super) fn read(reader: &mut impl Read) -> Result<Self, NpyProblem> {
        let start = take(reader, START)?;
        let Some([major, _minor]) = start.strip_prefix(b"\x93NUMPY") else {
            return Err(NpyProblem::Magic {
                found: quote(&start),
            });
        };
        let length_bytes = match major {
            1 => 2,
            2 | 3 => 4,
            &found => return Err(NpyProblem::Version { found }),
        };
        let mut length = [0; 4];
        reader.read_exact(&mut length[..length_bytes])?;
        let wanted = u32::from_le_bytes(length);
        if wanted > MAX_HEADER {
            return Err(NpyProblem::LongHeader { found: wanted });
        }
        let text = take(reader, wanted.into())?;
        if text.len() < wanted as usize {
            let found = text.len();
            return Err(NpyProblem::ShortHeader { wanted, found });
        }
        let length = START + length_bytes as u64 + u64::from(wanted);
        Scanner(&text).dictionary(length)
    }

    /// The bytes that all elements take.
    pub(super) fn data_bytes(&self) -> Result<u64, NpyProblem> {
        let element = self.element.bytes() as u64;
        // `ndarray` limits the product of the axes that are not empty, even if another one is.
        let axes = self.shape.iter().filter(|&&axis| axis > 0);
        let bytes = axes.into_iter().try_fold(element, |bytes: u64, &axis| {
            let bytes = bytes.checked_mul(axis as u64)?;
            (bytes < isize::MAX as u64).then_some(bytes)
        });
        let bytes = bytes.ok_or_else(|| self.too_large())?;
        Ok(if self.shape.contains(&0) { 0 } else { bytes })
    }

    pub(super) fn wrong_type(&self, wanted: &'static str) -> NpyProblem {
        NpyProblem::Type {
            wanted,
            found: self.descr.clone(),
        }
    }

    pub(super) fn too_large(&self) -> NpyProblem {
        NpyProblem::TooLarge {
            found: quote(format!("{:?}", self.shape).as_bytes()),
        }
    }
}

/// At most that many bytes; less only at the end of the file.
fn take(reader: &mut impl Read, count: u64) -> Result<Vec<u8>, NpyProblem> {
    let mut bytes = Vec::new();
    reader.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What is left of the dictionary's text. It is scanned once, and never nested deeper than the shape's tuple.
struct Scanner<'a>(&'a [u8]);

impl<'a> Scanner<'a> {
    /// The whole text: `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, keys in any order.
    fn dictionary(mut self, length: u64) -> Result<Header, NpyProblem> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        self.expect(b'{', "`{`")?;
        while !self.skip(b'}') {
            let key_text = self.0;
            let key = self.string("a key")?;
            self.expect(b':', "`:`")?;
            let new = match key {
                b"descr" => descr.replace(self.element()?).is_none(),
                b"fortran_order" => fortran_order.replace(self.boolean()?).is_none(),
                b"shape" => shape.replace(self.tuple()?).is_none(),
                _ => false,
            };
            if !new {
                let wanted = "the keys `descr`, `fortran_order` and `shape`, each once,";
                return Err(Self(key_text).error(wanted));
            }
            if !self.skip(b',') {
                self.expect(b'}', "`,` or `}`")?;
                break;
            }
        }
        if !self.rest().is_empty() {
            return Err(self.error("nothing after the dictionary"));
        }
        match (descr, fortran_order, shape) {
            (Some((element, big_endian, descr)), Some(fortran_order), Some(shape)) => Ok(Header {
                element,
                descr,
                big_endian,
                fortran_order,
                shape,
                length,
            }),
            _ => Err(self.error("the keys `descr`, `fortran_order` and `shape`")),
        }
    }

    /// The element type, whether its bytes are in big-endian order, and its description, quoted.
    fn element(&mut self) -> Result<(Element, bool, String), NpyProblem> {
        let text = self.rest();
        // A list of fields, for example, is no string.
        let descr = self.string("a type").unwrap_or(text);
        match Element::parse(descr) {
            Some((element, big_endian)) => Ok((element, big_endian, quote(descr))),
            None => Err(NpyProblem::Type {
                wanted: NUMBERS,
                found: quote(descr),
            }),
        }
    }

    fn boolean(&mut self) -> Result<bool, NpyProblem> {
        for (word, value) in [(&b"False"[..], false), (b"True", true)] {
            if let Some(rest) = self.rest().strip_prefix(word) {
                self.0 = rest;
                return Ok(value);
            }
        }
        Err(self.error("`False` or `True`"))
    }

    /// `()`, `(3,)`, `(3, 4)`.
    fn tuple(&mut self) -> Result<Vec<usize>, NpyProblem> {
        let mut axes = Vec::new();
        self.expect(b'(', "`(`")?;
        while !self.skip(b')') {
            axes.push(self.axis()?);
            if !self.skip(b',') {
                self.expect(b')', "`,` or `)`")?;
                break;
            }
        }
        Ok(axes)
    }

    /// A number of decimal digits, after which Python 2 wrote an `L`.
    fn axis(&mut self) -> Result<usize, NpyProblem> {
        let text = self.rest();
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Err(self.error("the length of an axis"));
        }
        let mut axis = 0_usize;
        for digit in &text[..digits] {
            let next = axis.checked_mul(10);
            let next = next.and_then(|next| next.checked_add(usize::from(digit - b'0')));
            axis = next.ok_or_else(|| self.error("an axis of at most 2^64 - 1 elements"))?;
        }
        self.0 = &text[digits..];
        self.skip(b'L');
        Ok(axis)
    }

    /// What is between quotation marks. No string of a header has an escape.
    fn string(&mut self, wanted: &'static str) -> Result<&'a [u8], NpyProblem> {
        let text = self.rest();
        if let Some((mark @ (b'\'' | b'"'), rest)) = text.split_first()
            && let Some(length) = rest.iter().position(|byte| byte == mark)
        {
            self.0 = &rest[length + 1..];
            return Ok(&rest[..length]);
        }
        Err(self.error(wanted))
    }

    /// Skips that byte, if it is next.
    fn skip(&mut self, byte: u8) -> bool {
        let rest = self.rest().strip_prefix(&[byte]);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, byte: u8, wanted: &'static str) -> Result<(), NpyProblem> {
        if self.skip(byte) {
            Ok(())
        } else {
            Err(self.error(wanted))
        }
    }

    /// What is left, without blanks before it.
    fn rest(&mut self) -> &'a [u8] {
        self.0 = self.0.trim_ascii_start();
        self.0
    }

    fn error(&self, wanted: &'static str) -> NpyProblem {
        let found = match self.0 {
            [] => "its end".to_owned(),
            text => quote(text),
        };
        NpyProblem::Header { wanted, found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn refused(dictionary: &str) -> String {
        let header = Scanner(dictionary.as_bytes()).dictionary(0);
        header.err().expect(dictionary).to_string()
    }

    #[test]
    fn a_dictionary_of_another_form_is_refused_with_what_is_there() {
        for (dictionary, message) in [
            ("", "wanted `{` in the header, found its end"),
            ("[]", "wanted `{` in the header, found `[]`"),
            ("{x: 3}", "wanted a key in the header, found `x: 3}`"),
            ("{'descr' 3}", "wanted `:` in the header, found `3}`"),
            (
                "{'fortran_order': 0}",
                "wanted `False` or `True` in the header, found `0}`",
            ),
            ("{'shape': 3}", "wanted `(` in the header, found `3}`"),
            (
                "{'shape': (-3,)}",
                "wanted the length of an axis in the header, found `-3,)}`",
            ),
            (
                "{'shape': (3 4)}",
                "wanted `,` or `)` in the header, found `4)}`",
            ),
            (
                "{'shape': () 'x'}",
                "wanted `,` or `}` in the header, found `'x'}`",
            ),
            (
                "{'shape': ()}",
                "wanted the keys `descr`, `fortran_order` and `shape` in the header, found its end",
            ),
            (
                "{'shape': (), 'shape': ()}",
                "wanted the keys `descr`, `fortran_order` and `shape`, each once, in the header, found `'shape': ()}`",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': ()} 7",
                "wanted nothing after the dictionary in the header, found `7`",
            ),
        ] {
            assert_eq!(refused(dictionary), message);
        }
    }

    #[test]
    fn a_type_that_is_not_read_is_quoted() {
        for (descr, found) in [
            ("'<c8'", "`<c8`"),
            ("'|f4'", "`|f4`"),
            ("'|S18446744073709551616'", "`|S18446744073709551616`"),
            ("[('a\x1b', 'f4')]", "`[('a\\u{1b}', 'f4')]}`"),
        ] {
            let text = refused(&format!("{{'descr': {descr}}}"));
            assert!(text.ends_with(&format!("`|b1`), found {found}")), "{text}");
        }
    }

    #[test]
    fn nested_brackets_take_no_time() {
        let start = Instant::now();
        for bracket in ["(", "[", "{"] {
            for length in [27, 65_535] {
                refused(&bracket.repeat(length));
                refused(&format!("{{'descr': {}", bracket.repeat(length)));
                refused(&format!("{{'shape': {}", bracket.repeat(length)));
            }
        }
        assert!(start.elapsed() < Duration::from_secs(1));
    }
}
