//! The error that unites those of all modules.

use crate::convert::ConvertError;
use crate::device::{CudaUnavailable, DeviceError, ParseSelectorError};
#[cfg(feature = "files")]
use crate::files::FileError;
#[cfg(feature = "gcn")]
use crate::gcn::GcnError;
#[cfg(all(feature = "gcn", feature = "npy", feature = "safetensors"))]
use crate::gcn::LayersError;
#[cfg(feature = "gemm")]
use crate::gemm::GemmError;
#[cfg(feature = "generate")]
use crate::generate::GenerateError;
#[cfg(feature = "matrix-market")]
use crate::matrix_market::ReadError;
use crate::operand::OperandError;
#[cfg(any(
    feature = "edge-list",
    feature = "matrix-market",
    feature = "npy",
    feature = "safetensors"
))]
use crate::output::WriteError;
#[cfg(feature = "spmm")]
use crate::spmm::SpmmError;

/// Any error of this crate, for programs that use several of its modules.
///
/// Each module returns its own error, and all of them convert to this one. A failure has one variant here, whichever
/// operation met it: a device without memory is [`Error::Device`], a matrix of another shape [`Error::Operand`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A device is not there, has no memory left, refuses a launch, or a kernel failed on it.
    #[error(transparent)]
    Device(#[from] DeviceError),

    /// An operand does not fit its operation.
    #[error(transparent)]
    Operand(OperandError),

    /// A product of a sparse and a dense matrix cannot be computed as asked.
    #[cfg(feature = "spmm")]
    #[error(transparent)]
    Spmm(SpmmError),

    /// A product of dense matrices cannot be computed as asked.
    #[cfg(feature = "gemm")]
    #[error(transparent)]
    Gemm(GemmError),

    /// The parts of a network do not fit each other.
    #[cfg(feature = "gcn")]
    #[error(transparent)]
    Gcn(GcnError),

    /// The weights of a network cannot be read.
    #[cfg(all(feature = "gcn", feature = "npy", feature = "safetensors"))]
    #[error(transparent)]
    Layers(#[from] LayersError),

    /// A Matrix Market file cannot be read.
    #[cfg(feature = "matrix-market")]
    #[error(transparent)]
    Read(#[from] ReadError),

    /// A file cannot be written.
    #[cfg(any(
        feature = "edge-list",
        feature = "matrix-market",
        feature = "npy",
        feature = "safetensors"
    ))]
    #[error(transparent)]
    Write(#[from] WriteError),

    /// A matrix cannot be converted.
    #[error(transparent)]
    Convert(#[from] ConvertError),

    /// A file of another format cannot be read, or its name is that of no format.
    #[cfg(feature = "files")]
    #[error(transparent)]
    File(FileError),

    /// A matrix cannot be generated.
    #[cfg(feature = "generate")]
    #[error(transparent)]
    Generate(#[from] GenerateError),
}

impl From<OperandError> for Error {
    fn from(error: OperandError) -> Self {
        match error {
            OperandError::Device(error) => error.into(),
            error => Self::Operand(error),
        }
    }
}

#[cfg(feature = "spmm")]
impl From<SpmmError> for Error {
    fn from(error: SpmmError) -> Self {
        match error {
            SpmmError::Operand(error) => error.into(),
            error => Self::Spmm(error),
        }
    }
}

#[cfg(feature = "gemm")]
impl From<GemmError> for Error {
    fn from(error: GemmError) -> Self {
        match error {
            GemmError::Operand(error) => error.into(),
            error => Self::Gemm(error),
        }
    }
}

#[cfg(feature = "gcn")]
impl From<GcnError> for Error {
    fn from(error: GcnError) -> Self {
        match error {
            GcnError::Operand(error) => error.into(),
            GcnError::Spmm(error) => error.into(),
            GcnError::Gemm(error) => error.into(),
            error => Self::Gcn(error),
        }
    }
}

#[cfg(feature = "files")]
impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        match error {
            FileError::MatrixMarket(error) => error.into(),
            FileError::Write(error) => error.into(),
            error => Self::File(error),
        }
    }
}

impl From<ParseSelectorError> for Error {
    fn from(error: ParseSelectorError) -> Self {
        DeviceError::from(error).into()
    }
}

impl From<CudaUnavailable> for Error {
    fn from(error: CudaUnavailable) -> Self {
        DeviceError::from(error).into()
    }
}

#[cfg(all(test, feature = "gcn"))]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_a_lower_layer_keeps_its_own_variant() {
        let failed = || DeviceError::HostOutOfMemory { wanted: 1 };
        let too_large = || OperandError::TooLarge {
            what: "a size",
            found: 2,
            most: 1,
        };
        let by_device: [Error; 4] = [
            failed().into(),
            OperandError::from(failed()).into(),
            SpmmError::from(failed()).into(),
            GcnError::from(GemmError::from(failed())).into(),
        ];
        assert!(
            by_device
                .iter()
                .all(|error| matches!(error, Error::Device(_)))
        );
        let by_operand: [Error; 3] = [
            too_large().into(),
            GemmError::from(too_large()).into(),
            GcnError::from(SpmmError::from(too_large())).into(),
        ];
        assert!(
            by_operand
                .iter()
                .all(|error| matches!(error, Error::Operand(_)))
        );
    }
}
