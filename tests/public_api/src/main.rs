//! Lists the public items of the libraries, a line each, in `docs/api`, so that a change of the interface is seen in a
//! diff.
//!
//! ```text
//! cargo run -p warprow-public-api               # writes the lists
//! cargo run -p warprow-public-api -- --check    # fails if an item has come, gone or changed
//! ```

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use public_api::PublicApi;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages, and the names of their libraries.
const LIBRARIES: [(&str, &str); 4] = [
    ("warprow", "warprow"),
    ("warprow-cuda-builder", "cuda_builder"),
    ("warprow-cuda-std", "cuda_std"),
    ("warprow-cudarc", "warprow_cudarc"),
];

#[derive(Parser)]
#[command(about = "Lists the public items of the libraries in docs/api")]
struct Options {
    /// Compare the lists with the libraries, and write nothing
    #[arg(long)]
    check: bool,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (package, library) in LIBRARIES {
        let api = public_items(&root, package, library)?;
        let list = root.join("docs/api").join(format!("{library}.txt"));
        let text = api.to_string();
        if !options.check {
            fs::write(&list, text).with_context(|| format!("cannot write {}", list.display()))?;
            continue;
        }
        let listed = fs::read_to_string(&list).with_context(|| list.display().to_string())?;
        if listed != text {
            print_changes(&listed, &text);
            bail!(
                "{} is not the interface of {library}: if the change is wanted, run `cargo run -p warprow-public-api`",
                list.display()
            );
        }
    }
    Ok(())
}

/// The items of a library, without those that follow from others: what derives and blanket implementations add.
fn public_items(root: &Path, package: &str, library: &str) -> Result<PublicApi> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let status = Command::new(cargo)
        .current_dir(root)
        .args([
            "rustdoc",
            "--quiet",
            "--package",
            package,
            "--lib",
            "--target-dir",
        ])
        .arg(&target)
        .args(["--", "-Zunstable-options", "--output-format", "json"])
        // A stable compiler writes JSON only so.
        .env("RUSTC_BOOTSTRAP", "1")
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "cargo rustdoc fails for {package}");
    let json = target.join("doc").join(format!("{library}.json"));
    public_api::Builder::from_rustdoc_json(&json)
        .omit_auto_derived_impls(true)
        .omit_auto_trait_impls(true)
        .omit_blanket_impls(true)
        .build()
        .with_context(|| json.display().to_string())
}

fn print_changes(listed: &str, text: &str) {
    let mark = |sign: char, lines: &str, others: &str| {
        for line in lines
            .lines()
            .filter(|line| !others.lines().any(|other| other == *line))
        {
            println!("{sign}{line}");
        }
    };
    mark('-', listed, text);
    mark('+', text, listed);
}
