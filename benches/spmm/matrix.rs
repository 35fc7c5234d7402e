//! The matrices of a run: generated graphs, and files.

use crate::harness::matrix_file;
use crate::spmm::cases::{Graph, Kind};
use crate::spmm::random::RandomProduct;
use sprs::CsMatI;
use std::borrow::Cow;
use std::path::PathBuf;
use warprow::Scalar;

/// A matrix to multiply.
#[derive(Clone, Debug, PartialEq)]
pub enum Matrix {
    /// A graph of that size, with nonzeros of that distribution.
    Generated(Graph, Kind),
    /// That of a random product.
    Random(RandomProduct),
    /// What is in a file.
    File(PathBuf),
}

/// A matrix, or why there is none.
pub type Made<T> = Result<CsMatI<T, u32, u32>, String>;

impl Matrix {
    /// The name in the results.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Generated(graph, _) => graph.name.into(),
            Self::Random(product) => format!("random_{}", product.index).into(),
            Self::File(path) => matrix_file::name(path).into(),
        }
    }

    /// The distribution of the nonzeros in the results.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Generated(_, kind) => kind.name(),
            Self::Random(product) => product.kind(),
            Self::File(_) => matrix_file::KIND,
        }
    }

    /// The numbers of features to run it with: its own if it is that of a random product, else those `wanted`.
    pub fn features(&self, wanted: &[u32]) -> Vec<u32> {
        match self {
            Self::Random(product) => vec![product.features],
            _ => wanted.to_vec(),
        }
    }

    /// Rows, columns and about how many nonzeros, if they are known before the matrix is made.
    pub fn extents(&self) -> Option<[usize; 3]> {
        match *self {
            Self::Generated(graph, kind) => {
                let rows = graph.rows as usize;
                Some([rows, rows, kind.nonzeros(graph) as usize])
            }
            Self::Random(product) => {
                let [rows, cols] = [product.rows, product.cols].map(|size| size as usize);
                Some([rows, cols, product.nonzeros() as usize])
            }
            Self::File(_) => None,
        }
    }

    /// The matrix; a generated one is the same for the same seed. A graph too dense for its kind is none.
    ///
    /// # Errors
    ///
    /// A file that cannot be read.
    pub fn make<T: Scalar>(&self, seed: u64) -> anyhow::Result<Made<T>> {
        match self {
            Self::Generated(graph, kind) => Ok(kind
                .generate(*graph, seed)
                .map_err(|error| error.to_string())),
            Self::Random(product) => Ok(product.generate(seed).map_err(|error| error.to_string())),
            Self::File(path) => matrix_file::read(path).map(Ok),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_ends_the_run_and_a_graph_too_dense_does_not() {
        let file = Matrix::File("/nonexistent/a.mtx".into());
        let error = file.make::<f32>(1).unwrap_err();
        assert!(format!("{error:#}").contains("/nonexistent/a.mtx"));
        let dense = Graph {
            name: "dense",
            rows: 3,
            nonzeros: 10,
        };
        let matrix = Matrix::Generated(dense, Kind::Uniform);
        assert!(matrix.make::<f32>(1).unwrap().is_err());
    }
}
