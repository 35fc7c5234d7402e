//! Why a file has no profile.

use std::path::PathBuf;

/// Why a file has no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{}{}: {reason}", .path.display(), place(*.line, .field))]
pub struct ProfileError {
    /// The file.
    pub path: PathBuf,
    /// The line at fault, from 1, if one is.
    pub line: Option<usize>,
    /// The field in that line, if there is one.
    pub field: Option<String>,
    /// What was wanted, and what was found.
    pub reason: String,
}

fn place(line: Option<usize>, field: &Option<String>) -> String {
    let line = line.map(|line| format!(", line {line}"));
    let field = field.as_ref().map(|field| format!(", field `{field}`"));
    line.into_iter().chain(field).collect()
}
