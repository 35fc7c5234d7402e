//! Results: what one is, and the file with a JSON object for each.

use crate::measure::Timing;
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use warprow::device::Device;

/// A product to compute.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// The graph.
    pub graph: &'static str,
    /// The distribution of its nonzeros.
    pub kind: &'static str,
    /// Rows of A and Y.
    pub rows: usize,
    /// Columns of A, rows of X.
    pub cols: usize,
    /// Nonzeros of A.
    pub nnz: usize,
    /// Columns of X and Y.
    pub features: u32,
    /// The element type.
    #[serde(rename = "type")]
    pub element: &'static str,
}

impl Case {
    /// Multiplications and additions of the product.
    pub fn operations(&self) -> f64 {
        2.0 * self.nnz as f64 * f64::from(self.features)
    }
}

/// Who computes a product.
#[derive(Clone, Debug, Serialize)]
pub struct Implementation {
    /// `warprow`, which is what the plan picks, a kernel's name, or an algorithm of cuSPARSE.
    #[serde(rename = "impl")]
    pub name: &'static str,
    /// The kernel that ran, if it is one of this crate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<&'static str>,
    /// The version of cuSPARSE, if that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cusparse: Option<String>,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// A product that was computed.
    Computed(Computed),
    /// One that was not.
    Skipped {
        /// Why.
        skipped: String,
    },
}

/// A product that was computed.
#[derive(Clone, Debug, Serialize)]
pub struct Computed {
    /// Milliseconds of one launch, the median; null on the emulator, like the following.
    pub ms: Option<f64>,
    /// The least of the samples.
    pub ms_min: Option<f64>,
    /// The most of the samples.
    pub ms_max: Option<f64>,
    /// Launches in a sample.
    pub launches: Option<u32>,
    /// Milliseconds of the preparation, by the host's clock: of a plan with the upload of A, of cuSPARSE without.
    pub plan_ms: Option<f64>,
    /// Rows of Y that were compared with the product in f64.
    pub rows_verified: usize,
    /// Their greatest error relative to `|A||X|`; null if it is not finite.
    pub max_rel_err: f64,
    /// Whether each entry is within the error that rounding explains.
    pub ok: bool,
}

impl Computed {
    /// The result of a product that took that time and passed or failed the verification.
    pub fn new(
        timing: Option<Timing>,
        plan_ms: f64,
        rows_verified: usize,
        verification: &warprow::reference::Verification,
    ) -> Self {
        Self {
            ms: timing.map(|timing| timing.median),
            ms_min: timing.map(|timing| timing.min),
            ms_max: timing.map(|timing| timing.max),
            launches: timing.map(|timing| timing.launches),
            plan_ms: timing.map(|_| plan_ms),
            rows_verified,
            max_rel_err: verification.max_relative_error,
            ok: verification.ok(),
        }
    }
}

/// A line of the table and of the file.
#[derive(Clone, Debug)]
pub struct Line {
    /// Who computed.
    pub implementation: Implementation,
    /// What came of it.
    pub outcome: Outcome,
}

impl Line {
    /// Whether there is no wrong result in it.
    pub fn is_right(&self) -> bool {
        match &self.outcome {
            Outcome::Computed(computed) => computed.ok,
            Outcome::Skipped { .. } => true,
        }
    }
}

/// Where and when the results are from.
#[derive(Clone, Debug, Serialize)]
pub struct Environment {
    /// The device's name.
    device: String,
    /// The newest CUDA version that the driver supports; null on the emulator.
    driver: Option<String>,
    /// The day, in UTC.
    date: String,
}

impl Environment {
    /// Of now, on that device.
    pub fn of(device: &Device) -> Self {
        let driver = device.properties().driver;
        Self {
            device: device.name().to_owned(),
            driver: driver.map(|version| format!("CUDA {version}")),
            date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        }
    }
}

/// The file of the results. Each is written at once, so that a run that is cut off leaves what it had.
#[derive(Debug)]
pub struct Report {
    file: Option<File>,
    environment: Environment,
}

impl Report {
    /// Creates the file, or empties it; none for no path.
    ///
    /// # Errors
    ///
    /// The operating system's.
    pub fn create(path: Option<&Path>, environment: Environment) -> std::io::Result<Self> {
        Ok(Self {
            file: path.map(File::create).transpose()?,
            environment,
        })
    }

    /// Adds a line.
    ///
    /// # Errors
    ///
    /// The operating system's.
    pub fn write(&mut self, case: &Case, line: &Line) -> std::io::Result<()> {
        #[derive(Serialize)]
        struct Object<'a> {
            bench: &'static str,
            #[serde(flatten)]
            case: &'a Case,
            #[serde(flatten)]
            implementation: &'a Implementation,
            #[serde(flatten)]
            outcome: &'a Outcome,
            #[serde(flatten)]
            environment: &'a Environment,
        }
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let object = Object {
            bench: "spmm",
            case,
            implementation: &line.implementation,
            outcome: &line.outcome,
            environment: &self.environment,
        };
        let mut text = serde_json::to_string(&object)?;
        text.push('\n');
        file.write_all(text.as_bytes())
    }
}
