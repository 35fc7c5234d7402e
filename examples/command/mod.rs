//! What the command lines of the examples share.

use anyhow::Result;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use warprow::device::Selector;
use warprow::matrix_market::{parse_matrix_market, read_matrix_market};
use warprow::{CsrMatrix, Device, Scalar};

/// The dependency graph of the packages of a Debian release (see data/README.md).
const DEFAULT_MATRIX: (&str, &[u8]) = (
    "data/debian-bookworm-depends.mtx.gz",
    include_bytes!("../../data/debian-bookworm-depends.mtx.gz"),
);

/// The matrix of a file, or else the default one, and its name.
pub fn matrix<T: Scalar>(path: Option<&Path>) -> Result<(String, CsrMatrix<T>)> {
    Ok(match path {
        Some(path) => (path.display().to_string(), read_matrix_market(path)?),
        None => {
            let (name, bytes) = DEFAULT_MATRIX;
            (name.to_owned(), parse_matrix_market(bytes, name)?)
        }
    })
}

/// The device that the user asks for. Prints which it is, and why it is no GPU.
pub fn open_device(selector: Option<Selector>, out: &mut impl Write) -> Result<Device> {
    let selector = match selector {
        Some(selector) => selector,
        None => Selector::from_environment()?,
    };
    let (device, no_gpu) = Device::select_with_reason(selector)?;
    writeln!(out, "device   {device}")?;
    if let Some(reason) = no_gpu {
        writeln!(out, "         no GPU: {reason}")?;
    }
    Ok(device)
}

/// How the program ends: with 0 if the result is right, else with 1, after an error with its message on the standard
/// error.
pub fn exit_code(right: Result<bool>) -> ExitCode {
    let error = match right {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => return ExitCode::FAILURE,
        Err(error) => error,
    };
    // Errors of files come wrapped in the library's types: what is bare comes from the standard output.
    let message = match error.downcast_ref::<io::Error>() {
        // Its reader has left, as `head` does when it has enough.
        Some(error) if error.kind() == ErrorKind::BrokenPipe => return ExitCode::FAILURE,
        Some(error) => format!("cannot write to the standard output: {error}"),
        None => format!("{error:#}"),
    };
    // If this fails too, the exit code still tells.
    let _ = writeln!(io::stderr(), "error: {message}");
    ExitCode::FAILURE
}
