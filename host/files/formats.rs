//! The table of formats.

use std::path::Path;

use super::FileError;

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Matrix Market, sparse.
    MatrixMarket,
    /// SciPy's `save_npz`, sparse.
    Npz,
    /// An edge list, sparse.
    EdgeList,
    /// NumPy, dense.
    Npy,
    /// Safetensors, dense.
    Safetensors,
}

/// The ends of names, the formats that they stand for, and whether the text is compressed by gzip.
const ENDS: [(&str, Format, bool); 9] = [
    (".mtx", Format::MatrixMarket, false),
    (".mtx.gz", Format::MatrixMarket, true),
    (".npz", Format::Npz, false),
    (".tsv", Format::EdgeList, false),
    (".csv", Format::EdgeList, false),
    (".tsv.gz", Format::EdgeList, true),
    (".csv.gz", Format::EdgeList, true),
    (".npy", Format::Npy, false),
    (".safetensors", Format::Safetensors, false),
];

impl Format {
    /// The format that the end of a name stands for, in upper or lower case, and whether it is compressed by gzip.
    pub fn of(path: impl AsRef<Path>) -> Option<(Self, bool)> {
        let name = path
            .as_ref()
            .file_name()?
            .to_string_lossy()
            .to_ascii_lowercase();
        let found = ENDS.into_iter().find(|(end, ..)| name.ends_with(end));
        found.map(|(_, format, compressed)| (format, compressed))
    }

    /// Whether it is a format of sparse matrices.
    pub fn is_sparse(self) -> bool {
        matches!(self, Self::MatrixMarket | Self::Npz | Self::EdgeList)
    }

    /// The ends of names of all sparse or of all dense formats.
    pub fn names(sparse: bool) -> Vec<&'static str> {
        let of_kind = ENDS
            .into_iter()
            .filter(|(_, format, _)| format.is_sparse() == sparse);
        of_kind.map(|(end, ..)| end).collect()
    }

    /// The format, and whether it is compressed, of a file that must be of that kind. `insisted` counts more than the
    /// name.
    pub(super) fn of_kind(
        path: &Path,
        insisted: Option<Self>,
        sparse: bool,
    ) -> Result<(Self, bool), FileError> {
        let insisted = insisted.map(|format| (format, false));
        match insisted.or_else(|| Self::of(path)) {
            Some((format, compressed)) if format.is_sparse() == sparse => Ok((format, compressed)),
            _ => Err(FileError::Format {
                file: path.display().to_string(),
                kind: if sparse { "a sparse" } else { "a dense" },
                wanted: Self::names(sparse),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_decides_in_any_case() {
        assert_eq!(Format::of("a/b.MTX.gz"), Some((Format::MatrixMarket, true)));
        assert_eq!(Format::of("b.csv"), Some((Format::EdgeList, false)));
        for path in ["", "..", "a.mtx/", "a.gz", "mtx", "a.npy.gz"] {
            assert_eq!(
                Format::of(path).map(|(format, _)| format),
                match path {
                    "a.mtx/" => Some(Format::MatrixMarket),
                    _ => None,
                }
            );
        }
    }

    #[test]
    fn a_format_of_the_other_kind_is_refused_with_those_that_serve() {
        let error = Format::of_kind("a.mtx".as_ref(), None, false)
            .unwrap_err()
            .to_string();
        let wanted = "a.mtx: wanted the name of a dense matrix to end in .npy or .safetensors";
        assert_eq!(error, wanted);
        assert!(Format::of_kind("a.npy".as_ref(), None, true).is_err());
    }
}
