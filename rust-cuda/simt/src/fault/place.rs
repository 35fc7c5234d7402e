//! Where things happen: lines of a kernel's source, and what threads do there.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;

/// A line of a kernel's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The path of the file, as it was passed to the compiler.
    pub file: Cow<'static, str>,
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
}

impl From<&'static Location<'static>> for SourceLocation {
    fn from(location: &'static Location<'static>) -> Self {
        Self {
            file: Cow::Borrowed(location.file()),
            line: location.line(),
            column: location.column(),
        }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The state of a thread that another thread waits for in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThreadState {
    /// It has returned from the kernel.
    Returned,
    /// It waits at the block's barrier.
    AtBarrier(SourceLocation),
    /// It waits at a warp operation.
    AtWarpOperation {
        /// The operation.
        operation: Cow<'static, str>,
        /// The mask that it passed.
        mask: u32,
        /// Its line.
        location: SourceLocation,
    },
    /// It is running.
    Running,
}

impl fmt::Display for ThreadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Returned => f.write_str("has returned from the kernel"),
            Self::AtBarrier(location) => write!(f, "waits at the block's barrier at {location}"),
            Self::AtWarpOperation {
                operation,
                mask,
                location,
            } => write!(
                f,
                "waits at {operation} with mask {mask:#010x} at {location}"
            ),
            Self::Running => f.write_str("is running and does not arrive"),
        }
    }
}

/// Prints an index of a block or a thread.
pub(crate) struct Index(pub [u32; 3]);

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "({x}, {y}, {z})")
    }
}
