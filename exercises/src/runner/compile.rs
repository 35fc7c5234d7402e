//! Compiles an attempt with its case into a program, and runs it.
//!
//! Cargo compiles the libraries and says where they are. The attempt itself is one call of rustc, which takes a second.

use std::env;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use exercises::description::Exercise;
use serde_json::Value;

use crate::files::{self, Error, workspace};

/// How long an attempt may run. The emulator stops most endless kernels long before.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The profile of the libraries: that of the runner, so that they are compiled already.
const PROFILE: &str = if cfg!(debug_assertions) {
    "dev"
} else {
    "release"
};

/// What came of an attempt.
pub enum Outcome {
    /// It does not compile. The compiler's messages are printed.
    NotCompiled,
    /// The check found a fault and printed it.
    Rejected,
    /// The check passed.
    Passed,
}

/// Compiles and checks the learner's file.
pub fn check(exercise: &Exercise) -> Result<Outcome, Error> {
    let libraries = libraries()?;
    let folder = libraries.folder.join("attempts");
    let main = folder.join(format!("{}.rs", exercise.name));
    let text = format!(
        "#[path = {:?}]\nmod attempt;\n#[path = {:?}]\nmod case;\n\nfn main() -> std::process::ExitCode {{\n    \
         exercises::attempt_main({:?}, case::run)\n}}\n",
        exercise.attempt(),
        exercise.path("case.rs"),
        exercise.name,
    );
    files::write(&main, &text)?;
    let program = main.with_extension(env::consts::EXE_EXTENSION);
    let compiled = rustc(&libraries, &main, &program)?;
    if !compiled.status.success() {
        eprint!("{}", String::from_utf8_lossy(&compiled.stderr));
        return Ok(Outcome::NotCompiled);
    }
    let mut run = Command::new(&program);
    let child = run.current_dir(workspace()).spawn();
    match wait(child.map_err(|error| failed(&program, &error))?)? {
        Some(status) if status.success() => Ok(Outcome::Passed),
        Some(_) => Ok(Outcome::Rejected),
        None => {
            println!("The check has taken {TIME_LIMIT:?}: the kernel probably never ends.");
            Ok(Outcome::Rejected)
        }
    }
}

/// Compiles the program.
fn rustc(libraries: &Libraries, main: &Path, program: &Path) -> Result<Output, Error> {
    // The compiler beside cargo is that of the toolchain which compiled the libraries.
    let beside = env::var_os("CARGO").map(|cargo| Path::new(&cargo).with_file_name("rustc"));
    let beside = beside.filter(|path| path.with_extension(env::consts::EXE_EXTENSION).exists());
    let compiler = beside.unwrap_or_else(|| PathBuf::from("rustc"));
    let color = if std::io::stderr().is_terminal() {
        "always"
    } else {
        "never"
    };
    let external = |name: &str, path: &Path| format!("{name}={}", path.display());
    let prefix = format!("{}/=", workspace().display());
    Command::new(&compiler)
        .current_dir(workspace())
        .args([
            "--edition",
            "2024",
            "--color",
            color,
            "--crate-name",
            "attempt",
        ])
        .args([
            "-C",
            "opt-level=1",
            "-C",
            "overflow-checks=on",
            "-C",
            "debug-assertions=on",
            // The counters tell two calls on one line apart by it.
            "-C",
            "debuginfo=line-tables-only",
        ])
        .args(["--extern", &external("exercises", &libraries.exercises)])
        .args(["--extern", &external("cuda_std", &libraries.cuda_std)])
        .arg("-L")
        .arg(external("dependency", &libraries.folder.join("deps")))
        .args(["--remap-path-prefix", &prefix])
        .arg("-o")
        .arg(program)
        .arg(main)
        .output()
        .map_err(|error| failed(&compiler, &error))
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

/// The compiled libraries that an attempt needs.
struct Libraries {
    exercises: PathBuf,
    cuda_std: PathBuf,
    /// The folder of the profile, which has the other libraries in `deps`.
    folder: PathBuf,
}

/// Has cargo compile the libraries.
fn libraries() -> Result<Libraries, Error> {
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
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed(Path::new(&cargo), &error))?;
    if !built.status.success() {
        return Err(Error::Compiler(
            "cargo cannot build the exercises".to_owned(),
        ));
    }
    let artifacts: Vec<Value> = String::from_utf8_lossy(&built.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let library = |name: &str| {
        let is_meant = |artifact: &&Value| {
            artifact["reason"] == "compiler-artifact" && artifact["target"]["name"] == name
        };
        let files = artifacts.iter().find(is_meant)?["filenames"].as_array()?;
        let paths = files
            .iter()
            .filter_map(|file| file.as_str().map(PathBuf::from));
        let mut libraries = paths.filter(|path| path.extension().is_some_and(|it| it == "rlib"));
        libraries.next()
    };
    let missing = |name| Error::Compiler(format!("cargo does not say where the library {name} is"));
    let exercises = library("exercises").ok_or_else(|| missing("exercises"))?;
    Ok(Libraries {
        cuda_std: library("cuda_std").ok_or_else(|| missing("cuda_std"))?,
        folder: exercises.parent().unwrap_or(&exercises).to_owned(),
        exercises,
    })
}

fn failed(program: &Path, error: &std::io::Error) -> Error {
    Error::Compiler(format!("{} does not run: {error}", program.display()))
}
