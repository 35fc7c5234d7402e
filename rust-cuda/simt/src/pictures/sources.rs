//! The text of the kernels' source files.

use std::collections::BTreeMap;
use std::path::Path;

use crate::counters::LaunchReport;
use crate::counters::display::table::grouped;

/// The text of source files, by their paths as the compiler knows them.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: BTreeMap<String, String>,
}

impl Sources {
    /// Adds the text of a file.
    pub fn insert(&mut self, file: impl Into<String>, text: impl Into<String>) {
        self.files.insert(file.into(), text.into());
    }

    /// Reads the files that a report names. Their paths are relative to `folder`, the root of the workspace that was
    /// compiled. A file that cannot be read is left out.
    #[must_use]
    pub fn of_report(report: &LaunchReport, folder: &Path) -> Self {
        let mut sources = Self::default();
        for line in &report.lines {
            sources.read(&line.file, folder);
        }
        for request in report.traces.iter().flat_map(|trace| &trace.requests) {
            sources.read(&request.file, folder);
        }
        sources
    }

    /// Reads a file, unless it is there. A file that cannot be read is left out.
    pub fn read(&mut self, file: &str, folder: &Path) {
        if !self.files.contains_key(file)
            && let Ok(text) = std::fs::read_to_string(folder.join(file))
        {
            self.insert(file, text);
        }
    }

    /// The text of a file.
    pub(super) fn text(&self, file: &str) -> Option<&str> {
        self.files.get(file).map(String::as_str)
    }

    /// A line of a file, counted from 1, without white space at its end.
    pub(super) fn line(&self, file: &str, line: u32) -> Option<&str> {
        let number = usize::try_from(line).ok()?.checked_sub(1)?;
        self.text(file)?.lines().nth(number).map(str::trim_end)
    }

    /// The statement that ends on a line, without indentation: a chain of calls over several lines is one, unless it is
    /// longer than `characters`. Empty if the line is not known.
    pub(super) fn statement(&self, file: &str, line: u32, characters: usize) -> String {
        let text = |line| self.line(file, line).map_or("", str::trim_start);
        let mut statement = text(line).to_owned();
        let mut above = line;
        while text(above).starts_with('.') && above > 1 {
            above -= 1;
            statement.insert_str(0, text(above));
        }
        match statement.chars().count() {
            long if long > characters && above < line => format!("… {}", text(line)),
            _ => statement,
        }
    }
}

/// A number of things, with an `s` unless it is one.
pub(super) fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(number))
}

/// A line's place in a picture: the name of its file without folders, and its number.
pub(super) fn place(file: &str, line: u32) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    format!("{name}:{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_calls_is_one_statement_if_it_fits() {
        let mut sources = Sources::default();
        sources.insert("a.rs", "let sum = x\n    .load(1)\n    .add(2);\nlast();");
        let statement = |line, characters| sources.statement("a.rs", line, characters);
        assert_eq!(statement(2, 20), "let sum = x.load(1)");
        assert_eq!(statement(3, 20), "… .add(2);");
        assert_eq!(statement(4, 3), "last();");
        assert_eq!([statement(0, 9), statement(5, 9)], ["", ""]);
    }

    #[test]
    fn things_are_counted() {
        assert_eq!(
            [counted(1, "block"), counted(0, "block")],
            ["1 block", "0 blocks"]
        );
    }
}
