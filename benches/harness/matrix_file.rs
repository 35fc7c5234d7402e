//! Matrices of files: their names in results, and how they are read.

use anyhow::Context;
use std::path::Path;
use warprow::files::read_sparse;
use warprow::{CsrMatrix, Scalar};

/// The word for the distribution of a file's nonzeros in results.
pub const KIND: &str = "file";

/// The name in results: that of the file without its folder and what follows the first dot.
pub fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Reads a sparse matrix of the format that the file's name says.
///
/// # Errors
///
/// A file that cannot be read, with its path.
pub fn read<T: Scalar>(path: &Path) -> anyhow::Result<CsrMatrix<T>> {
    read_sparse(path).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_without_its_folder_and_ending() {
        let path = Path::new("some/folder.d/packages_words.mtx.gz");
        assert_eq!(name(path), "packages_words");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = read::<f32>(Path::new("/nonexistent/a.mtx")).unwrap_err();
        assert!(format!("{error:#}").contains("/nonexistent/a.mtx"));
    }
}
