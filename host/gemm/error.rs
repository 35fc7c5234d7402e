//! The errors of XW.

use crate::device::DeviceError;
use crate::operand::OperandError;

/// Why an XW cannot be planned or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GemmError {
    /// An operand does not fit, or the device failed.
    #[error(transparent)]
    Operand(#[from] OperandError),

    /// The kernel of the options cannot compute this product.
    #[error("kernel `{kernel}` cannot be taken: {reason}")]
    Kernel {
        /// The kernel's name.
        kernel: &'static str,
        /// What the kernel requires, and what was found.
        reason: String,
    },
}

impl From<DeviceError> for GemmError {
    fn from(error: DeviceError) -> Self {
        Self::Operand(error.into())
    }
}
