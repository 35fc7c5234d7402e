//! The lines of an edge list, as triplets.

use std::io::Read;

use super::{EdgeListProblem as Problem, MAX_INDEX, Separator};
use crate::scalar::Scalar;
use crate::text::{Fields, Lines, parse_count, quoted};
use crate::triplets::{MAX_COLUMNS, MAX_ROWS, Triplet};

/// What a file holds.
pub(super) struct EdgeList<T> {
    pub(super) shape: (u32, u32),
    pub(super) triplets: Vec<Triplet<T>>,
}

impl<T: Scalar> EdgeList<T> {
    /// Reads all lines. `shape` counts more than what the file says.
    pub(super) fn read(
        lines: &mut Lines<impl Read>,
        separator: Separator,
        symmetric: bool,
        mut shape: Option<(u32, u32)>,
    ) -> Result<Self, Problem> {
        let mut triplets: Vec<Triplet<T>> = Vec::new();
        // Fields of the first entry, and its line.
        let mut form: Option<(usize, u64)> = None;
        let mut greatest = None;
        let mut is_first = true;
        while let Some(line) = lines.next_line()? {
            let text = line.rest();
            match text.first() {
                None => continue,
                Some(b'#' | b'%') => {
                    if form.is_none() && shape.is_none() {
                        shape = shape_comment(text)?;
                    }
                    continue;
                }
                Some(_) => {}
            }
            let (fields, count) = split(line, separator)?;
            if std::mem::take(&mut is_first) && is_header(&fields[..count]) {
                continue;
            }
            // Borrowed from the lines until here.
            let entry = parse_entry::<T>(&fields[..count], shape)?;
            let number = lines.number();
            let &mut (wanted, first_line) = form.get_or_insert((count, number));
            if wanted != count {
                return Err(Problem::Fields {
                    wanted,
                    first_line,
                    found: count,
                });
            }
            greatest = greatest.max(Some(entry.row.max(entry.column)));
            push(&mut triplets, entry)?;
            if symmetric && entry.row != entry.column {
                let (row, column) = (entry.column, entry.row);
                push(
                    &mut triplets,
                    Triplet {
                        row,
                        column,
                        ..entry
                    },
                )?;
            }
        }
        let size = greatest.map_or(0, |index| index + 1);
        let shape = shape.unwrap_or((size, size));
        if symmetric && shape.0 != shape.1 {
            let (rows, columns) = shape;
            return Err(Problem::NotSquare { rows, columns });
        }
        Ok(Self { shape, triplets })
    }
}

fn push<T>(triplets: &mut Vec<Triplet<T>>, triplet: Triplet<T>) -> Result<(), Problem> {
    if triplets.len() == u32::MAX as usize {
        return Err(Problem::TooMany);
    }
    triplets.try_reserve(1)?;
    triplets.push(triplet);
    Ok(())
}

/// Rows and columns of a comment `# shape 3 4`; `None` for any other comment.
fn shape_comment(text: &[u8]) -> Result<Option<(u32, u32)>, Problem> {
    let words = text
        .trim_ascii_start()
        .strip_prefix(b"#")
        .unwrap_or_default();
    let mut fields = words
        .split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty());
    if fields.next() != Some(b"shape") {
        return Ok(None);
    }
    let mut count = |most: u32| {
        let count = fields.next().and_then(parse_count)?;
        u32::try_from(count).ok().filter(|&count| count <= most)
    };
    match (count(MAX_ROWS), count(MAX_COLUMNS), fields.next()) {
        (Some(rows), Some(columns), None) => Ok(Some((rows, columns))),
        _ => Err(Problem::Shape {
            found: quoted(text)?,
        }),
    }
}

/// The fields of a line, at most four, and how many there are.
fn split(line: Fields<'_>, separator: Separator) -> Result<([&[u8]; 4], usize), Problem> {
    let mut fields: [&[u8]; 4] = [&[]; 4];
    let mut count = 0;
    let mut add = |field| {
        if let Some(place) = fields.get_mut(count) {
            *place = field;
            count += 1;
        }
    };
    match separator {
        Separator::Blanks => line.for_each(add),
        Separator::Comma => {
            let all = line.rest().split(|&byte| byte == b',');
            all.for_each(|field| add(field.trim_ascii()));
        }
    }
    Ok((fields, count))
}

/// Whether none of the fields is a number.
fn is_header(fields: &[&[u8]]) -> bool {
    let is_number = |field: &&[u8]| {
        let text = std::str::from_utf8(field);
        text.is_ok_and(|text| text.parse::<f64>().is_ok())
    };
    fields.len() > 1 && !fields.iter().any(is_number)
}

#[inline]
fn parse_entry<T: Scalar>(
    fields: &[&[u8]],
    shape: Option<(u32, u32)>,
) -> Result<Triplet<T>, Problem> {
    let most = |size: u32| size.saturating_sub(1);
    let [most_row, most_column] = match shape {
        Some((rows, columns)) => [most(rows), most(columns)],
        None => [MAX_INDEX; 2],
    };
    let row = parse_index(fields.first(), "row", most_row)?;
    let column = parse_index(fields.get(1), "column", most_column)?;
    let value = match fields.get(2) {
        Some(field) => parse_weight(field)?,
        None => T::ONE,
    };
    if let Some(field) = fields.get(3) {
        return Err(Problem::TrailingField {
            found: quoted(field)?,
        });
    }
    if let Some((rows, columns)) = shape
        && (rows == 0 || columns == 0)
    {
        return Err(Problem::Empty { rows, columns });
    }
    Ok(Triplet { row, column, value })
}

#[inline]
fn parse_index(field: Option<&&[u8]>, what: &'static str, most: u32) -> Result<u32, Problem> {
    match field.and_then(|field| parse_count(field)) {
        Some(index) if index <= most.into() => Ok(index as u32),
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

fn parse_weight<T: Scalar>(field: &[u8]) -> Result<T, Problem> {
    let text = std::str::from_utf8(field).ok();
    let Some(value) = text.and_then(|text| text.parse::<T>().ok()) else {
        return Err(Problem::NotAWeight {
            found: quoted(field)?,
        });
    };
    // `inf` and `infinity` have no digits; a number that overflowed has.
    if value.to_f64().is_infinite() && field.iter().any(u8::is_ascii_digit) {
        return Err(Problem::NotRepresentable {
            element: std::any::type_name::<T>(),
            found: quoted(field)?,
        });
    }
    Ok(value)
}

/// The field, quoted, or that there is none.
#[cold]
fn shown(field: Option<&&[u8]>) -> Result<String, Problem> {
    match field {
        Some([]) => Ok("nothing".to_owned()),
        Some(field) => Ok(quoted(field)?),
        None => Ok("the end of the line".to_owned()),
    }
}
