//! The operations, each from the open device to a result on the host.

use crate::first_use::sample::{ModuleTime, Sample};
use std::time::Instant;
use warprow::device::Device;
use warprow::matrix_market::parse_matrix_market;
use warprow::{CsrMatrix, DeviceCsr, Error, Spgemm, SpgemmOptions, Spmm, SpmmOptions, spgemm};

/// The dependency graph of the packages of a Debian release (see data/README.md).
const MATRIX: (&str, &[u8]) = (
    "debian-bookworm-depends.mtx.gz",
    include_bytes!("../../data/debian-bookworm-depends.mtx.gz"),
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
        let ones = vec![1.0; a.cols()];
        let once = times(&a, &ones);
        let start = Instant::now();
        let (sums, wanted) = match self {
            Self::Spmm => (spmm(device, &a)?, once),
            Self::Spgemm => {
                let c = square(device, &a)?;
                (times(&c, &ones), times(&a, &once))
            }
            Self::SpgemmPhases => {
                let c = square_in_phases(device, &a)?;
                (times(&c, &ones), times(&a, &once))
            }
        };
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let modules = device.module_loads().into_iter().map(|load| ModuleTime {
            module: load.module,
            ms: load.time.as_secs_f64() * 1e3,
        });
        Ok(Sample {
            ms,
            modules: modules.collect(),
            ok: are_near(&sums, &wanted),
        })
    }
}

/// The sums of the rows of A X by one of X's columns, all of which are ones.
fn spmm(device: &Device, a: &CsrMatrix<f32>) -> Result<Vec<f64>, Error> {
    let x = ndarray::Array2::<f32>::ones((a.cols(), FEATURES));
    let y = Spmm::plan(device, a.view(), SpmmOptions::default())?.multiply(x.view())?;
    Ok(y.column(FEATURES - 1).iter().map(|&y| y.into()).collect())
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

/// Whether all numbers are as near as sums of f32 are.
fn are_near(found: &[f64], wanted: &[f64]) -> bool {
    let is_near =
        |(found, wanted): (&f64, &f64)| (found - wanted).abs() <= 1e-4 * wanted.abs().max(1.0);
    found.len() == wanted.len() && found.iter().zip(wanted).all(is_near)
}
