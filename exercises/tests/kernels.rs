//! The kernels of all solutions become PTX that the assembler takes as it is.

#![cfg(feature = "cuda")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use cuda_builder::{Arch, Archive, Ptxas, Toolchain};
use exercises::list::EXERCISES;

/// Says that something was left out; where PTX is required, it must not be.
fn skip(reason: &str) {
    let required = std::env::var_os("WARPROW_REQUIRE_PTX").is_some_and(|value| value == "1");
    assert!(!required, "WARPROW_REQUIRE_PTX=1, but {reason}");
    // Not `eprintln`, which the test harness keeps to itself when a test passes.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// Has the runner compile all solutions.
fn build_solutions(folder: &Path) -> Archive {
    let path = folder.join("solutions.zip");
    let built = Command::new(env!("CARGO_BIN_EXE_exercises"))
        .arg("build-solutions")
        .arg(&path)
        .output()
        .expect("the runner starts");
    let messages = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{messages}");
    let bytes = fs::read(&path).expect("the runner writes the archive");
    Archive::open(bytes).expect("it is an archive")
}

/// How many kernels the solution of an exercise contains: at least one.
fn kernels_of_solution(exercise: &str) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(exercise)
        .join("solution.rs");
    let source = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let kernels = source
        .lines()
        .filter(|line| line.starts_with("#[kernel"))
        .count();
    assert_ne!(kernels, 0, "{path:?} has no kernel");
    kernels
}

#[test]
fn every_solution_has_a_kernel_and_the_assembler_takes_it_without_spills() {
    if let Err(error) = Toolchain::find() {
        return skip(&error.to_string());
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let archive = build_solutions(&folder);
    let modules = archive.modules();
    let kernels: BTreeSet<&String> = modules.iter().flat_map(|module| &module.kernels).collect();
    let written: usize = EXERCISES.iter().map(|name| kernels_of_solution(name)).sum();
    assert_eq!(kernels.len(), written, "{kernels:?}");

    let ptxas = match Ptxas::find() {
        Ok(ptxas) => ptxas,
        Err(error) => return skip(&error.to_string()),
    };
    let texts: Vec<String> = modules
        .iter()
        .map(|module| archive.text(module).expect("a module has a text"))
        .collect();
    for arch in [Arch::SM80, Arch::SM90] {
        let assembled = ptxas.assemble(texts.iter().map(String::as_str), arch, &folder);
        for kernel in assembled.unwrap_or_else(|error| panic!("{error}")) {
            assert_eq!(kernel.spill_store_bytes, 0, "{} on {arch}", kernel.name);
        }
    }
}
