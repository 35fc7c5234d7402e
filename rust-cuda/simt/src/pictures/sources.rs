//! The text of the kernels' source files.

use std::collections::BTreeMap;
use std::path::Path;

use crate::counters::LaunchReport;

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
}

/// A line's place in a picture: the name of its file without folders, and its number.
pub(super) fn place(file: &str, line: u32) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    format!("{name}:{line}")
}
