//! A place for a matrix or for bytes, opened before these are there.

use std::io::{self, Write};
use std::path::Path;

use ndarray::ArrayView2;
use sprs::CsMatViewI;

use super::{FileError, Format};
use crate::edge_list::{Separator, write_entries};
use crate::npy::write_array;
use crate::npz::write_members;
use crate::output::WriteError;
use crate::safetensors::write_tensor;
use crate::scalar::Scalar;
use crate::{matrix_market, output};

/// The name of the tensor in a safetensors file.
const TENSOR: &str = "matrix";

/// A place that a matrix or bytes will be written to, opened before a long computation.
///
/// The file is written under another name in the same directory and renamed when it is complete. Thus the place never
/// holds half a result. A file that was there is replaced and passes on its mode; symbolic links are followed. A device
/// or named pipe is not replaced: the result is written into it. Dropped without a result, it changes nothing.
pub struct Output {
    place: output::Output,
    /// `None` for bytes.
    format: Option<Format>,
    compressed: bool,
}

impl Output {
    /// Opens a place for a sparse matrix.
    ///
    /// # Errors
    ///
    /// A name that no format of sparse matrices has; a directory or socket; a place that the user may not write.
    pub fn sparse(path: impl AsRef<Path>) -> Result<Self, FileError> {
        Self::create(path.as_ref(), true)
    }

    /// Opens a place for a dense matrix.
    ///
    /// # Errors
    ///
    /// As for [`sparse`](Self::sparse).
    pub fn dense(path: impl AsRef<Path>) -> Result<Self, FileError> {
        Self::create(path.as_ref(), false)
    }

    /// Opens a place for bytes of any format.
    ///
    /// # Errors
    ///
    /// A directory or socket; a place that the user may not write.
    pub fn bytes(path: impl AsRef<Path>) -> Result<Self, FileError> {
        Ok(Self {
            place: output::Output::create(path.as_ref())?,
            format: None,
            compressed: false,
        })
    }

    fn create(path: &Path, sparse: bool) -> Result<Self, FileError> {
        let (format, compressed) = Format::of_kind(path, None, sparse)?;
        Ok(Self {
            place: output::Output::create(path)?,
            format: Some(format),
            compressed,
        })
    }

    /// The incomplete file in the same directory; `None` for a device or named pipe. A program that handles signals
    /// removes it before it exits.
    pub fn partial_path(&self) -> Option<&Path> {
        self.place.partial_path()
    }

    /// Writes a sparse matrix.
    ///
    /// # Errors
    ///
    /// If the file cannot be written or renamed. The incomplete file is removed.
    ///
    /// # Panics
    ///
    /// If the place is not one for a sparse matrix.
    pub fn write_sparse<T: Scalar>(
        self,
        matrix: CsMatViewI<'_, T, u32, u32>,
    ) -> Result<(), FileError> {
        assert!(
            self.format.is_some_and(Format::is_sparse),
            "the place is not for a sparse matrix"
        );
        let Self {
            place,
            format,
            compressed,
        } = self;
        let separator = Separator::of(place.path());
        place.write(|file| match format {
            Some(Format::Npz) => write_members(file, matrix),
            Some(Format::EdgeList) => write_entries(file, separator, compressed, matrix),
            _ => matrix_market::write(file, compressed, matrix),
        })?;
        Ok(())
    }

    /// Writes a dense matrix. In a safetensors file its name is `matrix`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written or renamed. The incomplete file is removed.
    ///
    /// # Panics
    ///
    /// If the place is not one for a dense matrix.
    pub fn write_dense<T: Scalar>(self, matrix: ArrayView2<'_, T>) -> Result<(), FileError> {
        let format = self.format;
        assert!(
            format.is_some_and(|format| !format.is_sparse()),
            "the place is not for a dense matrix"
        );
        self.place.write(|file| match format {
            Some(Format::Safetensors) => write_tensor(file, TENSOR, matrix),
            _ => write_array(file, matrix),
        })?;
        Ok(())
    }

    /// Lets the caller write the content, and puts the file in its place if that succeeds. Other processes may write
    /// the same file meanwhile, at [`partial_path`](Self::partial_path).
    ///
    /// # Errors
    ///
    /// If `content` fails, or the file cannot be written or renamed. The incomplete file is removed.
    #[doc(hidden)]
    pub fn write_with(
        self,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), WriteError> {
        self.place.write(content)
    }

    /// Writes bytes.
    ///
    /// # Errors
    ///
    /// If the file cannot be written or renamed. The incomplete file is removed.
    ///
    /// # Panics
    ///
    /// If the place is one for a matrix.
    pub fn write_bytes(self, bytes: &[u8]) -> Result<(), FileError> {
        assert!(self.format.is_none(), "the place is for a matrix");
        self.place.write(|file| file.write_all(bytes))?;
        Ok(())
    }
}
