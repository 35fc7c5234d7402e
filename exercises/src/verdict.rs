//! What is wrong with an attempt, as text.

use std::fmt;
use std::fs;

use simt::{Fault, FaultKind, Schedule, SourceLocation};

use crate::bounds::Measured;

/// What is wrong with an attempt.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The emulator stopped the kernel.
    #[error("{0}")]
    Fault(Fault),
    /// The kernel has not written an element of its output.
    #[error("no thread has written {buffer}[{index}] of {length}")]
    Unwritten {
        /// The name of the buffer.
        buffer: &'static str,
        /// The first such element.
        index: usize,
        /// The number of elements.
        length: usize,
    },
    /// An element of the output is wrong.
    #[error(
        "{buffer}[{index}] is {found}, wanted is {wanted} ({count} of {length} elements are wrong)"
    )]
    Wrong {
        /// The name of the buffer.
        buffer: &'static str,
        /// The first wrong element.
        index: usize,
        /// Its value.
        found: String,
        /// The value that it should have.
        wanted: String,
        /// The number of wrong elements.
        count: usize,
        /// The number of elements.
        length: usize,
    },
    /// A GPU does not run the kernel.
    #[error("{0}")]
    Device(String),
    /// The result is right, but a counter is beyond its bound.
    #[error("the result is right, but {0}")]
    Bound(Measured),
}

impl Failure {
    /// The line of the kernel that the failure names.
    #[must_use]
    pub fn location(&self) -> Option<(&str, u32)> {
        match self {
            Self::Fault(fault) => Some((&fault.location.file, fault.location.line)),
            Self::Bound(measured) => measured.line.as_ref().map(|(file, line)| (&**file, *line)),
            Self::Unwritten { .. } | Self::Wrong { .. } | Self::Device(_) => None,
        }
    }
}

/// Why an attempt does not pass.
#[derive(Clone, Debug)]
pub struct Rejection {
    /// The size that the case was run with.
    pub size: u32,
    /// The order in which blocks and threads ran.
    pub schedule: Schedule,
    /// What went wrong.
    pub failure: Failure,
    /// The result that is wanted, as a formula.
    pub formula: String,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size, failure, .. } = self;
        match self.schedule {
            Schedule::InOrder => writeln!(f, "With size {size}:")?,
            schedule => writeln!(f, "With size {size}, blocks and threads {schedule}:")?,
        }
        writeln!(f, "  {failure}")?;
        if let Failure::Fault(fault) = failure {
            write_lane(f, fault)?;
        }
        if let Some((file, line)) = failure.location() {
            write_source(f, file, line)?;
        }
        if let Some(other) = other_location(failure) {
            write_source(f, &other.file, other.line)?;
        }
        write!(f, "Wanted: {}", self.formula)
    }
}

/// The warp and the lane of the faulting thread, if blocks have one dimension.
fn write_lane(f: &mut fmt::Formatter<'_>, fault: &Fault) -> fmt::Result {
    match fault.thread {
        [x, 0, 0] => writeln!(
            f,
            "  (thread {x} of the block is lane {} of warp {})",
            x % 32,
            x / 32
        ),
        _ => Ok(()),
    }
}

/// The other line of a race.
fn other_location(failure: &Failure) -> Option<&SourceLocation> {
    match failure {
        Failure::Fault(fault) => match &*fault.kind {
            FaultKind::Race { other_location, .. } => other_location
                .as_ref()
                .filter(|other| other.line != fault.location.line),
            _ => None,
        },
        _ => None,
    }
}

/// Quotes a line of source, if the file can be read.
fn write_source(f: &mut fmt::Formatter<'_>, file: &str, line: u32) -> fmt::Result {
    let text = fs::read_to_string(file).unwrap_or_default();
    match text.lines().nth(line.saturating_sub(1) as usize) {
        Some(source) => writeln!(f, "  {line:>4} | {}", source.trim_end()),
        None => Ok(()),
    }
}
