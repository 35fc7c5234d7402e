//! Checks attempts on a GPU, beside the recorded times of our solutions.
//!
//! An attempt becomes a kernel crate, which `cuda_builder` compiles to PTX: in a process of its own, whose messages are
//! shown only if it fails. The compiled attempt gets the path of the PTX as its argument.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use cuda_builder::CudaBuilder;
use exercises::cuda::TIME;
use exercises::description::{Exercise, ROOT, workspace};
use exercises::list::EXERCISES;
use serde::{Deserialize, Serialize};

use crate::compile;
use crate::files::{self, Error};

/// The recorded times of our solutions.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Recorded {
    /// The name of the GPU.
    gpu: String,
    /// The time of each exercise's launches in microseconds.
    microseconds: BTreeMap<String, f64>,
}

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
    let path = recorded_path();
    if path.exists() {
        let recorded: Recorded =
            toml::from_str(&files::read(&path)?).map_err(|error| Error::Toml {
                path: path.clone(),
                reason: error.to_string(),
            })?;
        if let Some(ours) = recorded.microseconds.get(&exercise.name) {
            println!(
                "  {ours:8.2} us  our solution, recorded on {}",
                recorded.gpu
            );
        }
    }
    Ok(true)
}

/// Runs all solutions and records their times.
pub fn record() -> Result<bool, Error> {
    let (mut recorded, mut all_pass) = (Recorded::default(), true);
    for name in EXERCISES {
        let exercise = Exercise::open(name)?;
        match run(&exercise, &exercise.path("solution.rs"))? {
            None => {
                println!("{name} fails");
                all_pass = false;
            }
            Some(None) => println!("{name} passes"),
            Some(Some(time)) => {
                println!("{name} passes: {:.2} us", time.microseconds);
                recorded.gpu = time.gpu;
                recorded
                    .microseconds
                    .insert((*name).to_owned(), time.microseconds);
            }
        }
    }
    let text = toml::to_string(&recorded).map_err(|error| Error::Toml {
        path: recorded_path(),
        reason: error.to_string(),
    })?;
    if all_pass {
        files::write(&recorded_path(), &text)?;
    }
    Ok(all_pass)
}

fn recorded_path() -> PathBuf {
    Path::new(ROOT).join("recorded.toml")
}

/// Runs a file of an exercise on the GPU. `None` if it fails; then its message is printed. The inner `None` if the
/// exercise has no timed size.
fn run(exercise: &Exercise, file: &Path) -> Result<Option<Option<Time>>, Error> {
    let archive = kernels(file)?;
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

/// Compiles a file to PTX. Returns the path of the archive.
fn kernels(file: &Path) -> Result<PathBuf, Error> {
    // One package for all attempts, so that `core` is compiled once.
    let package = compile::folder()?.join("kernels");
    let manifest = format!(
        "[package]\nname = \"attempt\"\nedition = \"2024\"\n\n[dependencies]\nwarprow-cuda-std = {{ path = {:?} }}\n\n\
         [workspace]\n",
        workspace().join("rust-cuda/cuda_std")
    );
    let library = "#![cfg_attr(target_arch = \"nvptx64\", no_std)]\n\
                   #![cfg_attr(target_arch = \"nvptx64\", feature(abi_ptx))]\n\
                   pub mod attempt;\n";
    files::write(&package.join("Cargo.toml"), &manifest)?;
    files::write(&package.join("src/lib.rs"), library)?;
    files::write(&package.join("src/attempt.rs"), &files::read(file)?)?;
    lock(&package)?;
    let failed = |error: std::io::Error| Error::Compiler(error.to_string());
    let built = Command::new(env::current_exe().map_err(failed)?)
        .arg("build-kernels")
        .arg(&package)
        // `cuda_builder` would take this program for a build script.
        .env_remove("OUT_DIR")
        .output()
        .map_err(failed)?;
    if built.status.success() {
        return Ok(archive(&package));
    }
    Err(Error::Compiler(
        String::from_utf8_lossy(&built.stderr).into_owned(),
    ))
}

fn archive(package: &Path) -> PathBuf {
    package.join("kernels.zip")
}

/// Compiles a kernel crate to PTX.
pub fn build_kernels(package: &Path) -> Result<bool, Error> {
    CudaBuilder::new(package)
        .target_dir(package.join("target"))
        .copy_to(archive(package))
        .build()?;
    Ok(true)
}

/// Gives a package the versions that the workspace has locked, as far as it uses them.
fn lock(package: &Path) -> Result<(), Error> {
    let path = package.join("Cargo.lock");
    if path.exists() {
        return Ok(());
    }
    files::write(&path, &files::read(&workspace().join("Cargo.lock"))?)?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let updated = Command::new(&cargo)
        .current_dir(package)
        .args(["update", "--workspace", "--offline", "--quiet"])
        .status()
        .map_err(|error| Error::program(Path::new(&cargo), &error))?;
    if updated.success() {
        return Ok(());
    }
    Err(Error::Compiler(format!(
        "cargo cannot lock {}",
        package.display()
    )))
}
