//! Checks attempts on a GPU, beside the recorded times of our solutions.

use std::path::Path;
use std::process::Command;

use exercises::cuda::TIME;
use exercises::description::{Exercise, workspace};
use exercises::recorded::{self, Recorded};

use crate::files::{self, Error};
use crate::{compile, kernels};

/// The time that a run has printed.
struct Time {
    microseconds: f64,
    gpu: String,
}

/// Checks the learner's file and shows its time.
pub fn check(exercise: &Exercise) -> Result<bool, Error> {
    let Some(time) = run(exercise, &files::attempt(exercise)?)? else {
        return Ok(false);
    };
    let Some(time) = time else { return Ok(true) };
    println!(
        "  {:8.2} us  your kernels on {}",
        time.microseconds, time.gpu
    );
    let path = recorded::path();
    if path.exists() {
        let recorded = Recorded::read(&path).map_err(Error::Recorded)?;
        if let Some(ours) = recorded.microseconds.get(&exercise.name) {
            println!(
                "  {ours:8.2} us  our solution, recorded on {}",
                recorded.gpu
            );
        }
    }
    Ok(true)
}

/// Runs a file of an exercise on the GPU. `None` if it fails; then its message is printed. The inner `None` if the
/// exercise has no timed size.
fn run(exercise: &Exercise, file: &Path) -> Result<Option<Option<Time>>, Error> {
    let archive = kernels::of_attempt(file)?;
    let Some(program) = compile::program(exercise, file)? else {
        return Ok(None);
    };
    let ran = Command::new(&program)
        .current_dir(workspace())
        .arg(&archive)
        .output()
        .map_err(|error| Error::program(&program, &error))?;
    let text = String::from_utf8_lossy(&ran.stdout);
    if !ran.status.success() {
        print!("{text}");
        eprint!("{}", String::from_utf8_lossy(&ran.stderr));
        return Ok(None);
    }
    let time = text.lines().find_map(|line| {
        let (microseconds, gpu) = line.strip_prefix(TIME)?.split_once(' ')?;
        let microseconds = microseconds.parse().ok()?;
        Some(Time {
            microseconds,
            gpu: gpu.to_owned(),
        })
    });
    Ok(Some(time))
}
