//! Finds exercises by what a learner types, and makes the files that a learner edits.

use std::fs;
use std::path::{Path, PathBuf};

use exercises::description::{DescriptionError, Exercise};
use exercises::list::EXERCISES;

/// Why a command did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Description(#[from] DescriptionError),
    #[error("no exercise is called {0:?}; `list` shows all")]
    NoExercise(String),
    #[error("{0:?} can be {1} or {2}")]
    Ambiguous(String, &'static str, &'static str),
    #[error("cannot print: {0}")]
    Output(std::io::Error),
    #[error("{}: {error}", path.display())]
    File {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("{0}")]
    Compiler(String),
    #[error("{}: {reason}", path.display())]
    Toml { path: PathBuf, reason: String },
    #[cfg(not(feature = "cuda"))]
    #[error(
        "this runner knows no GPU: build it with `cargo run -p exercises --features cuda -- ..`"
    )]
    NoCuda,
    #[cfg(feature = "cuda")]
    #[error("{0}")]
    Kernels(#[from] cuda_builder::BuildError),
    #[cfg(feature = "cuda")]
    #[error("{0}")]
    Recorded(String),
    #[error("your file of {0} does not pass yet; `solution {0} --give-up` shows ours")]
    NotPassed(String),
}

impl Error {
    /// The error of a program that does not start.
    pub fn program(program: &Path, error: &std::io::Error) -> Self {
        Self::Compiler(format!("{} does not run: {error}", program.display()))
    }
}

/// The exercise that a learner means by its name, its number, or a part of its name.
pub fn find(typed: &str) -> Result<Exercise, Error> {
    let number: Option<u32> = typed.parse().ok();
    let number_of = |name: &str| {
        name.split('_')
            .next()
            .and_then(|digits| digits.parse().ok())
    };
    let is_meant = |name: &str| match number {
        Some(number) => number_of(name) == Some(number),
        None => name.contains(typed),
    };
    let mut meant = EXERCISES.iter().filter(|name| is_meant(name));
    let exact = EXERCISES.iter().find(|name| **name == typed);
    match (exact.or_else(|| meant.next()), meant.next()) {
        (Some(name), _) if *name == typed => Ok(Exercise::open(name)?),
        (Some(name), None) => Ok(Exercise::open(name)?),
        (Some(first), Some(second)) => Err(Error::Ambiguous(typed.to_owned(), first, second)),
        (None, _) => Err(Error::NoExercise(typed.to_owned())),
    }
}

/// The file that the learner edits. It is made from the delivered file if there is none.
pub fn attempt(exercise: &Exercise) -> Result<PathBuf, Error> {
    let path = exercise.attempt();
    if !path.exists() {
        deliver(exercise)?;
    }
    Ok(path)
}

/// Makes the learner's file equal to the delivered one.
pub fn deliver(exercise: &Exercise) -> Result<(), Error> {
    let text = read(&exercise.path("problem.rs"))?;
    write(&exercise.attempt(), &text)
}

pub fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| failed(path, error))
}

/// Writes a file, and makes its folder if there is none.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    fs::write(path, text).map_err(|error| failed(path, error))
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    let path = path.to_owned();
    Error::File { path, error }
}
