//! Which device a user asks for: `auto`, `cuda`, `cuda:1`, `emulator`.

use crate::quote::quote;
use std::ffi::OsStr;
use std::fmt;
use std::str::FromStr;

/// The environment variable that [`Device::open`](crate::device::Device::open) reads.
pub const DEVICE_VARIABLE: &str = "WARPROW_DEVICE";

/// A choice of device.
///
/// ```
/// use warprow::device::Selector;
///
/// assert_eq!("cuda:1".parse(), Ok(Selector::Cuda(Some(1))));
/// assert_eq!(Selector::Emulator.to_string(), "emulator");
/// assert!("gpu".parse::<Selector>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Selector {
    /// The first CUDA device if the driver has one that serves, else the emulator.
    #[default]
    Auto,
    /// The CUDA device with this ordinal, the first one if there is none. The driver numbers the devices, among those
    /// that `CUDA_VISIBLE_DEVICES` leaves.
    Cuda(Option<u32>),
    /// The emulator.
    Emulator,
}

/// A text that names no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown device {}: wanted `auto`, `cuda`, `cuda:N` with N the ordinal of a device (`cuda:1`), or `emulator`",
    quote(.found.as_bytes())
)]
#[non_exhaustive]
pub struct ParseSelectorError {
    /// The text.
    pub found: String,
}

impl Selector {
    /// What the environment variable [`DEVICE_VARIABLE`] asks for.
    ///
    /// # Errors
    ///
    /// As [`from_value`](Self::from_value).
    pub fn from_environment() -> Result<Self, ParseSelectorError> {
        Self::from_value(std::env::var_os(DEVICE_VARIABLE).as_deref())
    }

    /// What a value of the environment variable means; unset or empty is [`Selector::Auto`].
    ///
    /// # Errors
    ///
    /// The value names no device.
    pub fn from_value(value: Option<&OsStr>) -> Result<Self, ParseSelectorError> {
        match value {
            None => Ok(Self::Auto),
            Some(value) if value.is_empty() => Ok(Self::Auto),
            Some(value) => value.to_string_lossy().parse(),
        }
    }

    /// Whether it insists: the device that it names must be there.
    pub fn insists(self) -> bool {
        self != Self::Auto
    }
}

impl FromStr for Selector {
    type Err = ParseSelectorError;

    fn from_str(text: &str) -> Result<Self, ParseSelectorError> {
        let unknown = || ParseSelectorError {
            found: text.to_owned(),
        };
        match text {
            "auto" => Ok(Self::Auto),
            "cuda" => Ok(Self::Cuda(None)),
            "emulator" => Ok(Self::Emulator),
            _ => {
                let ordinal = text.strip_prefix("cuda:").ok_or_else(unknown)?;
                // `u32::from_str` takes a plus sign; `cuda:+1` is a slip.
                if !ordinal.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(unknown());
                }
                Ok(Self::Cuda(Some(ordinal.parse().map_err(|_| unknown())?)))
            }
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cuda(None) => f.write_str("cuda"),
            Self::Cuda(Some(ordinal)) => write!(f, "cuda:{ordinal}"),
            Self::Emulator => f.write_str("emulator"),
        }
    }
}
