//! The sources that a kernel crate's PTX is made from, and their hash.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cargo_platform::{Cfg, Platform};
use sha2::{Digest, Sha256};
use toml::{Table, Value};

use crate::files::{self, FileError};

/// The target that kernels are compiled for.
pub(crate) const TARGET: &str = "nvptx64-nvidia-cuda";

/// What `rustc --print cfg --target nvptx64-nvidia-cuda` says, as far as manifests ask.
const TARGET_CFG: [&str; 7] = [
    "panic=\"abort\"",
    "target_arch=\"nvptx64\"",
    "target_endian=\"little\"",
    "target_env=\"\"",
    "target_os=\"cuda\"",
    "target_pointer_width=\"64\"",
    "target_vendor=\"nvidia\"",
];

/// Directories of a package that its library is not made from.
const NOT_LIBRARY: [&str; 4] = ["benches", "examples", "target", "tests"];

/// Why the sources of a kernel crate could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourcesError {
    /// A file or directory could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A manifest is not what `cargo` takes.
    #[error("{}: {message}", manifest.display())]
    Manifest {
        /// The `Cargo.toml`.
        manifest: PathBuf,
        /// What was wanted and what was found.
        message: String,
    },
}

/// The SHA-256, in hexadecimal, of all that the kernel crate in `crate_dir` is made from in this source tree: the `.rs`
/// files and the manifests of the crate and of the path dependencies that it has on the device.
///
/// The place of the tree and the line ends of its files make no difference. Crates from a registry, the workspace's
/// manifest and the lock file are not part of it.
///
/// # Errors
///
/// A manifest or a source file cannot be read.
pub fn sources_hash(crate_dir: impl AsRef<Path>) -> Result<String, SourcesError> {
    Sources::discover(crate_dir)?.hash()
}

/// A kernel crate with the path dependencies that it has on the device.
#[derive(Debug)]
pub struct Sources {
    package: String,
    crate_name: String,
    crate_dir: PathBuf,
    workspace: PathBuf,
    /// By package name: a path dependency is in a source tree once.
    dirs: BTreeMap<String, PathBuf>,
}

impl Sources {
    /// Reads the manifests, beginning with the one in `crate_dir`.
    ///
    /// # Errors
    ///
    /// A manifest cannot be read or is not a package's.
    pub fn discover(crate_dir: impl AsRef<Path>) -> Result<Sources, SourcesError> {
        let dir = crate_dir.as_ref();
        let crate_dir =
            fs::canonicalize(dir).map_err(|e| FileError::new("find the kernel crate", dir, e))?;
        let first = Manifest::read(&crate_dir)?;
        let workspace = workspace_root(&crate_dir)?;
        let inherited = match &workspace {
            Some(root) => Manifest::read(root)?,
            None => Manifest::read(&crate_dir)?,
        };
        let package = first.package_name()?;
        let crate_name = first.crate_name(&package);

        let mut dirs = BTreeMap::new();
        let mut open = vec![first];
        while let Some(manifest) = open.pop() {
            if dirs
                .insert(manifest.package_name()?, manifest.dir.clone())
                .is_none()
            {
                for dependency in manifest.path_dependencies(&inherited)? {
                    open.push(Manifest::read(&dependency)?);
                }
            }
        }
        Ok(Sources {
            package,
            crate_name,
            workspace: workspace.unwrap_or(crate_dir.clone()),
            crate_dir,
            dirs,
        })
    }

    /// The kernel crate's package name.
    pub fn package(&self) -> &str {
        &self.package
    }

    /// The names of the kernel crate and of its path dependencies on the device, in alphabetical order.
    pub fn packages(&self) -> impl Iterator<Item = &str> {
        self.dirs.keys().map(String::as_str)
    }

    /// The name that `rustc` knows the kernel crate by.
    pub(crate) fn crate_name(&self) -> &str {
        &self.crate_name
    }

    pub(crate) fn crate_dir(&self) -> &Path {
        &self.crate_dir
    }

    /// The root of the kernel crate's workspace: where its lock file is.
    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// See [`sources_hash`].
    ///
    /// # Errors
    ///
    /// A source file cannot be read.
    pub fn hash(&self) -> Result<String, SourcesError> {
        let mut hasher = Sha256::new();
        for (package, dir) in &self.dirs {
            let mut files = BTreeMap::new();
            library_files(dir, "", &mut files)?;
            for (name, path) in files {
                let text = files::read(&path)?.replace("\r\n", "\n");
                // Length and name first, so that no two trees give the same stream of bytes.
                hasher.update(format!("{package}/{name} {}\n", text.len()));
                hasher.update(text);
            }
        }
        Ok(hasher
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }

    /// The files and directories which, when they change, may change the PTX. A directory stands for all that is
    /// below it, so that a new file counts.
    pub(crate) fn watched(&self) -> Result<Vec<PathBuf>, SourcesError> {
        let mut watched = Vec::new();
        for dir in self.dirs.values() {
            let mut files = BTreeMap::new();
            library_files(dir, "", &mut files)?;
            let tops = files
                .keys()
                .map(|name| name.split('/').next().unwrap_or(name));
            watched.extend(tops.map(|top| dir.join(top)));
            watched.dedup();
        }
        Ok(watched)
    }
}

/// Adds the manifest and the `.rs` files at and below `dir`, keyed by their path from the package's root with `/`.
fn library_files(
    dir: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, PathBuf>,
) -> Result<(), SourcesError> {
    let failed = |e| FileError::new("list", dir, e);
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let top = prefix.is_empty();
        if path.is_dir() {
            let skipped = name.starts_with('.') || top && NOT_LIBRARY.contains(&name);
            if !skipped && !path.join("Cargo.toml").exists() {
                library_files(&path, &format!("{prefix}{name}/"), files)?;
            }
        } else if name.ends_with(".rs") || top && name == "Cargo.toml" {
            files.insert(format!("{prefix}{name}"), path);
        }
    }
    Ok(())
}

fn workspace_root(crate_dir: &Path) -> Result<Option<PathBuf>, SourcesError> {
    for dir in crate_dir.ancestors() {
        if dir.join("Cargo.toml").exists() && Manifest::read(dir)?.table.contains_key("workspace") {
            return Ok(Some(dir.to_owned()));
        }
    }
    Ok(None)
}

struct Manifest {
    dir: PathBuf,
    table: Table,
}

impl Manifest {
    fn read(dir: &Path) -> Result<Manifest, SourcesError> {
        let path = dir.join("Cargo.toml");
        let text = files::read(&path)?;
        let table = text
            .parse()
            .map_err(|e: toml::de::Error| error(&path, e.to_string()))?;
        Ok(Manifest {
            dir: dir.to_owned(),
            table,
        })
    }

    fn error(&self, message: impl Into<String>) -> SourcesError {
        error(&self.dir.join("Cargo.toml"), message.into())
    }

    fn package_name(&self) -> Result<String, SourcesError> {
        let name = self
            .table
            .get("package")
            .and_then(|package| package.get("name"))
            .and_then(Value::as_str);
        Ok(name
            .ok_or_else(|| self.error("wanted a package with a name, found none"))?
            .to_owned())
    }

    fn crate_name(&self, package: &str) -> String {
        let name = self
            .table
            .get("lib")
            .and_then(|lib| lib.get("name"))
            .and_then(Value::as_str);
        name.unwrap_or(package).replace('-', "_")
    }

    /// The directories of the path dependencies that the library has on the device.
    fn path_dependencies(&self, workspace: &Manifest) -> Result<Vec<PathBuf>, SourcesError> {
        let mut tables: Vec<&Value> = self.table.get("dependencies").into_iter().collect();
        let cfg: Vec<Cfg> = TARGET_CFG
            .iter()
            .filter_map(|cfg| Cfg::from_str(cfg).ok())
            .collect();
        let targets = self.table.get("target").and_then(Value::as_table);
        for (platform, target) in targets.into_iter().flatten() {
            let parsed = Platform::from_str(platform).map_err(|e| self.error(e.to_string()))?;
            if parsed.matches(TARGET, &cfg) {
                tables.extend(target.get("dependencies"));
            }
        }
        let mut dirs = Vec::new();
        for (name, dependency) in tables.into_iter().filter_map(Value::as_table).flatten() {
            let (base, dependency) =
                if dependency.get("workspace").and_then(Value::as_bool) == Some(true) {
                    let all = workspace
                        .table
                        .get("workspace")
                        .and_then(|workspace| workspace.get("dependencies"));
                    let inherited = all.and_then(|all| all.get(name)).ok_or_else(|| {
                        self.error(format!(
                            "`{name}` is inherited, but the workspace has no such dependency"
                        ))
                    })?;
                    (&workspace.dir, inherited)
                } else {
                    (&self.dir, dependency)
                };
            if let Some(path) = dependency.get("path").and_then(Value::as_str) {
                let dir = base.join(path);
                let dir = fs::canonicalize(&dir)
                    .map_err(|e| FileError::new("find the dependency", &dir, e))?;
                dirs.push(dir);
            }
        }
        Ok(dirs)
    }
}

fn error(manifest: &Path, message: String) -> SourcesError {
    SourcesError::Manifest {
        manifest: manifest.to_owned(),
        message,
    }
}
