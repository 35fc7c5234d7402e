//! What the program reads, or makes with random numbers.

use super::options::{ReaderName, RunOptions};
use super::report::Report;
use anyhow::Result;
use ndarray::Array2;
use std::path::Path;
use warprow::files::read_sparse;
use warprow::gcn::{GcnElement, read_matrix};
use warprow::{CsrMatrix, GcnLayer, SpgemmElement, generate};
use warprow_mpi::{World, read_share};

/// A file's matrix at rank 0.
pub fn read_whole<T: SpgemmElement>(world: &World, path: &Path) -> Result<Option<CsrMatrix<T>>> {
    Ok(match world.is_root() {
        true => Some(read_sparse(path)?),
        false => None,
    })
}

/// A file's matrix at rank 0, or a share of it on each rank, as the options say.
pub struct Sparse<T> {
    /// At rank 0; with shares only if the result is verified.
    pub whole: Option<CsrMatrix<T>>,
    pub share: Option<CsrMatrix<T>>,
}

impl<T: SpgemmElement> Sparse<T> {
    pub fn read(report: &mut Report<'_>, path: &Path, run: &RunOptions) -> Result<Self> {
        let world = report.world;
        if run.read == ReaderName::Root {
            let whole = report.phase("read", || read_whole(world, path))?;
            return Ok(Self { whole, share: None });
        }
        let share = report.phase("read", || read_share(world, path))?;
        let whole = match run.verify {
            true => read_whole(world, path)?,
            false => None,
        };
        Ok(Self {
            whole,
            share: Some(share),
        })
    }

    pub fn columns(&self) -> usize {
        (self.share.as_ref().or(self.whole.as_ref())).map_or(0, |a| a.cols())
    }
}

/// A file's dense matrix at rank 0, or a random one.
pub fn dense<T: SpgemmElement>(
    world: &World,
    path: Option<&Path>,
    shape: (usize, usize),
) -> Result<Option<Array2<T>>> {
    Ok(match (world.is_root(), path) {
        (false, _) => None,
        (true, Some(path)) => Some(read_matrix(path)?),
        (true, None) => Some(generate::dense(shape.0, shape.1, 1)?),
    })
}

/// A network with random weights: a layer between each two neighbouring widths.
pub fn random_layers<T: GcnElement>(widths: &[usize]) -> Result<Vec<GcnLayer<T>>> {
    let layer = |(index, widths): (usize, &[usize])| {
        Ok(GcnLayer {
            weights: generate::dense(widths[0], widths[1], index as u64 + 2)?,
            bias: Some(
                generate::dense(1, widths[1], index as u64 + 100)?
                    .row(0)
                    .to_owned(),
            ),
        })
    };
    widths.windows(2).enumerate().map(layer).collect()
}
