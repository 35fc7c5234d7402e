//! The command line.

use crate::harness::run_options::RunOptions;
use anyhow::Context;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The same launches on the emulator and on a GPU, to compare their counters.
#[derive(Clone, Debug, clap::Parser)]
#[command(bin_name = "cargo bench -p warprow-benches --bench counters --")]
pub struct Options {
    /// Only cases whose names contain this
    #[arg(long = "case", value_name = "TEXT", default_value = "")]
    pub case: String,

    /// Prints the names of the cases, and runs nothing
    #[arg(long)]
    pub list: bool,

    /// A JSON object of entry points and the registers of their threads, for the occupancy on the emulator
    #[arg(long, value_name = "FILE")]
    pub registers: Option<PathBuf>,

    /// The device, the file of the results, the seed.
    #[command(flatten)]
    pub run: RunOptions,
}

/// Reads the file of `--registers`.
///
/// # Errors
///
/// A file that cannot be read, or that is no such object.
pub fn read_registers(path: &Path) -> anyhow::Result<HashMap<String, u32>> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{}: wanted an object of numbers", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Options::command().debug_assert();
    }

    #[test]
    fn registers_are_an_object_of_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("registers.json");
        std::fs::write(&path, r#"{"fill": 16}"#).unwrap();
        assert_eq!(read_registers(&path).unwrap()["fill"], 16);
        std::fs::write(&path, "[16]").unwrap();
        assert!(read_registers(&path).is_err());
    }
}
