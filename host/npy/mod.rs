//! Reading and writing arrays in npy files, the format of NumPy
//! (<https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>).
//!
//! The reader takes versions 1 to 3, either byte order, and either order of the axes. Elements are floats of 2, 4 or 8
//! bytes, integers or booleans, and are rounded to the nearest of the element type. What a header declares is compared
//! with the file's length before memory is allocated for it.

mod elements;
mod error;
mod header;
mod write;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ndarray::{Array2, ArrayD, IxDyn, ShapeBuilder};

use crate::quote::quote;
use crate::scalar::Scalar;
use elements::{Element, swap_bytes};
pub use error::{NpyError, NpyProblem};
use header::Header;
pub use write::write_npy;
pub(crate) use write::{Kind, write_array, write_header, write_numbers};

/// The types that are read as numbers.
const NUMBERS: &str = "floats, integers or booleans (`<f4`, `<i8`, `|b1`)";

/// Reads a matrix from an npy file.
///
/// # Errors
///
/// A file that cannot be read, is no npy file, or does not hold numbers; an array without exactly two axes.
pub fn read_npy<T: Scalar>(path: impl AsRef<Path>) -> Result<Array2<T>, NpyError> {
    let path = path.as_ref();
    let array = File::open(path).map_err(NpyProblem::from).and_then(read);
    array.and_then(two_axes).map_err(|problem| NpyError {
        file: path.display().to_string(),
        problem,
    })
}

fn two_axes<T>(array: ArrayD<T>) -> Result<Array2<T>, NpyProblem> {
    let found = format!("{:?}", array.shape());
    let matrix = array.into_dimensionality();
    matrix.map_err(|_| NpyProblem::Axes {
        wanted: 2,
        found: quote(found.as_bytes()),
    })
}

/// The array in a file, its elements converted to `T`.
pub(crate) fn read<T: Scalar>(file: File) -> Result<ArrayD<T>, NpyProblem> {
    let metadata = file.metadata()?;
    // A pipe has no length.
    let length = metadata.is_file().then_some(metadata.len());
    parse(file, length)
}

/// The array in a reader that gives `length` bytes, if that is known.
pub(crate) fn parse<T: Scalar>(
    reader: impl Read,
    length: Option<u64>,
) -> Result<ArrayD<T>, NpyProblem> {
    let (header, bytes) = read_bytes(reader, length)?;
    if matches!(header.element, Element::Text(_)) {
        return Err(header.wrong_type(NUMBERS));
    }
    let values = header.element.decode(&bytes)?;
    let shape = IxDyn(&header.shape).set_f(header.fortran_order);
    ArrayD::from_shape_vec(shape, values).map_err(|_| header.too_large())
}

/// The whole numbers in a reader, in the order of the file.
pub(crate) fn parse_integers(
    reader: impl Read,
    length: Option<u64>,
) -> Result<Integers, NpyProblem> {
    let (header, bytes) = read_bytes(reader, length)?;
    if !header.element.is_integer() {
        return Err(header.wrong_type("integers (`<i4`, `<i8`)"));
    }
    let element = header.element;
    Ok(Integers { element, bytes })
}

/// Whole numbers of any size.
#[derive(Debug)]
pub(crate) struct Integers {
    element: Element,
    bytes: Vec<u8>,
}

impl Integers {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / self.element.bytes()
    }

    /// The numbers, in their order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = i128> {
        let elements = self.bytes.chunks_exact(self.element.bytes());
        elements.map(|bytes| self.element.integer(bytes).unwrap_or(0))
    }
}

/// The only string in a reader.
pub(crate) fn parse_text(reader: impl Read, length: Option<u64>) -> Result<String, NpyProblem> {
    let (header, bytes) = read_bytes(reader, length)?;
    if !matches!(header.element, Element::Text(_)) {
        return Err(header.wrong_type("text (`|S3`)"));
    }
    // Shorter text is padded with zeros.
    Ok(String::from_utf8_lossy(&bytes)
        .trim_end_matches('\0')
        .to_owned())
}

/// The header, and the bytes of all elements in little-endian order.
fn read_bytes(mut reader: impl Read, length: Option<u64>) -> Result<(Header, Vec<u8>), NpyProblem> {
    let header = Header::read(&mut reader)?;
    let wanted = header.data_bytes()?;
    let mut bytes = Vec::new();
    if let Some(length) = length {
        let found = length.saturating_sub(header.length);
        if found < wanted {
            return Err(NpyProblem::Truncated { wanted, found });
        }
        bytes.try_reserve_exact(wanted as usize + 1)?;
    }
    reader.take(wanted + 1).read_to_end(&mut bytes)?;
    let found = bytes.len() as u64;
    if found < wanted {
        return Err(NpyProblem::Truncated { wanted, found });
    }
    if found > wanted {
        return Err(NpyProblem::TooLong { wanted });
    }
    if header.big_endian {
        swap_bytes(header.element, &mut bytes);
    }
    Ok((header, bytes))
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
    fn types_byte_orders_and_orders_of_axes_are_read() {
        let rows = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]].into_dyn();
        let numbers = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0f64];
        let by_column = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0f64];
        let le32 = f32_bytes(numbers.map(|x| x as f32));
        let be32 = numbers.map(|x| (x as f32).to_be_bytes()).concat();
        let le64 = numbers.map(f64::to_le_bytes).concat();
        let be64 = numbers.map(f64::to_be_bytes).concat();
        let le64_by_column = by_column.map(f64::to_le_bytes).concat();
        let le16 = numbers
            .map(|x| half::f16::from_f64(x).to_le_bytes())
            .concat();
        let be32i = numbers.map(|x| (x as i32).to_be_bytes()).concat();
        let le64i = numbers.map(|x| (x as i64).to_le_bytes()).concat();
        for (element, fortran_order, data) in [
            ("<f2", "False", le16),
            (">i4", "False", be32i),
            ("<i8", "False", le64i),
            ("|u1", "False", vec![1, 2, 3, 4, 5, 6]),
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
        assert!(matches!(error, NpyProblem::OutOfMemory(_)), "{error}");
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

    #[test]
    fn integers_keep_their_sign_and_all_their_digits() {
        let numbers = [i64::MIN, -1, 0, i64::MAX];
        let data = numbers.map(i64::to_be_bytes).concat();
        let bytes = of_shape(">i8", "False", "(4,)", &data);
        let found = parse_integers(&bytes[..], None).unwrap();
        assert!(found.iter().eq(numbers.map(i128::from)));
        let bytes = of_shape("<u8", "False", "(1,)", &u64::MAX.to_le_bytes());
        let found = parse_integers(&bytes[..], None).unwrap();
        assert!(found.len() == 1 && found.iter().eq([i128::from(u64::MAX)]));
        let bytes = of_shape("<f4", "False", "(1,)", &[0; 4]);
        let error = parse_integers(&bytes[..], None).unwrap_err();
        assert!(error.to_string().starts_with("wanted elements of integers"));
    }

    #[test]
    fn text_is_read_as_text_alone() {
        let bytes = of_shape("|S5", "False", "()", b"csr\0\0");
        assert_eq!(parse_text(&bytes[..], None).unwrap(), "csr");
        assert!(
            refused(&bytes).ends_with("found `|S5`"),
            "{}",
            refused(&bytes)
        );
        let number = of_shape("|u1", "False", "()", b"c");
        assert!(parse_text(&number[..], None).is_err());
    }
}
