//! The exit codes of the program, as `warprow` has them.

use warprow::Error;
use warprow::device::DeviceError;
use warprow::gcn::GcnError;
use warprow::operand::OperandError;
use warprow::spmm::SpmmError;

/// The result is wrong.
pub const WRONG: u8 = 1;

/// Bad input, or a file that cannot be read or written.
pub const BAD_INPUT: u8 = 2;

/// The device does not exist, or it has failed.
const NO_DEVICE: u8 = 3;

/// The exit code of a run that ends with this error.
pub fn of(error: anyhow::Error) -> u8 {
    let library = error
        .downcast::<Error>()
        .or_else(|error| error.downcast::<DeviceError>().map(Error::from))
        .or_else(|error| error.downcast::<OperandError>().map(Error::from))
        .or_else(|error| error.downcast::<SpmmError>().map(Error::from))
        .or_else(|error| error.downcast::<GcnError>().map(Error::from));
    match library {
        // The name of a device and the file of a profile are input.
        Ok(Error::Device(DeviceError::Selector(_) | DeviceError::Profile(_))) => BAD_INPUT,
        Ok(Error::Device(_)) => NO_DEVICE,
        _ => BAD_INPUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;
    use warprow::device::Selector;

    #[test]
    fn devices_that_fail_have_another_code_than_bad_input() {
        let failed = || DeviceError::HostOutOfMemory { wanted: 1 };
        for error in [
            anyhow!(failed()),
            anyhow!(failed()).context("while planning"),
            anyhow!(Error::from(failed())),
            anyhow!(OperandError::from(failed())),
            anyhow!(SpmmError::from(failed())),
            anyhow!(GcnError::from(failed())),
        ] {
            assert_eq!(of(error), 3);
        }
        let name = "gpu".parse::<Selector>().unwrap_err();
        for error in [anyhow!("words"), anyhow!(DeviceError::from(name))] {
            assert_eq!(of(error), 2);
        }
    }
}
