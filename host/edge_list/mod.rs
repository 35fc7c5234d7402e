//! Reading and writing edge lists: a line for each entry of a sparse matrix, `row column` or `row column weight`.
//!
//! Fields are separated by commas in `.csv` files, else by tabs or blanks. Indices count from 0. Entries without a
//! weight are 1; those with the same row and column are summed in the order of the file. The text may be compressed by
//! gzip.
//!
//! Lines that begin with `#` or `%` are comments. A first line whose fields are no numbers is a header. Without another
//! [shape](EdgeListOptions::shape), the matrix is square, and the greatest index is its last. A comment `# shape 3 4`
//! before the first entry, which the writer makes, gives rows and columns too.

mod entries;
mod error;
mod write;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use sprs::CsMatI;

use crate::scalar::Scalar;
use crate::text::{Lines, decompressed};
use crate::triplets::{self, MAX_COLUMNS, MAX_ROWS};
use entries::EdgeList;
pub use error::{EdgeListError, EdgeListProblem};
pub use write::write_edge_list;
pub(crate) use write::write_entries;

/// The first bytes of comments.
const COMMENTS: &[u8] = b"#%";

/// Maximum number of bytes of text per byte of gzip, if the text is longer than 16 MiB.
const MAX_GZIP_RATIO: u32 = 100;

/// What separates the fields of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Separator {
    /// Tabs and blanks, any number of them.
    #[default]
    Blanks,
    /// A comma, with blanks around it or not.
    Comma,
}

impl Separator {
    /// A comma for a file name that ends in `.csv` or `.csv.gz`, else blanks.
    pub fn of(path: impl AsRef<Path>) -> Self {
        let name = path.as_ref().to_string_lossy().to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.ends_with(".csv") {
            true => Self::Comma,
            false => Self::Blanks,
        }
    }
}

/// How an edge list is read.
#[derive(Debug, Clone, Default)]
pub struct EdgeListOptions {
    separator: Option<Separator>,
    symmetric: bool,
    shape: Option<(u32, u32)>,
    max_sparse_rows: Option<u32>,
}

impl EdgeListOptions {
    /// What separates the fields. Default: what the name of the file says.
    #[must_use]
    pub fn separator(mut self, separator: Separator) -> Self {
        self.separator = Some(separator);
        self
    }

    /// Whether every edge stands for the one in the other direction too. Edges from a node to itself are taken once.
    /// If the file lists both directions, their weights are summed.
    #[must_use]
    pub fn symmetric(mut self, symmetric: bool) -> Self {
        self.symmetric = symmetric;
        self
    }

    /// Rows and columns. Default: those of the file's comment, else a square matrix as large as the greatest index
    /// wants.
    #[must_use]
    pub fn shape(mut self, rows: u32, columns: u32) -> Self {
        self.shape = Some((rows, columns));
        self
    }

    /// Maximum number of rows of a matrix that has less than one entry for every 16 rows. Default: 2^26. An empty row
    /// takes 4 bytes.
    #[must_use]
    pub fn max_sparse_rows(mut self, rows: u32) -> Self {
        self.max_sparse_rows = Some(rows);
        self
    }

    /// Reads an edge list.
    ///
    /// # Errors
    ///
    /// As for [`read_edge_list`].
    pub fn read<T: Scalar>(
        &self,
        path: impl AsRef<Path>,
    ) -> Result<CsMatI<T, u32, u32>, EdgeListError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => {
                let mut options = self.clone();
                options.separator.get_or_insert(Separator::of(path));
                options.parse(BufReader::with_capacity(1 << 16, file), &name)
            }
            Err(error) => Err(EdgeListError::Open { file: name, error }),
        }
    }

    /// Reads an edge list from a reader; `name` stands for the file in errors. The default separator is
    /// [`Separator::Blanks`].
    ///
    /// # Errors
    ///
    /// As for [`read_edge_list`].
    pub fn parse<T: Scalar>(
        &self,
        reader: impl BufRead,
        name: &str,
    ) -> Result<CsMatI<T, u32, u32>, EdgeListError> {
        let failed = |line, problem| EdgeListError::Content {
            file: name.to_owned(),
            line,
            problem,
        };
        let text = decompressed(reader, MAX_GZIP_RATIO).map_err(|error| failed(1, error.into()))?;
        let mut lines = Lines::new(text, COMMENTS);
        let separator = self.separator.unwrap_or_default();
        let list = EdgeList::read(&mut lines, separator, self.symmetric, self.shape);
        let matrix = list.and_then(|list| self.matrix(&list));
        matrix.map_err(|problem| failed(lines.number(), problem))
    }

    fn matrix<T: Scalar>(
        &self,
        list: &EdgeList<T>,
    ) -> Result<CsMatI<T, u32, u32>, EdgeListProblem> {
        let (rows, columns) = list.shape;
        let entries = list.triplets.len();
        let most = triplets::max_rows(entries as u64, self.max_sparse_rows.unwrap_or(1 << 26));
        if u64::from(rows) > most {
            return Err(EdgeListProblem::SparseRows {
                rows,
                entries,
                most,
            });
        }
        Ok(triplets::by_rows(rows, columns, &list.triplets)?)
    }
}

/// Reads an edge list with the default [`EdgeListOptions`]: a `.csv` file has commas, every other file blanks.
///
/// # Errors
///
/// If the file cannot be read, a line is not two indices or two indices and a number, lines differ in that, an index is
/// not of the matrix or greater than 2^32 - 3, or the matrix has many more rows than entries.
pub fn read_edge_list<T: Scalar>(
    path: impl AsRef<Path>,
) -> Result<CsMatI<T, u32, u32>, EdgeListError> {
    EdgeListOptions::default().read(path)
}

/// Maximum index: rows and columns are one more.
const MAX_INDEX: u32 = {
    assert!(MAX_ROWS < MAX_COLUMNS);
    MAX_ROWS - 1
};

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CsMatI<f32, u32, u32>, String> {
        parsed(&EdgeListOptions::default(), text)
    }

    fn parsed(options: &EdgeListOptions, text: &str) -> Result<CsMatI<f32, u32, u32>, String> {
        options
            .parse(text.as_bytes(), "a.tsv")
            .map_err(|error| error.to_string())
    }

    fn dense(a: &CsMatI<f32, u32, u32>) -> ndarray::Array2<f32> {
        let mut dense = ndarray::Array2::zeros(a.shape());
        for (&value, (row, column)) in a {
            dense[(row as usize, column as usize)] = value;
        }
        dense
    }

    #[test]
    fn weights_comments_headers_and_blanks_are_as_people_write_them() {
        let wanted = ndarray::array![[0.0, 2.5, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, -3.0]];
        for text in [
            "0 1 2.5\n2 0 1\n2 2 -3\n",
            "# SNAP\n% more\n0\t1\t2.5\r\n2\t0\t1\r\n\r\n2\t2\t-3",
            "source target weight\n2 2 -1\n2 2 -2\n  0 1  25e-1\n2 0 1\n",
        ] {
            assert_eq!(dense(&read(text).unwrap()), wanted, "{text}");
        }
        let csv = EdgeListOptions::default().separator(Separator::Comma);
        let text = "source,target,weight\n0, 1, 2.5\n2,0,1\n2,2,-3\n";
        assert_eq!(dense(&parsed(&csv, text).unwrap()), wanted);
    }

    #[test]
    fn entries_without_weights_are_one_and_the_other_direction_is_added() {
        let a = read("0 2\n1 1\n").unwrap();
        assert_eq!(
            dense(&a),
            ndarray::array![[0., 0., 1.], [0., 1., 0.], [0., 0., 0.]]
        );
        let symmetric = EdgeListOptions::default().symmetric(true);
        let a = parsed(&symmetric, "0 2\n1 1\n").unwrap();
        assert_eq!(
            dense(&a),
            ndarray::array![[0., 0., 1.], [0., 1., 0.], [1., 0., 0.]]
        );
        let error = parsed(&symmetric.shape(2, 3), "0 1\n").unwrap_err();
        assert!(error.contains("wanted as many columns as rows"), "{error}");
    }

    #[test]
    fn the_shape_is_that_of_the_options_else_of_the_comment_else_of_the_indices() {
        let shape = |options: &EdgeListOptions, text| parsed(options, text).unwrap().shape();
        let default = EdgeListOptions::default();
        assert_eq!(shape(&default, ""), (0, 0));
        assert_eq!(shape(&default, "0 4\n"), (5, 5));
        assert_eq!(shape(&default, "# shape 7 6\n0 4\n"), (7, 6));
        assert_eq!(shape(&default.shape(2, 9), "# shape 7 6\n0 4\n"), (2, 9));
        assert_eq!(
            shape(&EdgeListOptions::default(), "# shapes of things\n0 4\n"),
            (5, 5)
        );
    }

    #[test]
    fn what_is_written_is_read() {
        let a = CsMatI::new(
            (3, 5),
            vec![0, 1, 1, 3],
            vec![4, 0, 2],
            vec![0.1f32, -0.0, 1e-30],
        );
        for (separator, compressed) in [(Separator::Blanks, true), (Separator::Comma, false)] {
            let mut bytes = Vec::new();
            write_entries(&mut bytes, separator, compressed, a.view()).unwrap();
            let options = EdgeListOptions::default().separator(separator);
            assert_eq!(options.parse::<f32>(&bytes[..], "a").unwrap(), a);
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, message) in [
            (
                "0 1\n0\n",
                "a.tsv:2: wanted a column index, found the end of the line",
            ),
            (
                "0 1\n0 1 2.5\n",
                "a.tsv:2: wanted 2 fields, as in line 1, found 3",
            ),
            (
                "0 1 1 1\n",
                "a.tsv:1: wanted the end of the line, found `1`",
            ),
            ("0 1\n-1 2\n", "a.tsv:2: wanted a row index, found `-1`"),
            ("0 1\na b\n", "a.tsv:2: wanted a row index, found `a`"),
            (
                "0 1 x\n",
                "a.tsv:1: wanted a number as the weight, found `x`",
            ),
            ("0 1 1e39\n", "a.tsv:1: wanted a number in the range of f32"),
            (
                "0 4294967294\n",
                "a.tsv:1: wanted a column index from 0 to 4294967293",
            ),
            (
                "0 4000000000\n",
                "a.tsv:1: wanted at most 67108864 rows with 1 entries",
            ),
            (
                "# shape 2 2\n0 2\n",
                "a.tsv:2: wanted a column index from 0 to 1, found `2`",
            ),
            (
                "# shape 2\n0 1\n",
                "a.tsv:1: wanted a comment `# shape ROWS COLUMNS`",
            ),
            (
                "# shape 0 0\n0 0\n",
                "a.tsv:2: wanted no entries in a matrix of 0 rows",
            ),
            ("0,1\n", "a.tsv:1: wanted a row index, found `0,1`"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.starts_with(message), "{found}");
        }
    }
}
