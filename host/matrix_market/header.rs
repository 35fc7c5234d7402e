//! The banner and the size line.

use std::io::Read;

use super::Problem;
use crate::text::{Fields, Lines, parse_count, quoted};
use crate::triplets::{MAX_COLUMNS, MAX_ROWS};

/// What a file announces.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    pub(super) field: Field,
    pub(super) symmetry: Symmetry,
    pub(super) rows: u32,
    pub(super) columns: u32,
    /// The entries in the file, before the other triangle is filled in.
    pub(super) entries: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Field {
    Scalar,
    Integer,
    Pattern,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Symmetry {
    General,
    Symmetric,
    SkewSymmetric,
}

impl Field {
    /// The word of the banner.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Scalar => "real",
            Self::Integer => "integer",
            Self::Pattern => "pattern",
        }
    }
}

impl Header {
    /// Reads the banner in the first line, and the sizes in the next line that is neither empty nor a comment.
    pub(super) fn read(lines: &mut Lines<impl Read>) -> Result<Self, Problem> {
        let (field, symmetry) = match lines.next_line()? {
            Some(line) => banner(line)?,
            None => {
                return Err(Problem::Banner {
                    found: "an empty file".to_owned(),
                });
            }
        };
        let [rows, columns, entries] = match lines.next_content()? {
            Some(line) => size(line)?,
            None => {
                return Err(Problem::Size {
                    found: "the end of the file".to_owned(),
                });
            }
        };
        let header = Self {
            field,
            symmetry,
            rows: at_most(MAX_ROWS, "rows", rows)?,
            columns: at_most(MAX_COLUMNS, "columns", columns)?,
            entries: at_most(u32::MAX, "entries", entries)?,
        };
        let symmetry = match symmetry {
            Symmetry::General => return Ok(header),
            Symmetry::Symmetric => "symmetric",
            Symmetry::SkewSymmetric => "skew-symmetric",
        };
        if rows != columns {
            return Err(Problem::NotSquare {
                symmetry,
                rows: header.rows,
                columns: header.columns,
            });
        }
        Ok(header)
    }
}

fn at_most(most: u32, what: &'static str, found: u64) -> Result<u32, Problem> {
    match u32::try_from(found) {
        Ok(count) if count <= most => Ok(count),
        _ => Err(Problem::TooMany { what, most, found }),
    }
}

/// The field and the symmetry. Words after the symmetry are ignored, as by other readers.
fn banner(line: Fields<'_>) -> Result<(Field, Symmetry), Problem> {
    let found = quoted(line.rest())?;
    let words: Vec<String> = (line.take(5))
        .map(|word| String::from_utf8_lossy(word).to_ascii_lowercase())
        .collect();
    let [mark, object, format, field, symmetry] = &words[..] else {
        return Err(Problem::Banner { found });
    };
    if mark != "%%matrixmarket" && mark != "%matrixmarket" {
        return Err(Problem::Banner { found });
    }
    let unsupported = |what, wanted, found: &String| {
        let found = quoted(found.as_bytes())?;
        Err(Problem::Unsupported {
            what,
            wanted,
            found,
        })
    };
    if object != "matrix" {
        return unsupported("object", "`matrix`", object);
    }
    if format != "coordinate" {
        return unsupported("format", "`coordinate`", format);
    }
    let field = match field.as_str() {
        "real" | "double" => Field::Scalar,
        "integer" | "unsigned-integer" => Field::Integer,
        "pattern" => Field::Pattern,
        _ => {
            return unsupported("field", "`real`, `integer` or `pattern`", field);
        }
    };
    let symmetry = match symmetry.as_str() {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" => Symmetry::SkewSymmetric,
        _ => {
            let wanted = "`general`, `symmetric` or `skew-symmetric`";
            return unsupported("symmetry", wanted, symmetry);
        }
    };
    if field == Field::Pattern && symmetry == Symmetry::SkewSymmetric {
        return Err(Problem::SkewPattern);
    }
    Ok((field, symmetry))
}

fn size(line: Fields<'_>) -> Result<[u64; 3], Problem> {
    let mut fields = line;
    let mut count = || fields.next().and_then(parse_count);
    match (count(), count(), count(), fields.next()) {
        (Some(rows), Some(columns), Some(entries), None) => Ok([rows, columns, entries]),
        _ => Err(Problem::Size {
            found: quoted(line.rest())?,
        }),
    }
}
