//! How a product of a sparse and a dense matrix fails.

use crate::device::DeviceError;
use crate::operand::OperandError;

/// A product of a sparse and a dense matrix that cannot be planned or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpmmError {
    /// An operand does not fit, or the device failed.
    #[error(transparent)]
    Operand(#[from] OperandError),

    /// A kernel that was asked for by name cannot do what was asked of it.
    #[error("kernel `{kernel}` cannot be taken: {reason}")]
    Kernel {
        /// The kernel.
        kernel: &'static str,
        /// What was wanted of it, and what it can do.
        reason: String,
    },

    /// The plan takes no new values.
    #[error("the plan takes no new values: it was made without the option `updatable`")]
    NotUpdatable,
}

impl From<DeviceError> for SpmmError {
    fn from(error: DeviceError) -> Self {
        Self::Operand(error.into())
    }
}
