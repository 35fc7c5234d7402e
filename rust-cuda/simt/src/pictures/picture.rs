//! The pictures of a report, by name.

use std::fmt;
use std::str::FromStr;

use super::{Sources, access_map, bank_map, chrome_trace, load_balance, source_view};
use crate::counters::{Hardware, LaunchReport, WarpTrace};

/// One of the pictures of a report. `Display` and `FromStr` use its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Picture {
    /// [`access_map`] of the first traced warp: `access`.
    Access,
    /// [`bank_map`] of the traced request with the most bank conflicts: `banks`.
    Banks,
    /// [`source_view`]: `source`.
    Source,
    /// [`load_balance`]: `balance`.
    Balance,
    /// [`chrome_trace`] of all traced warps, which is JSON and no SVG: `trace`.
    Trace,
}

/// A picture for which a report has no data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel `{kernel}`: the picture `{picture}` needs {wanted}, found none")]
pub struct NoPicture {
    /// The kernel of the report.
    pub kernel: String,
    /// The picture.
    pub picture: Picture,
    /// What the report lacks.
    pub wanted: &'static str,
}

/// A name that no picture has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("wanted a picture: {}, found `{found}`", Picture::ALL.map(Picture::name).join(", "))]
pub struct UnknownPicture {
    /// The name.
    pub found: String,
}

impl Picture {
    /// All pictures.
    pub const ALL: [Self; 5] = [
        Self::Access,
        Self::Banks,
        Self::Source,
        Self::Balance,
        Self::Trace,
    ];

    /// Its name in a command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Access => "access",
            Self::Banks => "banks",
            Self::Source => "source",
            Self::Balance => "balance",
            Self::Trace => "trace",
        }
    }

    /// Draws the picture of a report. `hardware` is the GPU of the model in [`load_balance`].
    ///
    /// # Errors
    ///
    /// A report without what the picture shows: no traced warp, no traced request to shared memory, no counted line, or
    /// no block.
    pub fn draw(
        self,
        report: &LaunchReport,
        sources: &Sources,
        hardware: &Hardware,
    ) -> Result<String, NoPicture> {
        let none = |wanted| NoPicture {
            kernel: report.kernel.clone(),
            picture: self,
            wanted,
        };
        let trace = || report.traces.first().ok_or_else(|| none("a traced warp"));
        match self {
            Self::Access => Ok(access_map(&report.kernel, trace()?, sources)),
            Self::Banks => {
                let worst = report
                    .traces
                    .iter()
                    .filter_map(WarpTrace::most_bank_conflicts)
                    .max_by_key(|request| request.shared_counters().bank_conflicts);
                worst
                    .and_then(|request| bank_map(&report.kernel, request, sources))
                    .ok_or_else(|| none("a traced request to shared memory"))
            }
            Self::Source if report.lines.is_empty() => Err(none("counted lines")),
            Self::Source => Ok(source_view(report, sources)),
            Self::Balance if report.blocks.is_empty() => Err(none("counted blocks")),
            Self::Balance => Ok(load_balance(report, hardware)),
            Self::Trace => trace().map(|_| chrome_trace(report)),
        }
    }
}

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Picture {
    type Err = UnknownPicture;

    fn from_str(name: &str) -> Result<Self, UnknownPicture> {
        let found = Self::ALL.into_iter().find(|picture| picture.name() == name);
        found.ok_or_else(|| UnknownPicture {
            found: name.to_owned(),
        })
    }
}
