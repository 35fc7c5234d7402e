//! How a bench ends.

use std::process::ExitCode;

/// Success if all results were `Ok(true)`, right; else says on the standard error that some `what` are wrong, or what
/// went wrong.
pub fn exit_code(all_right: anyhow::Result<bool>, what: &str) -> ExitCode {
    match all_right {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => eprintln!("some {what} are wrong"),
        Err(error) => eprintln!("error: {error:#}"),
    }
    ExitCode::FAILURE
}
