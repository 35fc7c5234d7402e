//! The matrices that a subcommand reads.

use crate::failure::{Failure, Result};
use crate::progress;
use crate::terminal::{bytes, count};
use clap::{Args, ValueEnum};
use ndarray::Array2;
use std::path::Path;
use warprow::device::available_host_memory;
use warprow::edge_list::{EdgeListOptions, Separator};
use warprow::files::{FileOptions, Format};
use warprow::{CsrMatrix, Scalar, generate};

/// How files are read, where their names and contents leave it open.
#[derive(Args)]
pub struct InputOptions {
    /// The format of sparse matrices [default: by the file extension]
    #[arg(long, value_enum)]
    format: Option<SparseFormat>,

    /// Add the reverse of each edge of an edge list
    #[arg(long)]
    symmetric: bool,

    /// Rows and columns of edge lists [default: square, one more than the largest index]
    #[arg(long, value_name = "ROWSxCOLUMNS", value_parser = shape)]
    shape: Option<(u32, u32)>,
}

impl InputOptions {
    /// The sparse matrix of a file.
    pub fn sparse<T: Scalar>(&self, path: &Path) -> Result<CsrMatrix<T>> {
        self.check(&[path])?;
        self.read(path)
    }

    /// The sparse matrices of one or two files. Options of edge lists need one of the two to be an edge list.
    pub fn one_or_two<T: Scalar>(
        &self,
        first: &Path,
        second: Option<&Path>,
    ) -> Result<(CsrMatrix<T>, Option<CsrMatrix<T>>)> {
        self.check(&[&[first], second.as_slice()].concat())?;
        let a = self.read(first)?;
        Ok((a, second.map(|path| self.read(path)).transpose()?))
    }

    /// Refuses options of edge lists if no file is one.
    fn check(&self, paths: &[&Path]) -> Result<()> {
        let option = match (self.symmetric, self.shape) {
            (true, _) => "--symmetric",
            (false, Some(_)) => "--shape",
            (false, None) => return Ok(()),
        };
        let format_of = |path: &Path| match self.format {
            Some(format) => Some(format.of_library()),
            None => Format::of(path).map(|(format, _)| format),
        };
        let mut found = None;
        for path in paths {
            let name = match format_of(path) {
                Some(Format::MatrixMarket) => "a Matrix Market file",
                Some(Format::Npz) => "an npz file",
                // An edge list takes them; the reader refuses other files.
                _ => return Ok(()),
            };
            found = found.or(Some((path, name)));
        }
        let Some((path, name)) = found else {
            return Ok(());
        };
        Err(Failure::input(format!(
            "{}: {option} is for edge lists: wanted an edge list, found {name}",
            path.display()
        )))
    }

    fn read<T: Scalar>(&self, path: &Path) -> Result<CsrMatrix<T>> {
        let mut edge_list = EdgeListOptions::default().symmetric(self.symmetric);
        if let Some((rows, columns)) = self.shape {
            edge_list = edge_list.shape(rows, columns);
        }
        let mut options = FileOptions::default();
        if let Some(format) = self.format {
            options = options.format(format.of_library());
            edge_list = edge_list.separator(match format {
                SparseFormat::Csv => Separator::Comma,
                _ => Separator::Blanks,
            });
        }
        let bar = progress::waiting(format!("reading {}", path.display()));
        let matrix = options.edge_list(edge_list).read_sparse(path);
        bar.finish_and_clear();
        Ok(matrix?)
    }
}

/// A format of sparse matrices.
#[derive(Clone, Copy, ValueEnum)]
enum SparseFormat {
    Mtx,
    Npz,
    Tsv,
    Csv,
}

impl SparseFormat {
    fn of_library(self) -> Format {
        match self {
            Self::Mtx => Format::MatrixMarket,
            Self::Npz => Format::Npz,
            Self::Tsv | Self::Csv => Format::EdgeList,
        }
    }
}

/// The dense matrix of a file, the tensor of that name in a safetensors file; or random numbers of that shape.
pub fn dense<T: Scalar>(
    path: Option<&Path>,
    tensor: Option<&str>,
    (rows, columns): (usize, usize),
    seed: u64,
) -> Result<Array2<T>> {
    let Some(path) = path else {
        return Ok(generate::dense(rows, columns, seed)?);
    };
    let mut options = FileOptions::default();
    if let Some(name) = tensor {
        options = options.tensor(name);
    }
    let bar = progress::waiting(format!("reading {}", path.display()));
    let x = options.read_dense::<T>(path);
    bar.finish_and_clear();
    let x = x?;
    if x.nrows() != rows {
        return Err(Failure::input(format!(
            "{}: wanted a row for each of {rows} columns of A, found {} rows",
            path.display(),
            x.nrows()
        )));
    }
    // Kernels take rows one after the other; a file may have columns.
    Ok(match x.is_standard_layout() {
        true => x,
        false => x.as_standard_layout().into_owned(),
    })
}

/// `63 436 x 63 436, 279 192 nonzeros, the longest row has 333`.
pub fn description<T>(a: &CsrMatrix<T>) -> String {
    let longest = longest_row(a);
    format!(
        "{} x {}, {} nonzeros, the longest row has {}",
        count(a.rows()),
        count(a.cols()),
        count(a.nnz()),
        count(longest)
    )
}

/// Nonzeros of the longest row.
pub fn longest_row<T>(a: &CsrMatrix<T>) -> usize {
    a.outer_iterator().map(|row| row.nnz()).max().unwrap_or(0)
}

/// Refuses what needs more memory than the machine has, before anything is allocated.
pub fn check_memory(what: &str, wanted: u128) -> Result<()> {
    match available_host_memory() {
        Some(available) if u128::from(available) < wanted => Err(Failure::input(format!(
            "{what}: wanted {} of memory, found {} available",
            bytes(u64::try_from(wanted).unwrap_or(u64::MAX)),
            bytes(available)
        ))),
        _ => Ok(()),
    }
}

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ElementType {
    F32,
    F64,
    F16,
    Bf16,
}

/// `3x4`.
fn shape(text: &str) -> std::result::Result<(u32, u32), String> {
    let parsed = text.split_once('x').and_then(|(rows, columns)| {
        let (rows, columns) = (rows.parse().ok()?, columns.parse().ok()?);
        (rows < u32::MAX).then_some((rows, columns))
    });
    parsed.ok_or_else(|| "wanted two numbers of less than 2^32 - 1, as 300x400".to_owned())
}
