//! The description of an exercise: its `exercise.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Deserialize;

use crate::bounds::Bounds;

/// The folder of this package, which holds a folder for each exercise.
pub const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The environment variable that names another folder for the learner's files.
pub const ATTEMPTS: &str = "WARPROW_ATTEMPTS";

/// The folder of the learner's files.
#[must_use]
pub fn attempts() -> PathBuf {
    env::var_os(ATTEMPTS).map_or_else(|| Path::new(ROOT).join("attempts"), PathBuf::from)
}

/// The root of the workspace. Messages name files relative to it.
#[must_use]
pub fn workspace() -> &'static Path {
    let root = Path::new(ROOT);
    root.parent().unwrap_or(root)
}

/// A path for messages: relative to the root of the workspace.
#[must_use]
pub fn shown(path: &Path) -> String {
    let relative = path.strip_prefix(workspace()).unwrap_or(path);
    relative.display().to_string()
}

/// An exercise.
#[derive(Clone, Debug)]
pub struct Exercise {
    /// The name of its folder: `01_hello`.
    pub name: String,
    /// The content of its `exercise.toml`.
    pub description: Description,
}

/// The content of an `exercise.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The title.
    pub title: String,
    /// The first chapter of the book that names it.
    pub chapter: u32,
    /// The result that is wanted, as a formula.
    pub formula: String,
    /// The sizes with which the case runs.
    pub sizes: Vec<u32>,
    /// Number of random schedules for each size.
    #[serde(default = "default_schedules")]
    pub schedules: u64,
    /// The size with which a GPU is timed.
    pub timed_size: Option<u32>,
    /// Maximum number of steps of a block. More are a fault, because the kernel probably never ends.
    #[serde(default = "default_max_steps")]
    pub max_steps: u64,
    /// Hints; each tells more than the one before.
    pub hints: Vec<String>,
    /// What the check says about the file as it is delivered.
    pub delivered: Delivered,
    /// For each file in `wrong/`, without `.rs`: a part of what the check says.
    pub wrong: BTreeMap<String, String>,
    /// Bounds on what the kernel may cost.
    pub bounds: Option<Bounds>,
}

/// What the check says about the file as it is delivered.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delivered {
    /// A part of the message. The text of the exercise has it too.
    pub message: String,
    /// A part of the line of `problem.rs` that the message names; no other line has it. `None`: it names no line.
    pub at: Option<String>,
}

fn default_schedules() -> u64 {
    50
}

fn default_max_steps() -> u64 {
    1 << 22
}

/// A description that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct DescriptionError {
    path: PathBuf,
    reason: String,
}

impl Exercise {
    /// The exercise in the folder `name`.
    ///
    /// # Errors
    ///
    /// If its `exercise.toml` is missing or wrong.
    pub fn open(name: &str) -> Result<Self, DescriptionError> {
        let path = Path::new(ROOT).join(name).join("exercise.toml");
        let failed = |reason| DescriptionError {
            path: path.clone(),
            reason,
        };
        let text = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        Self::parse(name, &text)
    }

    /// The exercise `name`, whose `exercise.toml` has this text.
    ///
    /// # Errors
    ///
    /// If the text is wrong.
    pub fn parse(name: &str, text: &str) -> Result<Self, DescriptionError> {
        let description = toml::from_str(text).map_err(|error| DescriptionError {
            path: Path::new(ROOT).join(name).join("exercise.toml"),
            reason: error.to_string(),
        })?;
        Ok(Self {
            name: name.to_owned(),
            description,
        })
    }

    /// The path of a file in the exercise's folder.
    #[must_use]
    pub fn path(&self, file: &str) -> PathBuf {
        Path::new(ROOT).join(&self.name).join(file)
    }

    /// The path of the file that the learner edits.
    #[must_use]
    pub fn attempt(&self) -> PathBuf {
        attempts().join(format!("{}.rs", self.name))
    }

    /// The path of the picture that a check draws.
    #[must_use]
    pub fn picture(&self) -> PathBuf {
        self.attempt().with_extension("svg")
    }
}
