//! The matrices of a run: those of the table, and files.

use crate::harness::matrix_file;
use crate::spgemm::cases::Case;
use std::borrow::Cow;
use std::path::PathBuf;
use warprow::{CsrMatrix, Scalar};

/// A matrix to multiply.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A matrix of the table.
    Case(Case),
    /// What is in a file.
    File(PathBuf),
}

impl Input {
    /// The name in the results.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Self::Case(case) => case.name.into(),
            Self::File(path) => matrix_file::name(path).into(),
        }
    }

    /// The word for the distribution in the results.
    pub const fn kind_name(&self) -> &'static str {
        match self {
            Self::Case(case) => case.kind_name(),
            Self::File(_) => matrix_file::KIND,
        }
    }

    /// The matrix; that of the table is the same for the same seed.
    ///
    /// # Errors
    ///
    /// A matrix that cannot be generated or read.
    pub fn matrix<T: Scalar>(&self, seed: u64) -> anyhow::Result<CsrMatrix<T>> {
        match self {
            Self::Case(case) => Ok(case.generate(seed)?),
            Self::File(path) => matrix_file::read(path),
        }
    }
}
