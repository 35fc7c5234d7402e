//! What this crate knows of `cust` is what its sources say: functions, their arguments, codes.
//!
//! The linker does not prove that the table has all functions: it misses functions of `cust` that no program here
//! calls or instantiates.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

macro_rules! functions {
    ($($name:ident)*) => {
        const TABLE: &[&str] = &[$(stringify!($name)),*];
    };
}
include!("../src/functions.rs");

/// The functions of the table that are newer than cust, and that the library declares itself. None has more than five
/// arguments.
const DECLARED_HERE: [&str; 2] = ["cuGraphAddDependencies_v2", "cuLaunchKernelEx"];

/// The source directory of a dependency.
fn sources_of(package: &str) -> PathBuf {
    let rustc = env::var_os("RUSTC").unwrap_or("rustc".into());
    let host = output_of(Command::new(rustc).args(["--print", "host-tuple"]));
    // Only for this platform: packages for other platforms may be missing on this machine.
    let metadata = output_of(
        Command::new(env!("CARGO"))
            .args(["metadata", "--format-version=1", "--locked"])
            .args(["--filter-platform", str::from_utf8(&host).unwrap().trim()])
            .current_dir(env!("CARGO_MANIFEST_DIR")),
    );
    let metadata: serde_json::Value = serde_json::from_slice(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let found = packages
        .iter()
        .find(|entry| entry["name"] == package)
        .unwrap();
    Path::new(found["manifest_path"].as_str().unwrap()).with_file_name("src")
}

fn output_of(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
    output.stdout
}

/// The text of every source file in a directory, without comments.
fn code_in(directory: &Path) -> String {
    let mut code = String::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            code += &code_in(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            for line in fs::read_to_string(&path).unwrap().lines() {
                code += line.split("//").next().unwrap();
                code.push('\n');
            }
        }
    }
    code
}

/// The words that look like names of driver functions.
fn driver_names(code: &str) -> BTreeSet<&str> {
    code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| {
            word.strip_prefix("cu")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        })
        .collect()
}

#[test]
fn the_table_holds_every_driver_function_that_cust_names() {
    if let Err(error) = Command::new(env!("CARGO")).arg("--version").output() {
        println!("skipped: no cargo that knows where the sources of cust are: {error}");
        return;
    }
    let cust = code_in(&sources_of("cust"));
    let bindings = code_in(&sources_of("cust_raw"));
    let declared = driver_names(&bindings);
    let named: BTreeSet<&str> = driver_names(&cust)
        .intersection(&declared)
        .copied()
        .collect();
    assert!(named.len() > 100, "found only {named:?}");
    let table: BTreeSet<&str> = TABLE.iter().copied().collect();
    let missing: Vec<&&str> = named.difference(&table).collect();
    assert!(missing.is_empty(), "not in src/functions.rs: {missing:?}");
}

#[test]
fn a_stub_passes_on_all_arguments_of_each_function() {
    if let Err(error) = Command::new(env!("CARGO")).arg("--version").output() {
        println!("skipped: no cargo that knows where the sources of cust are: {error}");
        return;
    }
    let bindings = code_in(&sources_of("cust_raw"));
    for name in TABLE.iter().filter(|name| !DECLARED_HERE.contains(name)) {
        let (_, declared) = bindings.split_once(&format!("pub fn {name}(")).unwrap();
        let (arguments, _) = declared.split_once(") -> CUresult;").unwrap();
        let types: Vec<&str> = (arguments.split(','))
            .filter_map(|argument| argument.split_once(": "))
            .map(|(_, of_type)| of_type.trim())
            .collect();
        // Six registers and six words of the stack on x86_64, eight and four on aarch64.
        assert!(types.len() <= 12, "{name}: {types:?}");
        assert!(*name != "cuLaunchKernel" || types.len() == 11, "{types:?}");
        assert!(
            !types.contains(&"f32") && !types.contains(&"f64"),
            "{name}: {types:?}"
        );
    }
}

#[test]
fn the_known_codes_are_those_of_the_enum_of_cust() {
    if let Err(error) = Command::new(env!("CARGO")).arg("--version").output() {
        println!("skipped: no cargo that knows where the sources of cust are: {error}");
        return;
    }
    let bindings = code_in(&sources_of("cust_raw"));
    let (_, codes) = bindings.split_once("pub enum cudaError_enum {").unwrap();
    let (codes, _) = codes.split_once('}').unwrap();
    let codes: BTreeSet<u32> = codes
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .map(|(_, code)| code.trim_end_matches(',').parse().unwrap())
        .collect();
    assert!(codes.contains(&0) && codes.contains(&999), "{codes:?}");
    let known: BTreeSet<u32> = include!("../src/known_codes.in")
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(known, codes);
}

#[test]
fn the_table_is_in_order_and_names_nothing_twice() {
    assert!(TABLE.is_sorted_by(|a, b| a < b));
}
