//! Reading arrays of f32 and f64 from npy files, the format of NumPy
//! (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).
//!
//! Versions 1 to 3, either byte order, and either order of the axes are read. What a header declares is compared with
//! the file's length before memory is allocated for it.

mod header;

use std::collections::TryReserveError;
use std::fs::File;
use std::io::{self, Read};

use ndarray::{ArrayD, IxDyn, ShapeBuilder};

use crate::scalar::{Scalar, decode};
use header::{Element, Header, MAX_HEADER};

/// Why a file could not be read as an array of floats.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NpyError {
    /// The system failed to read the file.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// The file does not begin as an npy file does.
    #[error("wanted `\\x93NUMPY` and a version at the start, found {found}")]
    Magic {
        /// The first bytes, quoted.
        found: String,
    },
    /// A version of the format that is not known.
    #[error("wanted version 1, 2 or 3 of the format, found {found}")]
    Version {
        /// The major version.
        found: u8,
    },
    /// The header is longer than any array needs.
    #[error("wanted a header of at most {MAX_HEADER} bytes, found one of {found}")]
    LongHeader {
        /// Its length in bytes.
        found: u32,
    },
    /// The file ends within its header.
    #[error("wanted a header of {wanted} bytes, found the end of the file after {found}")]
    ShortHeader {
        /// The header's length in bytes, as the file declares it.
        wanted: u32,
        /// The bytes there.
        found: usize,
    },
    /// The header is not the dictionary that the format prescribes.
    #[error("wanted {wanted} in the header, found {found}")]
    Header {
        /// What the format prescribes.
        wanted: &'static str,
        /// What is there, quoted.
        found: String,
    },
    /// The elements are no floats of 4 or 8 bytes.
    #[error("wanted elements of type `<f4`, `<f8`, `>f4` or `>f8`, found {found}")]
    Type {
        /// The type, quoted.
        found: String,
    },
    /// The shape has more elements than the address space has room for.
    #[error("wanted a shape that fits into memory, found {found}")]
    TooLarge {
        /// The shape, quoted.
        found: String,
    },
    /// The file ends before the last element.
    #[error("wanted {wanted} bytes of numbers after the header, found {found}")]
    Truncated {
        /// The bytes that the shape needs.
        wanted: u64,
        /// The bytes there.
        found: u64,
    },
    /// The file goes on after the last element.
    #[error("wanted the end of the file after {wanted} bytes of numbers, found more")]
    TooLong {
        /// The bytes that the shape needs.
        wanted: u64,
    },
    /// The system has not enough memory for the array.
    #[error("not enough memory for the array: {0}")]
    OutOfMemory(#[from] TryReserveError),
}

/// The array in a file, its elements converted to `T`.
pub(crate) fn read<T: Scalar>(file: File) -> Result<ArrayD<T>, NpyError> {
    let metadata = file.metadata()?;
    // A pipe has no length.
    let length = metadata.is_file().then_some(metadata.len());
    parse(file, length)
}

/// The array in a reader that gives `length` bytes, if that is known.
fn parse<T: Scalar>(mut reader: impl Read, length: Option<u64>) -> Result<ArrayD<T>, NpyError> {
    let header = Header::read(&mut reader)?;
    let wanted = header.data_bytes()?;
    let mut bytes = Vec::new();
    if let Some(length) = length {
        let found = length.saturating_sub(header.length);
        if found < wanted {
            return Err(NpyError::Truncated { wanted, found });
        }
        bytes.try_reserve_exact(wanted as usize + 1)?;
    }
    reader.take(wanted + 1).read_to_end(&mut bytes)?;
    let found = bytes.len() as u64;
    if found < wanted {
        return Err(NpyError::Truncated { wanted, found });
    }
    if found > wanted {
        return Err(NpyError::TooLong { wanted });
    }
    let values = match (header.element, header.big_endian) {
        (Element::F32, false) => decode(&bytes, |bytes| f32::from_le_bytes(bytes).into()),
        (Element::F32, true) => decode(&bytes, |bytes| f32::from_be_bytes(bytes).into()),
        (Element::F64, false) => decode(&bytes, f64::from_le_bytes),
        (Element::F64, true) => decode(&bytes, f64::from_be_bytes),
    }?;
    let shape = IxDyn(&header.shape).set_f(header.fortran_order);
    ArrayD::from_shape_vec(shape, values).map_err(|_| header.too_large())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{ArrayD, array};

    /// A file of version 1 with that dictionary and these numbers.
    fn file(dictionary: &str, data: &[u8]) -> Vec<u8> {
        let length = (dictionary.len() as u16).to_le_bytes();
        [
            b"\x93NUMPY\x01\x00",
            &length[..],
            dictionary.as_bytes(),
            data,
        ]
        .concat()
    }

    fn of_shape(element: &str, fortran_order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let order = format!("'fortran_order': {fortran_order}");
        file(
            &format!("{{'descr': '{element}', {order}, 'shape': {shape}, }}\n"),
            data,
        )
    }

    /// The array, read with its length known and unknown.
    fn read(bytes: &[u8]) -> Result<ArrayD<f64>, String> {
        let [known, unknown] = [Some(bytes.len() as u64), None]
            .map(|length| parse::<f64>(bytes, length).map_err(|error| error.to_string()));
        assert_eq!(known, unknown);
        known
    }

    fn refused(bytes: &[u8]) -> String {
        read(bytes).unwrap_err()
    }

    fn f32_bytes(numbers: impl IntoIterator<Item = f32>) -> Vec<u8> {
        numbers.into_iter().flat_map(f32::to_le_bytes).collect()
    }

    #[test]
    fn both_types_byte_orders_and_orders_of_axes_are_read() {
        let rows = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]].into_dyn();
        let numbers = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0f64];
        let by_column = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0f64];
        let le32 = f32_bytes(numbers.map(|x| x as f32));
        let be32 = numbers.map(|x| (x as f32).to_be_bytes()).concat();
        let le64 = numbers.map(f64::to_le_bytes).concat();
        let be64 = numbers.map(f64::to_be_bytes).concat();
        let le64_by_column = by_column.map(f64::to_le_bytes).concat();
        for (element, fortran_order, data) in [
            ("<f4", "False", le32),
            (">f4", "False", be32),
            ("<f8", "False", le64),
            (">f8", "False", be64),
            ("<f8", "True", le64_by_column),
        ] {
            let bytes = of_shape(element, fortran_order, "(2, 3)", &data);
            assert_eq!(read(&bytes).unwrap(), rows, "{element}");
        }
    }

    #[test]
    fn arrays_of_any_number_of_axes_are_read() {
        let one = f32_bytes([7.0]);
        for (shape, wanted) in [("()", vec![]), ("(1,)", vec![1]), ("(1L, 1)", vec![1, 1])] {
            let array = read(&of_shape("<f4", "False", shape, &one)).unwrap();
            assert_eq!((array.shape(), array.sum()), (&wanted[..], 7.0));
        }
        let empty = read(&of_shape("<f4", "False", "(0, 3)", &[])).unwrap();
        assert_eq!(empty.shape(), [0, 3]);
    }

    #[test]
    fn versions_2_and_3_have_a_longer_length() {
        let dictionary = b"{\"shape\":(1,),\"descr\":\"<f4\",\"fortran_order\":False}";
        for version in [2, 3] {
            let length = (dictionary.len() as u32).to_le_bytes();
            let start = [b"\x93NUMPY", &[version, 0][..], &length].concat();
            let bytes = [&start[..], dictionary, &f32_bytes([7.0])].concat();
            assert_eq!(read(&bytes).unwrap().sum(), 7.0);
        }
    }

    #[test]
    fn a_file_of_another_length_than_its_shape_says_so_and_not_another_type() {
        let data = f32_bytes([1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(
            refused(&of_shape("<f4", "False", "(2, 3)", &data)),
            "wanted 24 bytes of numbers after the header, found 20"
        );
        assert_eq!(
            refused(&of_shape("<f4", "False", "(2, 2)", &data)),
            "wanted the end of the file after 16 bytes of numbers, found more"
        );
    }

    #[test]
    fn a_shape_is_compared_with_the_length_before_memory_is_allocated() {
        for (shape, message) in [
            ("(1000000, 1000000)", "wanted 4000000000000 bytes"),
            ("(4611686018427387904, 4)", "wanted a shape that fits"),
            ("(0, 4611686018427387904, 4)", "wanted a shape that fits"),
            ("(18446744073709551615,)", "wanted a shape that fits"),
            ("(18446744073709551616,)", "wanted an axis of at most"),
        ] {
            let text = refused(&of_shape("<f4", "False", shape, &[0; 16]));
            assert!(text.starts_with(message), "{shape}: {text}");
        }
        // A file of this length and shape cannot be held, and that is an error too.
        let shape = "(1125899906842624,)";
        let bytes = of_shape("<f4", "False", shape, &[]);
        let error = parse::<f32>(&bytes[..], Some(1 << 60)).unwrap_err();
        assert!(matches!(error, NpyError::OutOfMemory(_)), "{error}");
    }

    #[test]
    fn a_start_that_is_none_is_refused() {
        assert_eq!(
            refused(b"no array of numbers"),
            "wanted `\\x93NUMPY` and a version at the start, found `no array`"
        );
        assert!(refused(b"").ends_with("found ``"));
        assert!(refused(b"\x93NUMPY\x04\x00\x01\x00{").starts_with("wanted version 1, 2 or 3"));
        assert_eq!(
            refused(b"\x93NUMPY\x01\x00\x09\x00{"),
            "wanted a header of 9 bytes, found the end of the file after 1"
        );
        assert_eq!(
            refused(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{"),
            "wanted a header of at most 65535 bytes, found one of 4294967295"
        );
    }

    #[test]
    fn no_cut_of_a_file_and_no_change_of_a_byte_panics() {
        let bytes = of_shape("<f4", "False", "(2, 3)", &f32_bytes([1.0; 6]));
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err());
        }
        for place in 0..bytes.len() {
            for byte in [0, b' ', b'(', b'9', b'\'', 0xff] {
                let mut changed = bytes.clone();
                changed[place] = byte;
                let _ = read(&changed);
            }
        }
    }
}
