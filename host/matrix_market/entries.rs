//! The entries of a file, as triplets.

use std::io::Read;

use super::Problem;
use super::header::{Field, Header, Symmetry};
use crate::scalar::Scalar;
use crate::text::{Fields, Lines, parse_count, quoted};
use crate::triplets::Triplet;

/// Reads all entries, and adds the other triangle of a symmetric or skew-symmetric matrix. More than `max_entries` are
/// an error.
pub(super) fn read<T: Scalar>(
    lines: &mut Lines<impl Read>,
    header: &Header,
    max_entries: u32,
) -> Result<Vec<Triplet<T>>, Problem> {
    let mut triplets = Vec::new();
    let mut push = |triplet: Triplet<T>| {
        if triplets.len() >= max_entries as usize {
            return Err(Problem::TooMany {
                what: "entries",
                most: max_entries,
                found: u64::from(max_entries) + 1,
            });
        }
        triplets.try_reserve(1).map_err(Problem::OutOfMemory)?;
        triplets.push(triplet);
        Ok(())
    };
    for found in 0..header.entries {
        let Some(line) = lines.next_content()? else {
            return Err(Problem::TooFewEntries {
                wanted: header.entries,
                found,
            });
        };
        let entry = parse_entry(line, header)?;
        push(entry)?;
        let mirrored = match header.symmetry {
            Symmetry::General => continue,
            Symmetry::Symmetric if entry.row == entry.column => continue,
            Symmetry::Symmetric => entry.value,
            Symmetry::SkewSymmetric if entry.row == entry.column => {
                return Err(Problem::SkewDiagonal {
                    index: entry.row + 1,
                });
            }
            Symmetry::SkewSymmetric => -entry.value,
        };
        push(Triplet {
            row: entry.column,
            column: entry.row,
            value: mirrored,
        })?;
    }
    match lines.next_content()? {
        Some(line) => Err(Problem::TooManyEntries {
            wanted: header.entries,
            found: quoted(line.rest())?,
        }),
        None => Ok(triplets),
    }
}

#[inline]
fn parse_entry<T: Scalar>(line: Fields<'_>, header: &Header) -> Result<Triplet<T>, Problem> {
    let mut fields = line;
    let row = parse_index(fields.next(), "row", header.rows)?;
    let column = parse_index(fields.next(), "column", header.columns)?;
    let value = match header.field {
        Field::Pattern => T::ONE,
        numeric => parse_value(fields.next(), numeric)?,
    };
    match fields.next() {
        Some(field) => Err(Problem::TrailingField {
            found: quoted(field)?,
        }),
        None => Ok(Triplet { row, column, value }),
    }
}

/// An index from 1 to `most`, less 1.
#[inline]
fn parse_index(field: Option<&[u8]>, what: &'static str, most: u32) -> Result<u32, Problem> {
    match field.and_then(parse_count) {
        Some(index) if (1..=most.into()).contains(&index) => Ok((index - 1) as u32),
        Some(_) => Err(Problem::IndexOutOfRange {
            what,
            most,
            found: shown(field)?,
        }),
        None => Err(Problem::NotAnIndex {
            what,
            found: shown(field)?,
        }),
    }
}

#[inline]
fn parse_value<T: Scalar>(field: Option<&[u8]>, kind: Field) -> Result<T, Problem> {
    let text = field.and_then(|field| std::str::from_utf8(field).ok());
    let of_kind = text.filter(|text| kind != Field::Integer || is_integer(text));
    let Some(value) = of_kind.and_then(|text| text.parse::<T>().ok()) else {
        return Err(Problem::NotAValue {
            field: kind.name(),
            found: shown(field)?,
        });
    };
    // `inf` and `infinity` have no digits; a number that overflowed has.
    let has_digits = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
    if value.to_f64().is_infinite() && text.is_some_and(has_digits) {
        return Err(Problem::NotRepresentable {
            element: std::any::type_name::<T>(),
            found: shown(field)?,
        });
    }
    Ok(value)
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The field, quoted, or that there is none.
#[cold]
fn shown(field: Option<&[u8]>) -> Result<String, Problem> {
    Ok(field.map_or_else(|| Ok("the end of the line".to_owned()), quoted)?)
}
