//! The commands of the runner. Each returns whether the learner's file passes, or true.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, SystemTime};
use std::{fs, thread};

use exercises::description::{Description, Exercise, shown};
use exercises::list::EXERCISES;

use crate::Device;
use crate::files::{self, Error};
use crate::progress::Progress;
use crate::run::{self, Outcome};

/// How often `watch` looks at the file.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Shows the progress and the next exercise.
pub fn show() -> Result<bool, Error> {
    let progress = Progress::load()?;
    println!(
        "{} of {} exercises passed",
        progress.passed.len(),
        EXERCISES.len()
    );
    match progress.next() {
        Some(name) => announce(&Exercise::open(name)?)?,
        None => println!("You have solved all exercises."),
    }
    Ok(true)
}

/// Says how to work on an exercise.
fn announce(exercise: &Exercise) -> Result<(), Error> {
    let (name, title) = (&exercise.name, &exercise.description.title);
    let path = files::attempt(exercise)?;
    println!("\nThe next exercise is {name}: {title}");
    println!("  the book        chapter {}", exercise.description.chapter);
    println!("  read and edit   {}", shown(&path));
    println!("  check it        cargo run -p exercises -- check");
    println!("  get a hint      cargo run -p exercises -- hint {name}");
    println!("  see all         cargo run -p exercises -- list");
    Ok(())
}

/// Lists all exercises.
pub fn list() -> Result<bool, Error> {
    let progress = Progress::load()?;
    let mut lines = String::new();
    for name in EXERCISES {
        let Description { title, chapter, .. } = Exercise::open(name)?.description;
        let mark = if progress.passed.contains(*name) {
            "passed"
        } else if progress.next() == Some(name) {
            "next"
        } else {
            ""
        };
        lines += &format!("{mark:6}  {name:22}  chapter {chapter:2}  {title}\n");
    }
    print_to_reader(&lines)
}

/// Checks an exercise, by default the next one.
pub fn check(typed: Option<&str>, device: Device) -> Result<bool, Error> {
    let exercise = match (typed, Progress::load()?.next()) {
        (Some(typed), _) => files::find(typed)?,
        (None, Some(next)) => Exercise::open(next)?,
        (None, None) => {
            println!("You have solved all exercises. `check NAME` checks one of them again.");
            return Ok(true);
        }
    };
    let mut passes = check_exercise(&exercise)?;
    if passes && device == Device::Cuda {
        passes = check_on_gpu(&exercise)?;
    }
    if passes && let Some(next) = Progress::load()?.next() {
        announce(&Exercise::open(next)?)?;
    }
    Ok(passes)
}

/// Checks an exercise and notes whether it passes.
fn check_exercise(exercise: &Exercise) -> Result<bool, Error> {
    let name = &exercise.name;
    let path = files::attempt(exercise)?;
    println!("Checking {}", shown(&path));
    match run::check(exercise, &path)? {
        Outcome::Passed => {
            println!("{name} passes. Compare with ours: cargo run -p exercises -- solution {name}");
            let mut progress = Progress::load()?;
            if progress.passed.insert(name.clone()) {
                progress.save()?;
            }
            Ok(true)
        }
        Outcome::Rejected | Outcome::NotCompiled => {
            println!("{name} does not pass yet. A hint: cargo run -p exercises -- hint {name}");
            Ok(false)
        }
    }
}

#[cfg(feature = "cuda")]
fn check_on_gpu(exercise: &Exercise) -> Result<bool, Error> {
    crate::gpu::check(exercise)
}

#[cfg(not(feature = "cuda"))]
fn check_on_gpu(_: &Exercise) -> Result<bool, Error> {
    Err(Error::NoCuda)
}

/// Gives the hints seen so far and one more.
pub fn hint(typed: &str) -> Result<bool, Error> {
    let exercise = files::find(typed)?;
    let hints = &exercise.description.hints;
    let mut progress = Progress::load()?;
    let seen = progress.hints.entry(exercise.name.clone()).or_default();
    *seen = (*seen + 1).min(hints.len());
    for (number, hint) in (1..).zip(&hints[..*seen]) {
        println!("Hint {number} of {}: {hint}", hints.len());
    }
    if *seen == hints.len() {
        let name = &exercise.name;
        println!(
            "These are all hints. Our solution: cargo run -p exercises -- solution {name} --give-up"
        );
    }
    progress.save()?;
    Ok(true)
}

/// Checks the next exercise whenever its file changes, until all exercises pass.
pub fn watch() -> Result<bool, Error> {
    while let Some(name) = Progress::load()?.next() {
        let exercise = Exercise::open(name)?;
        announce(&exercise)?;
        println!("Waiting for changes of the file; Ctrl-C ends it.\n");
        let path = files::attempt(&exercise)?;
        loop {
            let checked = modified(&path);
            if check_exercise(&exercise)? {
                break;
            }
            while modified(&path) == checked {
                thread::sleep(WATCH_INTERVAL);
            }
            println!();
        }
    }
    println!("You have solved all exercises.");
    Ok(true)
}

/// When a file was last changed; `None` while an editor replaces it.
fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|data| data.modified()).ok()
}

/// Replaces the learner's file by the delivered one.
pub fn reset(typed: &str) -> Result<bool, Error> {
    let exercise = files::find(typed)?;
    files::deliver(&exercise)?;
    let mut progress = Progress::load()?;
    progress.passed.remove(&exercise.name);
    progress.hints.remove(&exercise.name);
    progress.save()?;
    println!("{} is as it was delivered.", shown(&exercise.attempt()));
    Ok(true)
}

/// Shows the solution of an exercise that passes, or of one that the learner gives up.
pub fn solution(typed: &str, give_up: bool) -> Result<bool, Error> {
    let exercise = files::find(typed)?;
    if !give_up && !Progress::load()?.passed.contains(&exercise.name) {
        return Err(Error::NotPassed(exercise.name));
    }
    let path = exercise.path("solution.rs");
    print_to_reader(&format!("// {}\n{}", shown(&path), files::read(&path)?))
}

/// Prints lines to a reader that may end before it has all of them, such as `head`.
fn print_to_reader(lines: &str) -> Result<bool, Error> {
    match io::stdout().write_all(lines.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(true),
    }
}
