//! Why a product has no result: what is reported as skipped, and what ends the run.

use crate::harness::cusparse;
use warprow::Error;
use warprow::device::DeviceError;
use warprow::operand::OperandError;

/// Why a line has no result.
pub enum Failure {
    /// Memory, or a limit of the implementation.
    Skipped(String),
    /// Anything else ends the run.
    Fatal(anyhow::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Device(
                DeviceError::OutOfMemory { .. } | DeviceError::HostOutOfMemory { .. },
            )
            | Error::Operand(OperandError::TooLarge { .. }) => Self::Skipped(error.to_string()),
            error => Self::Fatal(error.into()),
        }
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        Error::from(error).into()
    }
}

impl From<OperandError> for Failure {
    fn from(error: OperandError) -> Self {
        Error::from(error).into()
    }
}

impl From<cusparse::Error> for Failure {
    fn from(error: cusparse::Error) -> Self {
        match error {
            cusparse::Error::Device(error) => error.into(),
            error => Self::Skipped(error.to_string()),
        }
    }
}
