//! The operations, each from the open device to a result on the host.

use crate::first_use::sample::{ModuleTime, Sample};
use ndarray::{Array2, ArrayView1};
use std::time::Instant;
use warprow::device::Device;
use warprow::matrix_market::parse_matrix_market;
use warprow::{CsrMatrix, DeviceCsr, Error, Spgemm, SpgemmOptions, Spmm, SpmmOptions, spgemm};

/// The dependency graph of the packages of a Debian release (see data/README.md).
const MATRIX: (&str, &[u8]) = (
    "debian-bookworm-depends.mtx.gz",
    include_bytes!("../data/debian-bookworm-depends.mtx.gz"),
);

/// Columns of X.
const FEATURES: usize = 32;

/// What is computed, in f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Operation {
    /// A X with 32 features: a plan, and one product.
    Spmm,
    /// A A, computed once.
    Spgemm,
    /// A A in two phases, the symbolic and the numeric one.
    SpgemmPhases,
}

impl Operation {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spmm => "spmm",
            Self::Spgemm => "spgemm",
            Self::SpgemmPhases => "spgemm-phases",
        }
    }

    /// Runs it once on a device that was opened just now.
    ///
    /// # Errors
    ///
    /// The matrix's and the device's.
    pub fn sample(self, device: &Device) -> anyhow::Result<Sample> {
        let (name, bytes) = MATRIX;
        let a = parse_matrix_market::<f32>(bytes, name)?;
        let start = Instant::now();
        let product = match self {
            Self::Spmm => Product::Dense(spmm(device, &a)?),
            Self::Spgemm => Product::Sparse(square(device, &a)?),
            Self::SpgemmPhases => Product::Sparse(square_in_phases(device, &a)?),
        };
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let modules = device.module_loads().into_iter().map(|load| ModuleTime {
            module: load.module,
            ms: load.time.as_secs_f64() * 1e3,
        });
        Ok(Sample {
            ms,
            modules: modules.collect(),
            ok: product.is_right(&a),
        })
    }
}

/// A result. The matrix has whole numbers, so all sums are exact.
enum Product {
    /// A times ones.
    Dense(Array2<f32>),
    /// A times A.
    Sparse(CsrMatrix<f32>),
}

impl Product {
    /// Whether it is right: each entry of a dense product, the sum of each row of a sparse one.
    fn is_right(&self, a: &CsrMatrix<f32>) -> bool {
        let ones = vec![1.0; a.cols()];
        let once = times(a, &ones);
        match self {
            Self::Dense(y) => {
                let is_right = |(row, &wanted): (ArrayView1<'_, f32>, &f64)| {
                    row.iter().all(|&y| f64::from(y) == wanted)
                };
                y.dim() == (a.rows(), FEATURES) && y.rows().into_iter().zip(&once).all(is_right)
            }
            Self::Sparse(c) => times(c, &ones) == times(a, &once),
        }
    }
}

fn spmm(device: &Device, a: &CsrMatrix<f32>) -> Result<Array2<f32>, Error> {
    let x = Array2::<f32>::ones((a.cols(), FEATURES));
    Ok(Spmm::plan(device, a.view(), SpmmOptions::default())?.multiply(x.view())?)
}

fn square(device: &Device, a: &CsrMatrix<f32>) -> Result<CsrMatrix<f32>, Error> {
    let a = DeviceCsr::upload(device, a.view())?;
    Ok(spgemm::multiply(&a, &a, SpgemmOptions::default())?
        .c
        .download()?)
}

fn square_in_phases(device: &Device, a: &CsrMatrix<f32>) -> Result<CsrMatrix<f32>, Error> {
    let a = DeviceCsr::upload(device, a.view())?;
    let spgemm = Spgemm::symbolic(a.pattern(), a.pattern(), SpgemmOptions::default())?;
    Ok(spgemm.numeric(a.values(), a.values())?.download()?)
}

/// A matrix times a vector: the product of the row sums shows whether a matrix is right without another SpGEMM.
fn times(a: &CsrMatrix<f32>, x: &[f64]) -> Vec<f64> {
    let rows = a.outer_iterator();
    rows.map(|row| {
        row.iter()
            .map(|(col, &value)| f64::from(value) * x[col])
            .sum()
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_with_one_wrong_entry_is_wrong() {
        let (name, bytes) = MATRIX;
        let a = parse_matrix_market::<f32>(bytes, name).unwrap();
        let sums = times(&a, &vec![1.0; a.cols()]);
        let mut y = Array2::from_shape_fn((a.rows(), FEATURES), |(i, _)| sums[i] as f32);
        assert!(Product::Dense(y.clone()).is_right(&a));
        y[(a.rows() - 1, 3)] += 1.0;
        assert!(!Product::Dense(y).is_right(&a));
        assert!(!Product::Sparse(a.clone()).is_right(&a));
    }
}
