//! The sources that a kernel crate's PTX is made from, and their hash.

mod code;
mod lock;
mod manifest;
mod platform;
mod toml;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use hmac_sha256::Hash;

use crate::files::{self, FileError};
use code::without_comments;
use manifest::{Dependency, Manifest};
pub(crate) use platform::TARGET;

/// Directories of a package that its library is not made from.
const NOT_LIBRARY: [&str; 4] = ["benches", "examples", "target", "tests"];

/// Why the sources of a kernel crate could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourcesError {
    /// A file or directory could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A manifest or lock file is not what `cargo` takes.
    #[error("{}: {message}", path.display())]
    Manifest {
        /// The `Cargo.toml` or `Cargo.lock`.
        path: PathBuf,
        /// What was wanted and what was found.
        message: String,
    },
}

/// A kernel crate with the packages that it depends on, on the device.
#[derive(Debug)]
pub struct Sources {
    package: String,
    crate_name: String,
    crate_dir: PathBuf,
    workspace: PathBuf,
    /// What the workspace's manifest says that decides the code.
    root: String,
    /// Those of the source tree by name, this crate among them.
    local: BTreeMap<String, Local>,
}

/// A package of the source tree.
#[derive(Debug)]
struct Local {
    dir: PathBuf,
    /// What its manifest says that decides the code.
    manifest: String,
    /// The packages that it depends on and that are not of the source tree.
    foreign: BTreeSet<String>,
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
        let workspace = first.workspace_dir().to_owned();
        let package = first.package_name()?;
        let crate_name = first.crate_name(&package);

        let mut local = BTreeMap::new();
        let mut open = vec![Manifest::read(&crate_dir)?];
        while let Some(manifest) = open.pop() {
            let name = manifest.package_name()?;
            if local.contains_key(&name) {
                continue;
            }
            let mut foreign = BTreeSet::new();
            for Dependency { package, path, .. } in manifest.dependencies()? {
                match path {
                    Some(dir) => open.push(Manifest::read(&dir)?),
                    None => {
                        foreign.insert(package);
                    }
                }
            }
            let package = Local {
                manifest: manifest.canonical()?,
                dir: manifest.dir,
                foreign,
            };
            local.insert(name, package);
        }
        Ok(Sources {
            root: first.canonical_root(local.keys().map(String::as_str)),
            package,
            crate_name,
            workspace,
            crate_dir,
            local,
        })
    }

    /// The kernel crate's package name.
    pub fn package(&self) -> &str {
        &self.package
    }

    /// The kernel crate's name as a Rust identifier.
    pub fn crate_name(&self) -> &str {
        &self.crate_name
    }

    /// The kernel crate's directory, absolute.
    pub fn crate_dir(&self) -> &Path {
        &self.crate_dir
    }

    /// The directory of the workspace that the kernel crate belongs to: its own if it is in none.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// The names of the kernel crate and of its path dependencies, sorted.
    pub fn packages(&self) -> impl Iterator<Item = &str> {
        self.local.keys().map(String::as_str)
    }

    /// The SHA-256, in hexadecimal, of all that the library is made from in this source tree: what the manifests of the
    /// crate and of its path dependencies say of it, their `.rs` files without comments, and all other files in their
    /// `src` folders.
    ///
    /// The place of the tree, comments, and how lines are broken make no difference.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn hash(&self) -> Result<String, SourcesError> {
        let mut hash = Hash::new();
        let mut add = |name: &str, content: &[u8]| {
            // Name and length first, so that no two trees give the same stream of bytes.
            hash.update(format!("{name} {}\n", content.len()));
            hash.update(content);
        };
        add("Cargo.toml", self.root.as_bytes());
        for (package, Local { dir, manifest, .. }) in &self.local {
            add(&format!("{package}/Cargo.toml"), manifest.as_bytes());
            for (name, path) in library_files(dir)? {
                let name = format!("{package}/{name}");
                if name.ends_with(".rs") {
                    add(&name, without_comments(&files::read(&path)?).as_bytes());
                } else {
                    add(&name, &files::read_bytes(&path)?);
                }
            }
        }
        Ok(hexadecimal(&hash.finalize()))
    }

    /// The packages from registries that the library is made with, as the lock file has them: `half 2.7.1`. None if
    /// there is no lock file.
    ///
    /// # Errors
    ///
    /// The lock file cannot be read.
    pub fn registry_packages(&self) -> Result<Vec<String>, SourcesError> {
        let path = self.lock_file();
        if !path.exists() {
            return Ok(Vec::new());
        }
        let lock = toml::parse(&files::read(&path)?)
            .map_err(|message| SourcesError::Manifest { path, message })?;
        let roots = self.local.iter();
        let roots = roots.map(|(name, local)| (name.clone(), local.foreign.clone()));
        Ok(lock::packages(&lock, &roots.collect()))
    }

    /// The workspace's lock file, whether it exists or not.
    pub(crate) fn lock_file(&self) -> PathBuf {
        self.workspace.join("Cargo.lock")
    }

    /// The files and directories which, when they change, may change the PTX. A directory stands for all that is
    /// below it, so that a new file counts.
    pub(crate) fn watched(&self) -> Result<BTreeSet<PathBuf>, SourcesError> {
        let roots = [self.workspace.join("Cargo.toml"), self.lock_file()];
        let mut watched = BTreeSet::from(roots.map(|path| path));
        for Local { dir, .. } in self.local.values() {
            watched.insert(dir.join("Cargo.toml"));
            let files = library_files(dir)?.into_keys();
            watched.extend(files.map(|name| dir.join(name.split('/').next().unwrap_or(&name))));
        }
        // Cargo takes a watched file that does not exist as changed each time.
        watched.retain(|path| path.exists());
        Ok(watched)
    }
}

/// The `.rs` files of a package and all files in its `src`, by their path from the package's root with `/`.
fn library_files(dir: &Path) -> Result<BTreeMap<String, PathBuf>, SourcesError> {
    let mut files = BTreeMap::new();
    add_files(dir, "", &mut files)?;
    Ok(files)
}

fn add_files(
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
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            let skipped = prefix.is_empty() && NOT_LIBRARY.contains(&name);
            if !skipped && !path.join("Cargo.toml").exists() {
                add_files(&path, &format!("{prefix}{name}/"), files)?;
            }
        } else if name.ends_with(".rs") || prefix.starts_with("src/") {
            files.insert(format!("{prefix}{name}"), path);
        }
    }
    Ok(())
}

/// What is wrong with the `Cargo.toml` of a directory.
fn toml_error(dir: &Path, message: impl Into<String>) -> SourcesError {
    SourcesError::Manifest {
        path: dir.join("Cargo.toml"),
        message: message.into(),
    }
}

/// Bytes as two hexadecimal digits each.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
