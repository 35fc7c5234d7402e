//! Reading and writing sparse matrices in npz files, as `scipy.sparse.save_npz` and `load_npz` do: a zip file with an
//! npy file for each array.
//!
//! The reader takes the formats csr, csc and coo, compressed or not, with indices of any integer type. Entries with the
//! same row and column are summed. Values are rounded to the nearest of the element type. The whole file is in memory
//! while it is read; what its headers declare is compared with what is there before memory is allocated for it.

mod error;
mod members;
mod write;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use sprs::CsMatI;

use crate::npy::Integers;
use crate::quote::quote;
use crate::scalar::Scalar;
use crate::triplets::{self, MAX_COLUMNS, MAX_ROWS, Triplet, filled};
pub use error::{NpzError, NpzProblem};
use members::Members;
pub(crate) use write::write_members;
pub use write::write_npz;

/// Limits on what is read.
#[derive(Debug, Clone)]
pub struct NpzOptions {
    max_sparse_rows: u32,
}

impl Default for NpzOptions {
    /// 2^26 rows for any number of entries.
    fn default() -> Self {
        Self {
            max_sparse_rows: 1 << 26,
        }
    }
}

impl NpzOptions {
    /// Maximum number of rows of a matrix that has less than one stored entry for every 16 rows, where the file has no
    /// row pointer: in the formats csc and coo. An empty row takes 4 bytes.
    #[must_use]
    pub fn max_sparse_rows(mut self, rows: u32) -> Self {
        self.max_sparse_rows = rows;
        self
    }

    /// Reads a sparse matrix from an npz file.
    ///
    /// # Errors
    ///
    /// As for [`read_npz`].
    pub fn read<T: Scalar>(&self, path: impl AsRef<Path>) -> Result<CsMatI<T, u32, u32>, NpzError> {
        let path = path.as_ref();
        let matrix = file(path).and_then(|bytes| self.parse(&bytes));
        matrix.map_err(|problem| NpzError {
            file: path.display().to_string(),
            problem,
        })
    }

    /// The matrix in the bytes of a file.
    fn parse<T: Scalar>(&self, bytes: &[u8]) -> Result<CsMatI<T, u32, u32>, NpzProblem> {
        let members = Members::of(bytes)?;
        let format = members.text("format")?;
        let shape = shape(&members)?;
        match format.as_str() {
            "csr" => by_pointers(&members, shape),
            "csc" => {
                let [rows, columns] = shape;
                let transposed = by_pointers(&members, [columns, rows])?;
                self.check_rows(rows, transposed.nnz())?;
                transpose(&transposed, shape)
            }
            "coo" => self.coordinates(&members, shape),
            _ => Err(NpzProblem::Format {
                found: quote(format.as_bytes()),
            }),
        }
    }

    fn check_rows(&self, rows: u32, entries: usize) -> Result<(), NpzProblem> {
        let most = triplets::max_rows(entries as u64, self.max_sparse_rows);
        if u64::from(rows) > most {
            return Err(NpzProblem::SparseRows {
                rows,
                entries,
                most,
            });
        }
        Ok(())
    }

    /// A matrix of the format coo.
    fn coordinates<T: Scalar>(
        &self,
        members: &Members<'_>,
        [rows, columns]: [u32; 2],
    ) -> Result<CsMatI<T, u32, u32>, NpzProblem> {
        let values = members.numbers::<T>("data")?;
        let wanted = values.len();
        check_entries(wanted)?;
        self.check_rows(rows, wanted)?;
        let index = |member, limit| {
            let found = members.integers(member)?;
            if found.len() != wanted {
                return Err(NpzProblem::Length {
                    member,
                    wanted,
                    found: found.len(),
                });
            }
            checked_indices(member, &found, wanted, limit)
        };
        let row = index("row", rows)?;
        let column = index("col", columns)?;
        let mut triplets = Vec::new();
        triplets.try_reserve_exact(wanted)?;
        let places = row.iter().zip(&column);
        triplets.extend(
            places
                .zip(&values)
                .map(|((&row, &column), &value)| Triplet { row, column, value }),
        );
        Ok(triplets::by_rows(rows, columns, &triplets)?)
    }
}

/// Checks that positions of so many entries fit 32 bits.
fn check_entries(found: usize) -> Result<(), NpzProblem> {
    match u32::try_from(found) {
        Ok(_) => Ok(()),
        Err(_) => Err(NpzProblem::TooManyEntries { found }),
    }
}

/// Reads a sparse matrix from an npz file with the default [`NpzOptions`].
///
/// # Errors
///
/// If the file cannot be read, is no zip file, or lacks an array; if an array is of another type or length; if an index
/// is not of the matrix, or a row pointer falls; for the formats bsr and dia; if there are many more rows than entries.
pub fn read_npz<T: Scalar>(path: impl AsRef<Path>) -> Result<CsMatI<T, u32, u32>, NpzError> {
    NpzOptions::default().read(path)
}

/// The bytes of a file.
fn file(path: &Path) -> Result<Vec<u8>, NpzProblem> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    let metadata = file.metadata()?;
    if metadata.is_file() {
        bytes.try_reserve_exact(metadata.len() as usize)?;
    }
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Rows and columns.
fn shape(members: &Members<'_>) -> Result<[u32; 2], NpzProblem> {
    let numbers = members.integers("shape")?;
    let found: Vec<i128> = numbers.iter().take(3).collect();
    if let [rows, columns] = found[..]
        && (0..=MAX_ROWS.into()).contains(&rows)
        && (0..=MAX_COLUMNS.into()).contains(&columns)
    {
        return Ok([rows as u32, columns as u32]);
    }
    Err(NpzProblem::Shape {
        found: quote(format!("{found:?}").as_bytes()),
    })
}

/// A matrix of the format csr; or the transpose of one of the format csc, whose shape is exchanged.
fn by_pointers<T: Scalar>(
    members: &Members<'_>,
    [rows, columns]: [u32; 2],
) -> Result<CsMatI<T, u32, u32>, NpzProblem> {
    let pointers = pointers(members, rows)?;
    let indices = members.integers("indices")?;
    let values = members.numbers::<T>("data")?;
    let nonzeros = pointers.last().map_or(0, |&last| last as usize);
    // `scipy` allows arrays to be longer than the last pointer says.
    for (member, found) in [("indices", indices.len()), ("data", values.len())] {
        if found < nonzeros {
            let wanted = nonzeros;
            return Err(NpzProblem::Length {
                member,
                wanted,
                found,
            });
        }
    }
    let indices = checked_indices("indices", &indices, nonzeros, columns)?;
    let row = |row: usize| pointers[row] as usize..pointers[row + 1] as usize;
    let sorted = |row: &[u32]| row.is_sorted_by(|left, right| left < right);
    let shape = (rows as usize, columns as usize);
    if (0..rows as usize).all(|number| sorted(&indices[row(number)])) {
        let mut values = values;
        values.truncate(nonzeros);
        return Ok(CsMatI::new(shape, pointers, indices, values));
    }
    let mut triplets = Vec::new();
    triplets.try_reserve_exact(nonzeros)?;
    for number in 0..rows {
        let range = row(number as usize);
        let entries = indices[range.clone()].iter().zip(&values[range]);
        triplets.extend(entries.map(|(&column, &value)| Triplet {
            row: number,
            column,
            value,
        }));
    }
    Ok(triplets::by_rows(rows, columns, &triplets)?)
}

/// The pointers of `rows` rows, checked: they begin with 0, never fall, and fit 32 bits.
fn pointers(members: &Members<'_>, rows: u32) -> Result<Vec<u32>, NpzProblem> {
    let found = members.integers("indptr")?;
    let wanted = rows as usize + 1;
    if found.len() != wanted {
        return Err(NpzProblem::Length {
            member: "indptr",
            wanted,
            found: found.len(),
        });
    }
    let mut pointers = filled(wanted, 0u32)?;
    let mut before = 0_u32;
    for (at, (pointer, found)) in pointers.iter_mut().zip(found.iter()).enumerate() {
        let most = if at == 0 { 0 } else { u32::MAX };
        let next = u32::try_from(found).ok();
        let Some(next) = next.filter(|next| (before..=most).contains(next)) else {
            return Err(number("indptr", at, [before, most], found));
        };
        before = next;
        *pointer = next;
    }
    Ok(pointers)
}

/// The first `count` indices, all less than `limit`.
fn checked_indices(
    member: &'static str,
    found: &Integers,
    count: usize,
    limit: u32,
) -> Result<Vec<u32>, NpzProblem> {
    let mut indices = Vec::new();
    indices.try_reserve_exact(count)?;
    for (at, found) in found.iter().take(count).enumerate() {
        let index = u32::try_from(found).ok();
        let Some(index) = index.filter(|&index| index < limit) else {
            return Err(number(member, at, [0, limit.saturating_sub(1)], found));
        };
        indices.push(index);
    }
    Ok(indices)
}

/// The error of an element that is not in its range.
#[cold]
fn number(member: &'static str, at: usize, [least, most]: [u32; 2], found: i128) -> NpzProblem {
    NpzProblem::Number {
        member,
        at,
        least,
        most,
        found: found.to_string(),
    }
}

/// The transpose, of that shape.
fn transpose<T: Scalar>(
    a: &CsMatI<T, u32, u32>,
    [rows, columns]: [u32; 2],
) -> Result<CsMatI<T, u32, u32>, NpzProblem> {
    let mut triplets = Vec::new();
    triplets.try_reserve_exact(a.nnz())?;
    triplets.extend(
        a.iter()
            .map(|(&value, (column, row))| Triplet { row, column, value }),
    );
    Ok(triplets::by_rows(rows, columns, &triplets)?)
}

#[cfg(test)]
mod tests;
