//! The results: a line on the terminal and a JSON object in the file for each rung and case.

use crate::harness::json_lines::JsonLines;
use crate::harness::measure::Timing;
use crate::ladder::rungs::Rung;
use serde::Serialize;
use warprow::Error;
use warprow::device::DeviceError;
use warprow::gemm::GemmError;
use warprow::operand::OperandError;
use warprow::spmm::SpmmError;

/// What is computed.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// Its name.
    pub case: String,
    /// Rows of the first factor.
    pub rows: usize,
    /// Columns of the first factor.
    pub cols: usize,
    /// Nonzeros of the first factor, if it is sparse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nnz: Option<usize>,
    /// Columns of the result, if it is dense.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<usize>,
    /// The element type.
    #[serde(rename = "type")]
    pub element: &'static str,
}

/// What a rung came to.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// It computed the case.
    Computed {
        /// The type whose precision the products have, if it is not the element type.
        #[serde(skip_serializing_if = "Option::is_none")]
        precision: Option<&'static str>,
        /// Milliseconds, the median; null on the emulator, like the next four.
        ms: Option<f64>,
        /// The least of the samples.
        ms_min: Option<f64>,
        /// The greatest of the samples.
        ms_max: Option<f64>,
        /// Samples.
        samples: Option<u32>,
        /// Launches in a sample.
        launches: Option<u32>,
        /// Rows of the result that were compared with the product in f64.
        rows_verified: usize,
        /// Their greatest error relative to the sum of the terms' magnitudes; null if it is not finite.
        max_rel_err: f64,
        /// Whether each entry is within the error that rounding explains.
        ok: bool,
    },
    /// It cannot compute the case.
    Skipped {
        /// Why.
        skipped: String,
    },
}

/// A comparison with the product in f64.
#[derive(Clone, Copy, Debug)]
pub struct Verified {
    /// Rows that were compared.
    pub rows: usize,
    /// Their greatest relative error.
    pub max_relative_error: f64,
    /// Whether rounding explains every error.
    pub ok: bool,
}

impl Outcome {
    /// A result with its time and its comparison.
    pub fn computed(timing: Option<Timing>, verified: Verified) -> Self {
        Self::Computed {
            precision: None,
            ms: timing.map(|timing| timing.median),
            ms_min: timing.map(|timing| timing.min),
            ms_max: timing.map(|timing| timing.max),
            samples: timing.map(|timing| timing.samples),
            launches: timing.map(|timing| timing.launches),
            rows_verified: verified.rows,
            max_rel_err: verified.max_relative_error,
            ok: verified.ok,
        }
    }

    /// The same, with the precision of the products if that is lower than the type's.
    #[must_use]
    pub fn with_precision(mut self, lower: Option<&'static str>) -> Self {
        if let Self::Computed { precision, .. } = &mut self {
            *precision = lower;
        }
        self
    }

    /// The result, or the reason why the rung cannot compute the case: memory, or a limit of the rung.
    ///
    /// # Errors
    ///
    /// Every other error, which ends the run.
    pub fn of(result: anyhow::Result<Self>) -> anyhow::Result<Self> {
        result.or_else(|error| {
            let error = unified(error)?;
            if is_limit(&error) {
                Ok(Self::Skipped {
                    skipped: error.to_string(),
                })
            } else {
                Err(error.into())
            }
        })
    }
}

/// The library's error, whichever of its modules returned it; any other error as it is.
fn unified(error: anyhow::Error) -> anyhow::Result<Error> {
    let error = error.downcast::<Error>();
    let error = error.or_else(|error| error.downcast::<SpmmError>().map(Error::from));
    let error = error.or_else(|error| error.downcast::<GemmError>().map(Error::from));
    let error = error.or_else(|error| error.downcast::<OperandError>().map(Error::from));
    error.or_else(|error| error.downcast::<DeviceError>().map(Error::from))
}

/// Whether a rung cannot compute the case, for want of memory or by a limit of its own.
fn is_limit(error: &Error) -> bool {
    matches!(
        error,
        Error::Device(
            DeviceError::OutOfMemory { .. }
                | DeviceError::HostOutOfMemory { .. }
                | DeviceError::BufferTooLarge { .. }
        ) | Error::Operand(OperandError::TooLarge { .. })
            | Error::Spmm(SpmmError::Kernel { .. })
            | Error::Gemm(GemmError::Kernel { .. })
    )
}

#[derive(Debug, Serialize)]
struct Object<'a> {
    bench: &'static str,
    #[serde(flatten)]
    rung: &'a Rung,
    #[serde(flatten)]
    case: &'a Case,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

/// The file of the results, and what is needed for the terminal.
#[derive(Debug)]
pub struct Report {
    results: JsonLines,
    /// The times of the current case, by rung.
    times: Vec<(&'static str, f64)>,
    all_right: bool,
}

impl Report {
    /// A report that writes to that file.
    pub fn to(results: JsonLines) -> Self {
        Self {
            results,
            times: Vec::new(),
            all_right: true,
        }
    }

    /// Begins a case: rungs are compared with their parents within a case.
    pub fn begin_case(&mut self) {
        self.times.clear();
    }

    /// Prints a result and adds it to the file.
    ///
    /// # Errors
    ///
    /// The operating system's.
    pub fn add(&mut self, rung: &Rung, case: &Case, outcome: &Outcome) -> anyhow::Result<()> {
        let speed_up = match (outcome, rung.parent) {
            (Outcome::Computed { ms: Some(ms), .. }, Some(parent)) => {
                let parent = self.times.iter().find(|(name, _)| *name == parent);
                parent.map(|(name, parent_ms)| (*name, parent_ms / ms))
            }
            _ => None,
        };
        println!("{}", text(rung, case, outcome, speed_up));
        match outcome {
            Outcome::Computed { ok: false, .. } => self.all_right = false,
            Outcome::Computed { ms: Some(ms), .. } => self.times.push((rung.name, *ms)),
            _ => (),
        }
        self.results
            .write(&Object {
                bench: "ladder",
                rung,
                case,
                outcome,
            })
            .map(drop)
    }

    /// Whether no result was wrong.
    pub const fn all_right(&self) -> bool {
        self.all_right
    }
}

/// The line of the terminal.
fn text(rung: &Rung, case: &Case, outcome: &Outcome, speed_up: Option<(&str, f64)>) -> String {
    let mut text = format!("{:<26} {} {:<20}", case.case, case.element, rung.name);
    match outcome {
        Outcome::Skipped { skipped } => text += &format!(" skipped: {skipped}"),
        Outcome::Computed {
            ms,
            ms_min,
            ms_max,
            max_rel_err,
            ok,
            ..
        } => {
            text += &match (ms, ms_min, ms_max) {
                (Some(ms), Some(min), Some(max)) => format!("{ms:>10.4} ms ({min:.4} to {max:.4})"),
                _ => " emulated: no timing".to_owned(),
            };
            if let Some((parent, ratio)) = speed_up {
                text += &format!(", {ratio:.2} times as fast as {parent}");
            }
            let verdict = if *ok { "ok" } else { "WRONG" };
            text += &format!(", {verdict}, error {max_rel_err:.1e}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::json_lines::Environment;
    use crate::ladder::rungs::Family;
    use warprow::Device;

    const ROOT: Rung = Rung {
        family: Family::Spmm,
        name: "root",
        parent: None,
        idea: "an idea",
    };

    fn case() -> Case {
        Case {
            case: "tiny".to_owned(),
            rows: 3,
            cols: 3,
            nnz: Some(4),
            features: Some(2),
            element: "f32",
        }
    }

    fn outcome(ms: f64, ok: bool) -> Outcome {
        let timing = Timing {
            median: ms,
            min: ms,
            max: ms,
            samples: 1,
            launches: 1,
        };
        let verified = Verified {
            rows: 3,
            max_relative_error: 1e-7,
            ok,
        };
        Outcome::computed(Some(timing), verified)
    }

    fn report() -> Report {
        let device = Device::emulator(Default::default());
        Report::to(JsonLines::to(None, Environment::of(&device)))
    }

    #[test]
    fn a_rung_is_compared_with_its_parent_of_the_same_case() {
        let child = Rung {
            name: "child",
            parent: Some("root"),
            ..ROOT
        };
        let text = text(&child, &case(), &outcome(2.0, true), Some(("root", 1.5)));
        assert!(text.contains("2.0000 ms (2.0000 to 2.0000), 1.50 times as fast as root, ok"));
        let mut report = report();
        report.add(&ROOT, &case(), &outcome(3.0, true)).unwrap();
        assert_eq!(report.times, [("root", 3.0)]);
        report.begin_case();
        assert!(report.times.is_empty() && report.all_right());
    }

    #[test]
    fn a_wrong_result_is_remembered_and_is_no_time_to_compare_with() {
        let mut report = report();
        report.add(&ROOT, &case(), &outcome(3.0, false)).unwrap();
        assert!(report.times.is_empty() && !report.all_right());
    }

    #[test]
    fn a_limit_of_a_rung_is_a_result_and_another_error_ends_the_run() {
        let limit = OperandError::TooLarge {
            what: "a row",
            found: 3,
            most: 2,
        };
        let outcome = Outcome::of(Err(limit.into())).unwrap();
        assert!(matches!(outcome, Outcome::Skipped { skipped } if skipped.contains("a row")));
        assert!(Outcome::of(Err(anyhow::anyhow!("no driver"))).is_err());
    }
}
