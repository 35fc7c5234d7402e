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

/// A matrix of the formats csr and coo has at most this many rows without an entry for every 16 rows, as Matrix Market
/// files do by default.
const MAX_SPARSE_ROWS: u32 = 1 << 26;

/// Reads a sparse matrix from an npz file.
///
/// # Errors
///
/// If the file cannot be read, is no zip file, or lacks an array; if an array is of another type or length; if an index
/// is not of the matrix, or a row pointer falls; for the formats bsr and dia.
pub fn read_npz<T: Scalar>(path: impl AsRef<Path>) -> Result<CsMatI<T, u32, u32>, NpzError> {
    let path = path.as_ref();
    read(path).map_err(|problem| NpzError {
        file: path.display().to_string(),
        problem,
    })
}

fn read<T: Scalar>(path: &Path) -> Result<CsMatI<T, u32, u32>, NpzProblem> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    let metadata = file.metadata()?;
    if metadata.is_file() {
        bytes.try_reserve_exact(metadata.len() as usize)?;
    }
    file.read_to_end(&mut bytes)?;
    parse(&bytes)
}

/// The matrix in the bytes of a file.
fn parse<T: Scalar>(bytes: &[u8]) -> Result<CsMatI<T, u32, u32>, NpzProblem> {
    let members = Members::of(bytes)?;
    let format = members.text("format")?;
    let shape = shape(&members)?;
    match format.as_str() {
        "csr" => by_pointers(&members, shape),
        "csc" => {
            let [rows, columns] = shape;
            let transposed = by_pointers(&members, [columns, rows])?;
            transpose(&transposed, shape)
        }
        "coo" => coordinates(&members, shape),
        _ => Err(NpzProblem::Format {
            found: quote(format.as_bytes()),
        }),
    }
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
    let mut before = 0;
    for (at, (pointer, found)) in pointers.iter_mut().zip(found.iter()).enumerate() {
        let most = if at == 0 { 0 } else { i128::from(u32::MAX) };
        if found < before || found > most {
            return Err(NpzProblem::Number {
                member: "indptr",
                at,
                least: before,
                most,
                found,
            });
        }
        before = found;
        *pointer = found as u32;
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
        if !(0..limit.into()).contains(&found) {
            return Err(NpzProblem::Number {
                member,
                at,
                least: 0,
                most: i128::from(limit) - 1,
                found,
            });
        }
        indices.push(found as u32);
    }
    Ok(indices)
}

/// A matrix of the format coo.
fn coordinates<T: Scalar>(
    members: &Members<'_>,
    [rows, columns]: [u32; 2],
) -> Result<CsMatI<T, u32, u32>, NpzProblem> {
    let values = members.numbers::<T>("data")?;
    let wanted = values.len();
    let most = triplets::max_rows(wanted as u64, MAX_SPARSE_ROWS);
    if u64::from(rows) > most {
        return Err(NpzProblem::SparseRows {
            rows,
            entries: wanted,
            most,
        });
    }
    let index = |member, limit| {
        let found = members.integers(member)?;
        if found.len() != wanted {
            let found = found.len();
            return Err(NpzProblem::Length {
                member,
                wanted,
                found,
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

/// The transpose, of that shape.
fn transpose<T: Scalar>(
    a: &CsMatI<T, u32, u32>,
    [rows, columns]: [u32; 2],
) -> Result<CsMatI<T, u32, u32>, NpzProblem> {
    let most = triplets::max_rows(a.nnz() as u64, MAX_SPARSE_ROWS);
    if u64::from(rows) > most {
        return Err(NpzProblem::SparseRows {
            rows,
            entries: a.nnz(),
            most,
        });
    }
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
