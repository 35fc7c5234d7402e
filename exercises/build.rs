//! Writes the modules of the test program: for each exercise its delivered file, its solution and wrong solutions. Those
//! of the program that records times have the solutions alone.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[path = "src/list.rs"]
mod list;

fn main() -> io::Result<()> {
    let variable = |name| PathBuf::from(env::var_os(name).expect("cargo sets it"));
    let (root, out) = (variable("CARGO_MANIFEST_DIR"), variable("OUT_DIR"));
    println!("cargo::rerun-if-changed=src/list.rs");
    println!("cargo::rustc-check-cfg=cfg(rust_analyzer)");
    let (mut tests, mut attempts) = (String::new(), String::new());
    let (mut solutions, mut table) = (String::new(), String::new());
    for name in list::EXERCISES {
        // Cargo watches the whole folder, so it is not the folder of files that a learner edits.
        println!("cargo::rerun-if-changed={name}/wrong");
        tests += &module_of_tests(&root.join(name), name)?;
        let attempt = root.join("attempts").join(format!("{name}.rs"));
        let [solution, case, description] =
            ["solution.rs", "case.rs", "exercise.toml"].map(|file| root.join(name).join(file));
        solutions += &format!(
            "mod exercise_{name} {{\n    #[path = {solution:?}] mod attempt;\n    #[path = {case:?}] pub mod case;\n}}\n"
        );
        table +=
            &format!("({name:?}, include_str!({description:?}), exercise_{name}::case::run),\n");
        attempts += &format!("#[path = {attempt:?}] mod exercise_{name};\n");
    }
    solutions +=
        &format!("pub const SOLUTIONS: &[(&str, &str, exercises::Case)] = &[\n{table}];\n");
    fs::write(out.join("solutions.rs"), solutions)?;
    fs::write(out.join("tests.rs"), tests)?;
    fs::write(out.join("attempts.rs"), attempts)
}

/// The module of an exercise in the test program.
fn module_of_tests(folder: &Path, name: &str) -> io::Result<String> {
    let case = folder.join("case.rs");
    let mut module = format!("mod exercise_{name} {{\n    const NAME: &str = {name:?};\n");
    let mut add = |variant: &str, path: &Path, allowed: &str, test: &str| {
        write!(
            module,
            "    mod {variant} {{\n        {allowed}\n        #[path = {path:?}] mod attempt;\n        \
             #[path = {case:?}] mod case;\n        #[test]\n        fn {test}\n    }}\n"
        )
        .expect("a string grows");
    };
    let unfinished = "#[allow(unused, clippy::all, clippy::undocumented_unsafe_blocks, reason = \"it is wrong\")]";
    add(
        "delivered",
        &folder.join("problem.rs"),
        unfinished,
        "fails_as_its_text_promises() { crate::delivered(super::NAME, case::run); }",
    );
    add(
        "solution",
        &folder.join("solution.rs"),
        "",
        "passes() { crate::solution(super::NAME, case::run); }",
    );
    let mut wrong = fs::read_dir(folder.join("wrong"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    wrong.sort();
    for path in wrong {
        let variant = path.file_stem().unwrap_or_default().to_string_lossy();
        let test = format!("fails() {{ crate::wrong(super::NAME, {variant:?}, case::run); }}");
        add(&format!("wrong_{variant}"), &path, unfinished, &test);
    }
    Ok(module + "}\n")
}
