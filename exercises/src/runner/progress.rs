//! Which exercises the learner has solved, in a file beside the attempts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use exercises::description::attempts;
use exercises::list::EXERCISES;
use serde::{Deserialize, Serialize};

use crate::files::{self, Error};

/// The progress of the learner.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Progress {
    /// The exercises whose check has passed.
    #[serde(default)]
    pub passed: BTreeSet<String>,
    /// The number of hints that the learner has seen.
    #[serde(default)]
    pub hints: BTreeMap<String, usize>,
}

fn path() -> PathBuf {
    attempts().join("progress.toml")
}

impl Progress {
    /// The progress so far; none if there is no file.
    pub fn load() -> Result<Self, Error> {
        if !path().exists() {
            return Ok(Self::default());
        }
        toml::from_str(&files::read(&path())?).map_err(|error| Error::Toml {
            path: path(),
            reason: error.to_string(),
        })
    }

    /// Writes the file.
    pub fn save(&self) -> Result<(), Error> {
        let text = toml::to_string(self).map_err(|error| Error::Toml {
            path: path(),
            reason: error.to_string(),
        })?;
        files::write(&path(), &text)
    }

    /// The first exercise that has not passed.
    pub fn next(&self) -> Option<&'static str> {
        let mut names = EXERCISES.iter().copied();
        names.find(|name| !self.passed.contains(*name))
    }
}
