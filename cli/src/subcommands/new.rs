//! `warprow new`: a project with a kernel, a program that launches it, and tests.

use crate::commands::Global;
use crate::failure::{Failure, Result};
use crate::output::Out;
use clap::{ArgGroup, Args};
use std::fs;
use std::path::{Path, PathBuf};

pub const EXAMPLES: &str = "\
Examples:
  warprow new my-kernels --path ../warprow
  warprow new my-kernels --git https://example.org/warprow.git
  cd my-kernels && cargo test";

/// The files of a project, by their paths in it.
const FILES: [(&str, &str); 10] = [
    ("Cargo.toml", include_str!("../../template/Cargo.toml.in")),
    ("build.rs", include_str!("../../template/build.rs.in")),
    ("src/lib.rs", include_str!("../../template/src/lib.rs.in")),
    ("src/main.rs", include_str!("../../template/src/main.rs.in")),
    (
        "tests/kernels.rs",
        include_str!("../../template/tests/kernels.rs.in"),
    ),
    (
        "kernels/Cargo.toml",
        include_str!("../../template/kernels/Cargo.toml.in"),
    ),
    (
        "kernels/src/lib.rs",
        include_str!("../../template/kernels/src/lib.rs.in"),
    ),
    ("README.md", include_str!("../../template/README.md.in")),
    (".gitignore", include_str!("../../template/gitignore.in")),
    (
        ".cargo/config.toml",
        include_str!("../../template/config.toml.in"),
    ),
];

#[derive(Args)]
#[command(group = ArgGroup::new("source").required(true))]
pub struct Options {
    /// The project's folder, which must not exist, and its name
    project: PathBuf,

    /// The folder of warprow's sources
    #[arg(long, value_name = "FOLDER", group = "source")]
    path: Option<PathBuf>,

    /// The repository of warprow
    #[arg(long, value_name = "URL", group = "source")]
    git: Option<String>,
}

pub fn run(options: &Options, global: &Global) -> Result<bool> {
    let mut out = Out::new(global);
    let name = name(&options.project)?;
    let source = source(options)?;
    let project = &options.project;
    let failed =
        |path: &Path, error| Failure::input(format!("cannot write {}: {error}", path.display()));
    fs::create_dir(project).map_err(|error| failed(project, error))?;
    for (path, text) in FILES {
        let path = project.join(path);
        let folder = path.parent().unwrap_or(project);
        fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        fs::write(&path, filled(text, &name, &source)).map_err(|error| failed(&path, error))?;
    }
    out.value("project", project.to_string_lossy());
    out.text(&format!(
        "created {}; next:\n  cd {}\n  cargo test\n",
        project.display(),
        project.display()
    ))?;
    out.finish()?;
    Ok(true)
}

/// Where the packages of warprow come from.
enum Source {
    Path(PathBuf),
    Git(String),
}

impl Source {
    /// The fields of a dependency on the package in that folder of the repository.
    fn dependency(&self, folder: &str) -> String {
        match self {
            Self::Path(path) => {
                let path = path.join(folder);
                // Without the slash that an empty folder leaves.
                let text = path.to_string_lossy();
                format!("path = {}", quoted(text.trim_end_matches('/')))
            }
            Self::Git(url) => format!("git = {}", quoted(url)),
        }
    }
}

fn source(options: &Options) -> Result<Source> {
    let Some(path) = &options.path else {
        let git = options.git.as_deref().unwrap_or_default();
        return Ok(Source::Git(url(git)?.to_owned()));
    };
    let unreadable = |error| Failure::input(format!("{}: {error}", path.display()));
    let path = fs::canonicalize(path).map_err(unreadable)?;
    let manifest = fs::read_to_string(path.join("Cargo.toml")).map_err(|error| {
        Failure::input(format!("{}: {error}", path.join("Cargo.toml").display()))
    })?;
    if !manifest
        .lines()
        .any(|line| line.trim() == "name = \"warprow\"")
    {
        return Err(Failure::input(format!(
            "{}: wanted the folder of warprow, found another package",
            path.display()
        )));
    }
    Ok(Source::Path(path))
}

/// The URL of a repository, as it can stand in a manifest.
fn url(text: &str) -> Result<&str> {
    if !text.trim().is_empty() && !text.contains(char::is_control) {
        return Ok(text);
    }
    Err(Failure::input(format!(
        "--git: wanted the URL of a repository without control characters, found `{}`",
        text.escape_debug()
    )))
}

/// Keywords of Rust.
const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Crates that come with Rust, folders in which cargo builds, and warprow's own crates.
const TAKEN: [&str; 13] = [
    "alloc",
    "core",
    "proc_macro",
    "std",
    "test",
    "build",
    "deps",
    "examples",
    "incremental",
    "cuda_builder",
    "cuda_std",
    "warprow",
    "warprow_cuda_std",
];

/// The name of a package, which the last part of the path must be.
fn name(project: &Path) -> Result<String> {
    let name = project
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let is_letter = |character: char| character.is_ascii_lowercase();
    let is_inner = |character: char| {
        is_letter(character) || character.is_ascii_digit() || "-_".contains(character)
    };
    if name.starts_with(is_letter) && name.chars().all(is_inner) {
        let crate_name = name.replace('-', "_");
        let names_of = [
            (&KEYWORDS[..], "a keyword of Rust"),
            (&TAKEN, "a name that Rust, cargo or warprow uses"),
        ];
        let taken = names_of
            .iter()
            .find(|(names, _)| names.contains(&crate_name.as_str()));
        return match taken {
            None => Ok(name),
            Some((_, what)) => Err(Failure::input(format!(
                "{}: wanted a name that is free, found `{name}`, {what}",
                project.display()
            ))),
        };
    }
    Err(Failure::input(format!(
        "{}: wanted a name of lower-case letters, digits, `-` and `_` that begins with a letter, found `{}`",
        project.display(),
        name.escape_debug()
    )))
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn filled(text: &str, name: &str, source: &Source) -> String {
    text.replace("{{name}}", name)
        .replace("{{crate}}", &name.replace('-', "_"))
        .replace("{{warprow}}", &source.dependency(""))
        .replace("{{cuda_std}}", &source.dependency("rust-cuda/cuda_std"))
        .replace(
            "{{cuda_builder}}",
            &source.dependency("rust-cuda/cuda_builder"),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_placeholder_is_left() {
        let source = Source::Git("https://example.org/w.git".to_owned());
        for (path, text) in FILES {
            let text = filled(text, "my-kernels", &source);
            assert!(
                !text.contains("{{") && !text.contains("}}"),
                "{path}: {text}"
            );
        }
        let manifest = filled(FILES[0].1, "my-kernels", &source);
        assert!(manifest.contains("warprow = { git = \"https://example.org/w.git\", "));
    }

    #[test]
    fn a_name_that_cargo_refuses_is_refused() {
        assert_eq!(name(Path::new("a/my-kernels_2")).unwrap(), "my-kernels_2");
        for wrong in ["", "..", "2nd", "a b", "Ä", "a.b", "warprow", "a\"b"] {
            assert!(name(Path::new(wrong)).is_err(), "{wrong}");
        }
        for taken in [
            "fn",
            "self",
            "crate",
            "async",
            "gen",
            "std",
            "test",
            "proc-macro",
            "build",
            "deps",
            "cuda-std",
        ] {
            let error = name(Path::new(taken)).unwrap_err().to_string();
            let wanted = format!("{taken}: wanted a name that is free, found `{taken}`, a ");
            assert!(error.starts_with(&wanted), "{error}");
        }
    }
}
