//! Compiles an attempt with its case into a program.
//!
//! Cargo compiles the libraries. The attempt itself is one call of rustc, which takes a second.

use std::env;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use exercises::description::{Exercise, workspace};

use crate::files::{self, Error};
use crate::libraries::{Libraries, libraries};

/// Compiles a file of an exercise into a program that checks it. If it does not compile, it prints why and returns
/// `None`.
pub fn program(exercise: &Exercise, file: &Path) -> Result<Option<PathBuf>, Error> {
    let libraries = libraries()?;
    let main = folder()?.join(format!("{}.rs", exercise.name));
    let text = format!(
        "#[path = {file:?}]\nmod attempt;\n#[path = {:?}]\nmod case;\n\nfn main() -> std::process::ExitCode {{\n    \
         exercises::attempt_main({:?}, case::run)\n}}\n",
        exercise.path("case.rs"),
        exercise.name,
    );
    files::write(&main, &text)?;
    let program = main.with_extension(env::consts::EXE_EXTENSION);
    let compiled = rustc(&libraries, &main, &program)?;
    if !compiled.status.success() {
        eprint!("{}", String::from_utf8_lossy(&compiled.stderr));
        return Ok(None);
    }
    Ok(Some(program))
}

/// The folder of compiled attempts, beside this program.
pub fn folder() -> Result<PathBuf, Error> {
    let here = env::current_exe().map_err(|error| Error::Compiler(error.to_string()))?;
    Ok(here.with_file_name("attempts"))
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
        .args(libraries.native.iter().flat_map(|path| ["-L", path]))
        .args(["--remap-path-prefix", &prefix])
        .arg("-o")
        .arg(program)
        .arg(main)
        .output()
        .map_err(|error| Error::program(&compiler, &error))
}
