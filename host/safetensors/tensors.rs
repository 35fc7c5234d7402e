//! The tensors of a safetensors file (<https://huggingface.co/docs/safetensors>).

use std::collections::TryReserveError;
use std::io::{self, Read};

use half::{bf16, f16};
use ndarray::ArrayD;
use safetensors::tensor::{Dtype, Metadata};

use crate::quote::excerpt;
use crate::scalar::{Scalar, decode};

use super::SafetensorsProblem;

/// The most bytes of a header, as the crate `safetensors` has it.
const MAX_HEADER: u64 = 100_000_000;

/// A file that is checked: each tensor's data has the length that its shape and type need.
pub(crate) struct Tensors {
    metadata: Metadata,
    data: Vec<u8>,
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TensorsError {
    /// The system failed to read the file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file ends before the header's length.
    #[error("wanted the 8 bytes of the header's length, found {found}")]
    NoLength {
        /// The bytes there.
        found: usize,
    },
    /// The header is longer than the format allows.
    #[error("wanted a header of at most {MAX_HEADER} bytes, found one of {found}")]
    LongHeader {
        /// Its length in bytes.
        found: u64,
    },
    /// The file ends within its header.
    #[error("wanted a header of {wanted} bytes, found the end of the file after {found}")]
    ShortHeader {
        /// The header's length in bytes, as the file declares it.
        wanted: u64,
        /// The bytes there.
        found: usize,
    },
    /// The header is not JSON, or its tensors do not follow each other.
    #[error("wrong header: {}", excerpt(.0.to_string().as_bytes()))]
    Header(serde_json::Error),
    /// The file ends before its last tensor.
    #[error("wanted {wanted} bytes of tensors after the header, found {found}")]
    Truncated {
        /// The bytes that the header declares.
        wanted: u64,
        /// The bytes there.
        found: u64,
    },
    /// The file goes on after its last tensor.
    #[error("wanted the end of the file after {wanted} bytes of tensors, found more")]
    TooLong {
        /// The bytes that the header declares.
        wanted: u64,
    },
}

/// Why a tensor is no array of floats.
pub(crate) enum ValuesError {
    /// Its elements are no floats.
    Type(Dtype),
    /// Its shape has more elements than an array can have.
    Shape(Vec<usize>),
    /// The system has no memory for it.
    OutOfMemory(TryReserveError),
}

/// The error of a tensor that is no array of floats; `wrong` makes it of what was wanted and what was found.
pub(super) fn no_values(
    error: ValuesError,
    wrong: impl Fn(&'static str, String) -> SafetensorsProblem,
) -> SafetensorsProblem {
    match error {
        ValuesError::Type(found) => wrong("f16, bf16, f32 or f64", format!("{found:?}")),
        ValuesError::Shape(shape) => {
            let found = excerpt(format!("shape {shape:?}").as_bytes());
            wrong("a shape that fits into memory", found)
        }
        ValuesError::OutOfMemory(error) => wrong("memory for it", error.to_string()),
    }
}

impl Tensors {
    /// Reads a file. Memory is allocated for bytes that are there, not for those that the header declares.
    pub(crate) fn read(mut file: impl Read) -> Result<Self, TensorsError> {
        let length = take(&mut file, 8)?;
        let Ok(length) = <[u8; 8]>::try_from(length.as_slice()) else {
            let found = length.len();
            return Err(TensorsError::NoLength { found });
        };
        let wanted = u64::from_le_bytes(length);
        if wanted > MAX_HEADER {
            return Err(TensorsError::LongHeader { found: wanted });
        }
        let header = take(&mut file, wanted)?;
        if (header.len() as u64) < wanted {
            let found = header.len();
            return Err(TensorsError::ShortHeader { wanted, found });
        }
        // This checks shapes against extents, and that the extents follow each other from 0 on.
        let metadata: Metadata = serde_json::from_slice(&header).map_err(TensorsError::Header)?;
        let wanted = metadata.data_len() as u64;
        let data = take(&mut file, wanted.saturating_add(1))?;
        let found = data.len() as u64;
        if found < wanted {
            return Err(TensorsError::Truncated { wanted, found });
        }
        if found > wanted {
            return Err(TensorsError::TooLong { wanted });
        }
        Ok(Self { metadata, data })
    }

    /// The names of all tensors, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = self.metadata.offset_keys();
        names.sort_unstable();
        names
    }

    /// The tensor's numbers, converted to `T`; `None` if there is no such tensor.
    pub(crate) fn values<T: Scalar>(&self, name: &str) -> Option<Result<ArrayD<T>, ValuesError>> {
        let info = self.metadata.info(name)?;
        let (start, end) = info.data_offsets;
        let data = &self.data[start..end];
        let values = match info.dtype {
            Dtype::F64 => decode(data, f64::from_le_bytes),
            Dtype::F32 => decode(data, |bytes| f32::from_le_bytes(bytes).into()),
            Dtype::F16 => decode(data, |bytes| f16::from_le_bytes(bytes).into()),
            Dtype::BF16 => decode(data, |bytes| bf16::from_le_bytes(bytes).into()),
            other => return Some(Err(ValuesError::Type(other))),
        };
        let shape = info.shape.clone();
        Some(values.map_err(ValuesError::OutOfMemory).and_then(|values| {
            // The elements are as many as the shape's, but a shape with an empty axis may still be too large.
            ArrayD::from_shape_vec(shape, values)
                .map_err(|_| ValuesError::Shape(info.shape.clone()))
        }))
    }
}

/// At most that many bytes; less only at the end of the file.
fn take(file: &mut impl Read, count: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let length = (header.len() as u64).to_le_bytes();
        [&length[..], header.as_bytes(), data].concat()
    }

    fn refused(bytes: &[u8]) -> String {
        let error = Tensors::read(bytes).err().expect("the file is wrong");
        error.to_string()
    }

    fn tensor(name: &str, shape: &str, start: u64, end: u64) -> String {
        let offsets = format!("\"data_offsets\":[{start},{end}]");
        format!("\"{name}\":{{\"dtype\":\"F32\",\"shape\":{shape},{offsets}}}")
    }

    #[test]
    fn extents_whose_sum_overflows_are_refused() {
        // Tensors of nearly 2^61 bytes: the sum of their last end and the header's length does not fit 64 bits.
        let part = (1_u64 << 61) - 64;
        let tensors = (0..9).map(|i| {
            let start = part * i;
            let end = start.saturating_add(part).min(u64::MAX - 3);
            tensor(
                &format!("t{i}"),
                &format!("[{}]", (end - start) / 4),
                start,
                end,
            )
        });
        let header = format!("{{{}}}", tensors.collect::<Vec<_>>().join(","));
        let text = refused(&file(&header, &[0; 64]));
        assert!(
            text.starts_with("wanted 18446744073709551612 bytes of tensors"),
            "{text}"
        );
    }

    #[test]
    fn a_shape_that_does_not_fit_is_an_error() {
        let header = format!("{{{}}}", tensor("t", "[0,4611686018427387904,2]", 0, 0));
        let tensors = Tensors::read(&file(&header, &[])[..]).unwrap();
        let values = tensors.values::<f32>("t").unwrap();
        assert!(matches!(values, Err(ValuesError::Shape(shape)) if shape[0] == 0));
        let header = format!("{{{}}}", tensor("t", "[4611686018427387904,8]", 0, 0));
        assert!(refused(&file(&header, &[])).starts_with("wrong header: overflow"));
    }

    #[test]
    fn a_file_of_another_length_than_its_header_declares_is_refused() {
        let header = format!("{{{}}}", tensor("t", "[3]", 0, 12));
        let whole = file(&header, &[0; 12]);
        assert!(Tensors::read(&whole[..]).is_ok());
        for (length, message) in [
            (3, "wanted the 8 bytes of the header's length, found 3"),
            (
                whole.len() - 1,
                "wanted 12 bytes of tensors after the header, found 11",
            ),
        ] {
            assert_eq!(refused(&whole[..length]), message);
        }
        assert!(refused(&whole[..20]).ends_with("found the end of the file after 12"));
        let longer = [&whole[..], b"x"].concat();
        assert!(refused(&longer).starts_with("wanted the end of the file after 12 bytes"));
        assert!(refused(&[0xff; 16]).starts_with("wanted a header of at most 100000000 bytes"));
    }

    #[test]
    fn text_of_the_header_is_quoted_in_part() {
        let header = format!("{{\"t\":{{\"dtype\":\"\\u001b{}\"}}}}", "x".repeat(10_000));
        let text = refused(&file(&header, &[]));
        assert!(
            text.chars().count() < 100 && text.contains("\\u{1b}"),
            "{text}"
        );
    }
}
