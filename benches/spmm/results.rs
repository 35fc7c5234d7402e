//! The file of the results: a JSON object a line, no two for the same product and implementation.

use crate::harness::json_lines::{Environment, JsonLines};
use crate::spmm::report::{Case, Line};
use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use std::collections::HashSet;
use std::fs::File;
use std::path::Path;

/// A line of the file, as far as it is read again.
#[derive(Clone, Debug, Deserialize)]
pub struct Record {
    /// The graph.
    pub graph: String,
    /// The distribution of its nonzeros.
    pub kind: String,
    /// Columns of X and Y.
    pub features: u32,
    /// The element type.
    #[serde(rename = "type")]
    pub element: String,
    /// Who computed.
    #[serde(rename = "impl")]
    pub implementation: String,
    /// The version of cuSPARSE, if that it was.
    pub cusparse: Option<String>,
    /// Milliseconds.
    pub ms: Option<f64>,
    /// Whether the product was right; nothing if it was no product.
    pub ok: Option<bool>,
    /// The device's name.
    pub device: String,
    /// The checksum of the PTX; nothing on the emulator, and in results of earlier versions.
    #[serde(default)]
    pub ptx: Option<String>,
}

/// What no two lines of a file have in common.
type Key = (String, String, u32, String, String);

impl Record {
    fn key(&self) -> Key {
        let text = String::clone;
        (
            text(&self.graph),
            text(&self.kind),
            self.features,
            text(&self.element),
            text(&self.implementation),
        )
    }

    /// The time in milliseconds, if there is one and the result is not wrong.
    pub fn right_time(&self) -> Option<f64> {
        self.ms.filter(|_| self.ok != Some(false))
    }
}

/// Reads the lines of a file. A last line that was cut off, as by a run that was killed, does not count; with the
/// records comes how many bytes do.
///
/// # Errors
///
/// A file that cannot be read, with its name; another line that is no result, or the second one for the same product
/// and implementation, with its place.
pub fn read(path: &Path) -> anyhow::Result<(Vec<Record>, usize)> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let whole = text.rfind('\n').map_or(0, |last| last + 1);
    let (mut records, mut keys) = (Vec::new(), HashSet::new());
    for (number, line) in text[..whole].lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let place = format!("{}:{}", path.display(), number + 1);
        let record: Record = serde_json::from_str(line)
            .with_context(|| format!("{place}: wanted a result of the SpMM bench"))?;
        if !keys.insert(record.key()) {
            bail!("{place}: a second result for {:?}", record.key());
        }
        records.push(record);
    }
    Ok((records, whole))
}

/// The results of this run and, if it resumes, of those before. Each is written at once, so that a run that is cut off
/// leaves what it had.
#[derive(Debug)]
pub struct Results {
    file: JsonLines,
    records: Vec<Record>,
    keys: HashSet<Key>,
}

impl Results {
    /// Creates the file, or empties it unless the run resumes; no file for no path.
    ///
    /// # Errors
    ///
    /// The operating system's; a file to resume that [`read`] refuses, or that has results of another device or
    /// of other kernels.
    pub fn open(
        path: Option<&Path>,
        resume: bool,
        environment: Environment,
    ) -> anyhow::Result<Self> {
        let (mut records, mut keys) = (Vec::new(), HashSet::new());
        let file = match path {
            Some(path) if resume && path.exists() => {
                let whole;
                (records, whole) = read(path)?;
                let device = &environment.device;
                for record in &records {
                    ensure!(
                        record.device == *device,
                        "{}: wanted results of {device} to add to, found results of {}",
                        path.display(),
                        record.device
                    );
                    let name = |ptx: &Option<String>| match ptx {
                        Some(checksum) => format!("the kernels {checksum}"),
                        None => "unknown kernels".to_owned(),
                    };
                    ensure!(
                        record.ptx == environment.ptx,
                        "{}: wanted results of {} to add to, found results of {}",
                        path.display(),
                        name(&environment.ptx),
                        name(&record.ptx)
                    );
                    keys.insert(record.key());
                }
                let cannot_write = || format!("cannot write {}", path.display());
                let file = File::options().append(true).open(path);
                let file = file.with_context(cannot_write)?;
                file.set_len(whole as u64).with_context(cannot_write)?;
                JsonLines::to(Some(file), environment)
            }
            path => JsonLines::create(path, environment)?,
        };
        Ok(Self {
            file,
            records,
            keys,
        })
    }

    /// Whether there is a result of that implementation.
    pub fn has(&self, case: &Case, implementation: &str) -> bool {
        let text = str::to_owned;
        self.keys.contains(&(
            case.graph.to_string(),
            text(case.kind),
            case.features,
            text(case.element),
            text(implementation),
        ))
    }

    /// Adds a line.
    ///
    /// # Errors
    ///
    /// The operating system's.
    ///
    /// # Panics
    ///
    /// If there is a result of that implementation.
    pub fn add(&mut self, case: &Case, line: &Line) -> anyhow::Result<()> {
        let new = !self.has(case, line.implementation.name);
        assert!(new, "two results: {case:?}, {:?}", line.implementation);
        let text = self.file.write(&line.of_case(case))?;
        let record: Record = serde_json::from_str(&text)?;
        self.keys.insert(record.key());
        self.records.push(record);
        Ok(())
    }

    /// All of them.
    pub fn records(&self) -> &[Record] {
        &self.records
    }
}
