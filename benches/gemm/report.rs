//! The results: a line on the terminal and a JSON object in the file for each.

use crate::harness::measure::Timing;
use serde::Serialize;
use warprow::reference::Verification;

/// A product, or a LogSoftmax.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Case {
    /// `gemm` or `log_softmax`.
    pub bench: &'static str,
    /// Rows of X and Y.
    pub rows: u32,
    /// Columns of X.
    pub k: usize,
    /// Columns of Y.
    pub features: usize,
    /// The element type.
    #[serde(rename = "type")]
    pub element: &'static str,
    /// Bytes of all operands, each once.
    pub bytes: u128,
}

/// The result of one implementation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Line {
    /// `warprow`, `cublas_default`, `cublas_pedantic`, `floor`, a kernel's name, or that of one of its entry points.
    #[serde(rename = "impl")]
    pub implementation: String,
    /// The kernel that ran, if it is a kernel of this crate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<&'static str>,
    /// The instance that ran, by the name of its entry point: `scripts/instances-by-evidence` reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<&'static str>,
    /// The version of cuBLAS, if cuBLAS ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cublas: Option<String>,
    /// Why there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// The median time of one launch in milliseconds; null on the emulator, as are the next four fields.
    pub ms: Option<f64>,
    /// The least time of the samples.
    pub ms_min: Option<f64>,
    /// The greatest time of the samples.
    pub ms_max: Option<f64>,
    /// Launches in a sample.
    pub launches: Option<u32>,
    /// The time of the floor divided by this time.
    pub of_floor: Option<f64>,
    /// Rows of Y that were compared with the reference.
    pub rows_verified: Option<usize>,
    /// Their greatest error relative to the sum of the terms' magnitudes; null if it is not finite.
    pub max_rel_err: Option<f64>,
    /// Whether each entry is within the error that rounding explains.
    pub ok: Option<bool>,
}

impl Line {
    /// The line with these times.
    #[must_use]
    pub fn timed(mut self, timing: Option<Timing>, floor: Option<f64>) -> Self {
        if let Some(timing) = timing {
            self.ms = Some(timing.median);
            self.ms_min = Some(timing.min);
            self.ms_max = Some(timing.max);
            self.launches = Some(timing.launches);
            self.of_floor = floor.map(|floor| floor / timing.median);
        }
        self
    }

    /// The line with the result of the comparison.
    #[must_use]
    pub fn verified(mut self, rows: usize, verification: &Verification) -> Self {
        self.rows_verified = Some(rows);
        self.max_rel_err = Some(verification.max_relative_error);
        self.ok = Some(verification.ok());
        self
    }
}

/// A line of the file.
#[derive(Debug, Serialize)]
pub struct Object<'a> {
    /// The product.
    #[serde(flatten)]
    pub case: &'a Case,
    /// Its result.
    #[serde(flatten)]
    pub line: &'a Line,
}

/// The line of the terminal.
pub fn text(case: &Case, line: &Line) -> String {
    let name = &line.implementation;
    let mut text = format!(
        "{} {:>8} x {:<4} to {:<4} {:<5} {name:<18}",
        case.bench, case.rows, case.k, case.features, case.element
    );
    if let Some(reason) = &line.skipped {
        return format!("{text} skipped: {reason}");
    }
    match (line.ms, line.of_floor) {
        (Some(ms), Some(part)) => text += &format!("{ms:>9.4} ms, {part:.2} of the floor"),
        (Some(ms), None) => text += &format!("{ms:>9.4} ms"),
        _ => text += "emulated: no timing",
    }
    if let (Some(ok), Some(error)) = (line.ok, line.max_rel_err) {
        let verdict = if ok { "ok" } else { "WRONG" };
        text += &format!(", {verdict}, error {error:.1e}");
    }
    text
}
