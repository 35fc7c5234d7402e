//! How the command fails, and its exit codes.

use crate::terminal;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use warprow::Error;
use warprow::device::DeviceError;

/// The result of a step of the command.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why the command ends early.
#[derive(Debug)]
pub enum Failure {
    /// The library's error: of a file, an operand, or a device.
    Library(Error),
    /// The user wants what cannot be.
    Input(String),
    /// The device that is wanted is not there.
    #[cfg(feature = "bench")]
    NoDevice(String),
    /// The standard output does not take what is written.
    Stdout(io::Error),
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Library(error.into())
    }
}

impl Failure {
    /// Bad input, in words.
    pub fn input(words: impl fmt::Display) -> Self {
        Self::Input(words.to_string())
    }

    /// The error of the benches, which may be the library's.
    #[cfg(feature = "bench")]
    pub fn other(error: anyhow::Error) -> Self {
        match error.downcast::<Error>() {
            Ok(error) => Self::Library(error),
            Err(error) => Self::Input(format!("{error:#}")),
        }
    }

    /// The exit code.
    fn code(&self) -> u8 {
        match self {
            // The name of a device and the file of a profile are input, and the absence of a device is not.
            Self::Library(Error::Device(DeviceError::Selector(_) | DeviceError::Profile(_))) => 2,
            Self::Library(Error::Device(_)) => 3,
            #[cfg(feature = "bench")]
            Self::NoDevice(_) => 3,
            _ => 2,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(error) => error.fmt(f),
            Self::Input(words) => f.write_str(words),
            #[cfg(feature = "bench")]
            Self::NoDevice(words) => f.write_str(words),
            Self::Stdout(error) => write!(f, "cannot write to the standard output: {error}"),
        }
    }
}

/// Prints help on the standard output, or what is wrong with the command line on the standard error, as wide as the
/// terminal; ends with 0 or 2.
pub fn usage(usage: &clap::Error) -> ExitCode {
    let text = terminal::wrapped_help(&usage.render().ansi().to_string(), terminal::width());
    // A reader who has left has seen enough.
    let _ = match usage.use_stderr() {
        true => anstream::stderr().write_all(text.as_bytes()),
        false => anstream::stdout().write_all(text.as_bytes()),
    };
    ExitCode::from(if usage.use_stderr() { 2 } else { 0 })
}

/// How the command ends: with 0 if the result is right, with 1 if it is not, else with the code of the failure, after
/// its message on the standard error.
pub fn exit_code(right: Result<bool>) -> ExitCode {
    let failure = match right {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => return ExitCode::from(1),
        Err(failure) => failure,
    };
    if let Failure::Stdout(error) = &failure
        && error.kind() == ErrorKind::BrokenPipe
    {
        // Its reader has left, as `head` does when it has enough.
        return ExitCode::SUCCESS;
    }
    // If this fails too, the exit code still tells.
    let _ = writeln!(io::stderr(), "error: {failure}");
    ExitCode::from(failure.code())
}
