//! Writing npz files.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::time::UtcDateTime;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use sprs::CsMatViewI;

use crate::npy::{Kind, write_header, write_numbers};
use crate::output::{Output, WriteError};
use crate::scalar::Scalar;

/// The date of all members, so that the same matrix gives the same bytes at any time: the first that a zip file can
/// have.
const DATE: UtcDateTime = match UtcDateTime::from_components(1980, 1, 1, 0, 0, 0, 0) {
    Some(date) => date,
    None => panic!("this is a date"),
};

/// Writes a sparse matrix as an npz file that `scipy.sparse.load_npz` reads: of the format csr (csc for a matrix stored
/// by columns), compressed, with 32-bit indices where they suffice. Values are of type f64, f32 or f16; bf16 becomes
/// f32.
///
/// The file is written under another name in the same directory and renamed when it is complete, as
/// [`write_matrix_market`](crate::matrix_market::write_matrix_market) does.
///
/// # Errors
///
/// If the file cannot be created, written or renamed. The incomplete file is removed.
pub fn write_npz<T: Scalar>(
    path: impl AsRef<Path>,
    matrix: CsMatViewI<'_, T, u32, u32>,
) -> Result<(), WriteError> {
    Output::create(path.as_ref())?.write(|file| write_members(file, matrix))
}

/// Writes a matrix into an open file.
pub(crate) fn write_members<T: Scalar>(
    file: &mut dyn Write,
    matrix: CsMatViewI<'_, T, u32, u32>,
) -> io::Result<()> {
    let mut zip = ZipArchiveWriter::new(file);
    let narrow = i32::MAX as usize;
    let wide = matrix.rows().max(matrix.cols()).max(matrix.nnz()) > narrow;
    let pointers = matrix.proper_indptr();
    member(&mut zip, "indices", |file| {
        write_indices(file, wide, matrix.indices())
    })?;
    member(&mut zip, "indptr", |file| {
        write_indices(file, wide, &pointers)
    })?;
    member(&mut zip, "format", |file| {
        write_header(file, "|S3", "()")?;
        file.write_all(if matrix.is_csr() { b"csr" } else { b"csc" })
    })?;
    member(&mut zip, "shape", |file| {
        write_header(file, "<i8", "(2,)")?;
        let (rows, columns) = matrix.shape();
        file.write_all(&(rows as u64).to_le_bytes())?;
        file.write_all(&(columns as u64).to_le_bytes())
    })?;
    member(&mut zip, "data", |file| {
        let kind = Kind::of::<T>();
        write_header(file, kind.descr(), &format!("({},)", matrix.nnz()))?;
        write_numbers(file, kind, matrix.data().iter())
    })?;
    zip.finish().map_err(io::Error::other)?;
    Ok(())
}

/// Adds a compressed npy file.
fn member<W: Write>(
    zip: &mut ZipArchiveWriter<W>,
    name: &str,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let name = format!("{name}.npy");
    let file = (zip
        .new_file(&name)
        .compression_method(CompressionMethod::DEFLATE))
    .last_modified(DATE);
    let (mut entry, config) = file.start().map_err(io::Error::other)?;
    let encoder = DeflateEncoder::new(&mut entry, Compression::default());
    let mut writer = config.wrap(encoder);
    content(&mut writer)?;
    let (encoder, descriptor) = writer.finish().map_err(io::Error::other)?;
    encoder.finish()?;
    entry.finish(descriptor).map_err(io::Error::other)?;
    Ok(())
}

fn write_indices(file: &mut dyn Write, wide: bool, indices: &[u32]) -> io::Result<()> {
    let descr = if wide { "<i8" } else { "<i4" };
    write_header(file, descr, &format!("({},)", indices.len()))?;
    for chunk in indices.chunks(1 << 12) {
        let bytes: Vec<u8> = if wide {
            let wide = chunk.iter().map(|&index| u64::from(index).to_le_bytes());
            wide.flatten().collect()
        } else {
            chunk.iter().flat_map(|index| index.to_le_bytes()).collect()
        };
        file.write_all(&bytes)?;
    }
    Ok(())
}
