//! How a product of dense matrices fails.

use crate::device::DeviceError;
use crate::operand::OperandError;

/// A product of dense matrices that cannot be planned or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GemmError {
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
}

impl From<DeviceError> for GemmError {
    fn from(error: DeviceError) -> Self {
        Self::Operand(error.into())
    }
}
