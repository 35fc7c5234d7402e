//! Has cargo compile the libraries that an attempt needs, and finds out where they are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use exercises::description::workspace;
use serde_json::Value;

use crate::files::Error;

/// The profile of the libraries: that of the runner, so that they are compiled already.
const PROFILE: &str = if cfg!(debug_assertions) {
    "dev"
} else {
    "release"
};

/// The compiled libraries that an attempt needs.
pub struct Libraries {
    pub exercises: PathBuf,
    pub cuda_std: PathBuf,
    /// The folder of the profile, which has the other libraries in `deps`.
    pub folder: PathBuf,
    /// Where the linker looks for libraries that are not Rust's.
    pub native: Vec<String>,
}

/// Has cargo compile the libraries.
pub fn libraries() -> Result<Libraries, Error> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(&cargo)
        .current_dir(workspace())
        .args([
            "build",
            "--quiet",
            "--package",
            "exercises",
            "--lib",
            "--profile",
            PROFILE,
        ])
        .args(cfg!(feature = "cuda").then_some("--features=cuda"))
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Error::program(Path::new(&cargo), &error))?;
    if !built.status.success() {
        return Err(Error::Compiler(
            "cargo cannot build the exercises".to_owned(),
        ));
    }
    let messages: Vec<Value> = String::from_utf8_lossy(&built.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let library = |name: &str| {
        let is_meant = |artifact: &&Value| {
            artifact["reason"] == "compiler-artifact" && artifact["target"]["name"] == name
        };
        let files = messages.iter().find(is_meant)?["filenames"].as_array()?;
        let paths = files
            .iter()
            .filter_map(|file| file.as_str().map(PathBuf::from));
        let mut libraries = paths.filter(|path| path.extension().is_some_and(|it| it == "rlib"));
        libraries.next()
    };
    let searched = messages
        .iter()
        .filter_map(|message| message["linked_paths"].as_array());
    let native = searched.flatten().filter_map(Value::as_str);
    let missing = |name| Error::Compiler(format!("cargo does not say where the library {name} is"));
    let exercises = library("exercises").ok_or_else(|| missing("exercises"))?;
    Ok(Libraries {
        cuda_std: library("cuda_std").ok_or_else(|| missing("cuda_std"))?,
        folder: exercises.parent().unwrap_or(&exercises).to_owned(),
        native: native.map(str::to_owned).collect(),
        exercises,
    })
}
