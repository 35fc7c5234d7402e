//! What `cust` asks of the linker, and of the machine, where no CUDA toolkit is installed.
//!
//! `cust` links with `-lcuda`. An archive with no members satisfies that: the functions are in this crate.
//!
//! The build scripts of `cust` and `cust_raw` stop with `Could not find a cuda installation` unless they find a folder
//! `lib64`. They do not say what to do, so this script looks for the same folders, and says it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The folders that `CUDA_LIBRARY_PATH` names, separated by colons.
const VARIABLE: &str = "CUDA_LIBRARY_PATH";

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let is_linux = env::var_os("CARGO_CFG_TARGET_OS").is_some_and(|system| system == "linux");
    // The documentation of a crate is built without CUDA, and `cust` asks for nothing then.
    if !is_linux || env::var_os("DOCS_RS").is_some() {
        return ExitCode::SUCCESS;
    }
    if !folders().iter().any(|folder| serves(folder)) {
        println!(
            "cargo::error=no CUDA toolkit is installed, and none is needed: put the two lines `[env]` and \
             `{VARIABLE} = \"/usr\"` into `.cargo/config.toml` of your project. Any folder with a folder `lib64` serves"
        );
        return ExitCode::FAILURE;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    if let Err(error) = fs::write(out.join("libcuda.a"), "!<arch>\n") {
        println!(
            "cargo::error=cannot write libcuda.a in {}: {error}",
            out.display()
        );
        return ExitCode::FAILURE;
    }
    println!("cargo::rustc-link-search=native={}", out.display());
    ExitCode::SUCCESS
}

/// Where the build script of `cust` looks.
fn folders() -> Vec<PathBuf> {
    let named = env::var_os(VARIABLE).unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&named).collect();
    folders.extend(["/opt/cuda", "/usr/local/cuda"].map(PathBuf::from));
    let installed = fs::read_dir("/usr/local").into_iter().flatten().flatten();
    let is_toolkit = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("cuda-")
    };
    folders.extend(installed.map(|entry| entry.path()).filter(is_toolkit));
    folders
}

/// Whether a folder is one that the build script of `cust` takes.
fn serves(folder: &Path) -> bool {
    folder.join("lib64").is_dir() || folder.join("targets/x86_64-linux/include/cuda.h").is_file()
}
