//! The file of the results: a JSON object a line, no two for the same product and implementation.

use crate::harness::json_lines::{Environment, JsonLines};
use crate::spmm::matrix::Matrix;
use crate::spmm::report::{Case, Line};
use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use std::collections::HashSet;
use std::fmt;
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
    /// What else the times depend on.
    #[serde(flatten)]
    pub setting: Setting,
}

/// The driver, the clocks and the seed of results.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Setting {
    driver: Option<String>,
    driver_release: Option<String>,
    clocks_mhz: Option<[u32; 2]>,
    seed: Option<u64>,
}

impl Setting {
    fn of(environment: &Environment) -> Self {
        Self {
            driver: environment.driver.clone(),
            driver_release: environment.driver_release.clone(),
            clocks_mhz: environment.clocks_mhz,
            seed: environment.seed,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_unknown = |text: &Option<String>| text.clone().unwrap_or("unknown".to_owned());
        write!(
            f,
            "driver {} ({}), clocks ",
            or_unknown(&self.driver),
            or_unknown(&self.driver_release)
        )?;
        match self.clocks_mhz {
            Some([multiprocessors, memory]) => write!(f, "{multiprocessors} and {memory} MHz")?,
            None => write!(f, "unknown")?,
        }
        match self.seed {
            Some(seed) => write!(f, ", seed {seed}"),
            None => write!(f, ", no seed"),
        }
    }
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
    /// The operating system's; a file to resume that [`read`] refuses, or that has results of another device, of other
    /// kernels, or of another driver, other clocks or another seed.
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
                let setting = Setting::of(&environment);
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
                    ensure!(
                        record.setting == setting,
                        "{}: wanted results of {setting} to add to, found results of {}",
                        path.display(),
                        record.setting
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

    /// Whether there is a result of that implementation, for that matrix and X.
    pub fn has(&self, matrix: &Matrix, features: u32, element: &str, implementation: &str) -> bool {
        let graph = matrix.name().into_owned();
        let [kind, element, implementation] =
            [matrix.kind(), element, implementation].map(str::to_owned);
        (self.keys).contains(&(graph, kind, features, element, implementation))
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
        let text = self.file.write(&line.of_case(case))?;
        let record: Record = serde_json::from_str(&text)?;
        let new = self.keys.insert(record.key());
        assert!(new, "two results: {case:?}, {:?}", line.implementation);
        self.records.push(record);
        Ok(())
    }

    /// All of them.
    pub fn records(&self) -> &[Record] {
        &self.records
    }
}
