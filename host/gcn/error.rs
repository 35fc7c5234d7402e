//! How a network fails.

use crate::device::DeviceError;
use crate::gemm::GemmError;
use crate::operand::OperandError;
use crate::spmm::SpmmError;

/// A network that cannot be planned or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GcnError {
    /// The parts of the network do not fit each other.
    #[error("no network: {reason}")]
    Network {
        /// What does not fit.
        reason: String,
    },

    /// An operand does not fit, or the device failed.
    #[error(transparent)]
    Operand(#[from] OperandError),

    /// A product with the adjacency matrix cannot be computed as asked.
    #[error(transparent)]
    Spmm(SpmmError),

    /// A product with a layer's weights cannot be computed as asked.
    #[error(transparent)]
    Gemm(GemmError),
}

impl From<DeviceError> for GcnError {
    fn from(error: DeviceError) -> Self {
        Self::Operand(error.into())
    }
}

impl From<SpmmError> for GcnError {
    fn from(error: SpmmError) -> Self {
        match error {
            SpmmError::Operand(error) => Self::Operand(error),
            error => Self::Spmm(error),
        }
    }
}

impl From<GemmError> for GcnError {
    fn from(error: GemmError) -> Self {
        match error {
            GemmError::Operand(error) => Self::Operand(error),
            error => Self::Gemm(error),
        }
    }
}
