//! Compiles attempts and solutions to PTX.
//!
//! An attempt becomes a kernel crate, which `cuda_builder` compiles: in a process of its own, whose messages are shown
//! only if it fails. The compiled attempt gets the path of the archive as its argument.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use cuda_builder::CudaBuilder;
use exercises::description::{Exercise, workspace};
use exercises::list::EXERCISES;

use crate::compile;
use crate::files::{self, Error};

/// Compiles a file to PTX. Returns the path of the archive.
pub fn of_attempt(file: &Path) -> Result<PathBuf, Error> {
    // One package for all attempts, so that `core` is compiled once.
    let package = compile::folder()?.join("kernels");
    write_crate(&package, &[("attempt".to_owned(), file.to_owned())])?;
    let archive = package.join("kernels.zip");
    let failed = |error: std::io::Error| Error::Compiler(error.to_string());
    let built = Command::new(env::current_exe().map_err(failed)?)
        .arg("build-kernels")
        .args([&package, &archive])
        // `cuda_builder` would take this program for a build script.
        .env_remove("OUT_DIR")
        .output()
        .map_err(failed)?;
    if built.status.success() {
        return Ok(archive);
    }
    Err(Error::Compiler(
        String::from_utf8_lossy(&built.stderr).into_owned(),
    ))
}

/// Compiles all solutions to one archive of PTX.
pub fn of_solutions(archive: &Path) -> Result<bool, Error> {
    let package = compile::folder()?.join("solutions");
    let mut modules = Vec::new();
    for name in EXERCISES {
        let solution = Exercise::open(name)?.path("solution.rs");
        modules.push((format!("exercise_{name}"), solution));
    }
    write_crate(&package, &modules)?;
    build(&package, archive)
}

/// Compiles a kernel crate to an archive of PTX.
pub fn build(package: &Path, archive: &Path) -> Result<bool, Error> {
    CudaBuilder::new(package)
        .target_dir(compile::folder()?.join("device"))
        .copy_to(archive)
        .build()?;
    Ok(true)
}

/// Writes a kernel crate with these modules, each a copy of a file.
fn write_crate(package: &Path, modules: &[(String, PathBuf)]) -> Result<(), Error> {
    let manifest = format!(
        "[package]\nname = \"attempt\"\nedition = \"2024\"\n\n[dependencies]\nwarprow-cuda-std = {{ path = {:?} }}\n\n\
         [workspace]\n",
        workspace().join("rust-cuda/cuda_std")
    );
    let mut library = "#![cfg_attr(target_arch = \"nvptx64\", no_std)]\n\
                       #![cfg_attr(target_arch = \"nvptx64\", feature(abi_ptx))]\n"
        .to_owned();
    for (name, file) in modules {
        library += &format!("pub mod {name};\n");
        let path = package.join("src").join(name).with_extension("rs");
        files::write(&path, &files::read(file)?)?;
    }
    files::write(&package.join("Cargo.toml"), &manifest)?;
    files::write(&package.join("src/lib.rs"), &library)?;
    lock(package)
}

/// Gives a package the versions that the workspace has locked, as far as it uses them.
fn lock(package: &Path) -> Result<(), Error> {
    let (path, ours) = (package.join("Cargo.lock"), workspace().join("Cargo.lock"));
    let modified = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    if modified(&path) >= modified(&ours) {
        return Ok(());
    }
    files::write(&path, &files::read(&ours)?)?;
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
