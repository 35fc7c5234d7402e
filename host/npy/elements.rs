//! The element types of NumPy's arrays, and their bytes as numbers.

use std::collections::TryReserveError;

use half::f16;

use crate::scalar::{Scalar, decode};

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    F16,
    F32,
    F64,
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    /// Bytes of text, at most so many.
    Text(usize),
}

impl Element {
    /// The type of a description such as `<f4`, and whether its bytes are in big-endian order.
    pub(super) fn parse(descr: &[u8]) -> Option<(Self, bool)> {
        let (order, name) = descr.split_first()?;
        let big_endian = match order {
            b'<' | b'|' | b'=' => false,
            b'>' => true,
            _ => return None,
        };
        let element = match name {
            b"f2" => Self::F16,
            b"f4" => Self::F32,
            b"f8" => Self::F64,
            b"b1" => Self::Bool,
            b"i1" => Self::I8,
            b"i2" => Self::I16,
            b"i4" => Self::I32,
            b"i8" => Self::I64,
            b"u1" => Self::U8,
            b"u2" => Self::U16,
            b"u4" => Self::U32,
            b"u8" => Self::U64,
            [b'S', length @ ..] => {
                let length = std::str::from_utf8(length).ok()?.parse().ok()?;
                Self::Text(length)
            }
            _ => return None,
        };
        // A byte order is needed by types of several bytes alone.
        (*order != b'|' || element.bytes() == 1 || matches!(element, Self::Text(_)))
            .then_some((element, big_endian))
    }

    /// Bytes of one element.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::F16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
            Self::Text(length) => length,
        }
    }

    /// Whether the elements are whole numbers.
    pub(super) fn is_integer(self) -> bool {
        !matches!(
            self,
            Self::F16 | Self::F32 | Self::F64 | Self::Bool | Self::Text(_)
        )
    }

    /// The numbers in little-endian bytes, each rounded to the nearest of `T`; none of text.
    pub(super) fn decode<T: Scalar>(self, bytes: &[u8]) -> Result<Vec<T>, TryReserveError> {
        match self {
            Self::F16 => decode(bytes, |bytes| f16::from_le_bytes(bytes).to_f64()),
            Self::F32 => decode(bytes, |bytes| f32::from_le_bytes(bytes).into()),
            Self::F64 => decode(bytes, f64::from_le_bytes),
            Self::Bool => decode(bytes, |[byte]| f64::from(u8::from(byte != 0))),
            Self::I8 => decode(bytes, |bytes| i8::from_le_bytes(bytes).into()),
            Self::I16 => decode(bytes, |bytes| i16::from_le_bytes(bytes).into()),
            Self::I32 => decode(bytes, |bytes| i32::from_le_bytes(bytes).into()),
            Self::I64 => decode(bytes, |bytes| i64::from_le_bytes(bytes) as f64),
            Self::U8 => decode(bytes, |bytes| u8::from_le_bytes(bytes).into()),
            Self::U16 => decode(bytes, |bytes| u16::from_le_bytes(bytes).into()),
            Self::U32 => decode(bytes, |bytes| u32::from_le_bytes(bytes).into()),
            Self::U64 => decode(bytes, |bytes| u64::from_le_bytes(bytes) as f64),
            Self::Text(_) => Ok(Vec::new()),
        }
    }

    /// The whole number in the little-endian bytes of one element; `None` for other types.
    pub(super) fn integer(self, bytes: &[u8]) -> Option<i128> {
        let mut extended = [0; 16];
        extended[..bytes.len()].copy_from_slice(bytes);
        let number = i128::from_le_bytes(extended);
        let unused = 128 - 8 * bytes.len() as u32;
        match self {
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => Some((number << unused) >> unused),
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => Some(number),
            _ => None,
        }
    }
}

/// Turns big-endian elements into little-endian ones.
pub(super) fn swap_bytes(element: Element, bytes: &mut [u8]) {
    if element.bytes() > 1 && !matches!(element, Element::Text(_)) {
        for element in bytes.chunks_exact_mut(element.bytes()) {
            element.reverse();
        }
    }
}
