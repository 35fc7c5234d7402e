//! Plain text tables with aligned columns.

use std::fmt;

/// A table: the first columns hold text, aligned to the left, the others numbers, aligned to the right.
#[derive(Debug)]
pub(super) struct Table {
    text_columns: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with a row of headings.
    pub fn new(text_columns: usize, headings: &[&str]) -> Self {
        let mut table = Self {
            text_columns,
            rows: Vec::new(),
        };
        table.row(headings.iter().map(|&heading| heading.to_owned()));
        table
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Whether it has no rows but the headings.
    pub fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let gap = if column == 0 { "" } else { "  " };
                if column < self.text_columns {
                    line += &format!("{gap}{cell:width$}");
                } else {
                    line += &format!("{gap}{cell:>width$}");
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A number with a comma after each three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A part of a whole, 0 to 1, in percent.
pub(crate) fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

/// A number of bytes in the largest unit of which there is at least one; units differ by factors of 1000.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let bytes = bytes as f64;
    let unit = units.into_iter().find(|&(size, _)| bytes >= size);
    unit.map_or_else(
        || format!("{bytes} B"),
        |(size, unit)| format!("{:.1} {unit}", bytes / size),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(1, &["kind", "requests"]);
        assert!(table.is_empty());
        table.row(["loads".to_owned(), "1,000".to_owned()]);
        table.row(["é".to_owned(), "7".to_owned()]);
        table.row(["no number".to_owned()]);
        assert!(!table.is_empty());
        let expected = "kind       requests\nloads         1,000\né                 7\nno number\n";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn numbers_have_commas() {
        let found = [0, 999, 1000, 12_345, 123_456, 1_234_567].map(grouped);
        assert_eq!(
            found,
            ["0", "999", "1,000", "12,345", "123,456", "1,234,567"]
        );
    }

    #[test]
    fn bytes_have_a_unit() {
        let found = [0, 999, 1000, 6_712_320, 14_700_000_000].map(bytes);
        assert_eq!(found, ["0 B", "999 B", "1.0 kB", "6.7 MB", "14.7 GB"]);
        assert_eq!(percent(0.125), "12 %");
    }
}
