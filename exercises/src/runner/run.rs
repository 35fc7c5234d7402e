//! Runs compiled attempts, for a limited time.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use exercises::description::{Exercise, workspace};

use crate::compile;
use crate::files::Error;

/// How long an attempt may run. The emulator stops most endless kernels long before.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// What came of an attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It does not compile. The compiler's messages are printed.
    NotCompiled,
    /// The check found a fault and printed it.
    Rejected,
    /// The check passed.
    Passed,
}

/// Compiles and checks a file of an exercise on the emulator.
pub fn check(exercise: &Exercise, file: &Path) -> Result<Outcome, Error> {
    let Some(program) = compile::program(exercise, file)? else {
        return Ok(Outcome::NotCompiled);
    };
    // An old picture would be taken for that of this check.
    let _ = fs::remove_file(exercise.picture());
    let mut run = Command::new(&program);
    let child = run.current_dir(workspace()).spawn();
    match wait(child.map_err(|error| Error::program(&program, &error))?)? {
        Some(status) if status.success() => Ok(Outcome::Passed),
        Some(_) => Ok(Outcome::Rejected),
        None => {
            println!("The check has taken {TIME_LIMIT:?}: the kernel probably never ends.");
            Ok(Outcome::Rejected)
        }
    }
}

/// Waits for a program; `None` if it runs longer than the limit, which ends it.
fn wait(mut child: Child) -> Result<Option<ExitStatus>, Error> {
    let start = Instant::now();
    let failed = |error: std::io::Error| Error::Compiler(error.to_string());
    while start.elapsed() < TIME_LIMIT {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.kill().map_err(failed)?;
    child.wait().map_err(failed)?;
    Ok(None)
}
