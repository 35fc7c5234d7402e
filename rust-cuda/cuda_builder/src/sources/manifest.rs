//! A package's manifest, as far as it decides what the device's library is made from.

use std::fs;
use std::path::{Path, PathBuf};

use super::platform::is_device;
use super::toml::{self, Table, Value};
use super::{SourcesError, toml_error};
use crate::files::{self, FileError};

/// What `[package]` says that changes code or its symbols.
const OF_PACKAGE: [&str; 5] = ["build", "edition", "links", "name", "version"];

/// What a dependency says of where it is from. The sources, or the lock file, say what is there.
const OF_ORIGIN: [&str; 8] = [
    "branch",
    "git",
    "path",
    "registry",
    "registry-index",
    "rev",
    "tag",
    "version",
];

/// A `Cargo.toml`, and that of the workspace it belongs to.
pub(super) struct Manifest {
    pub dir: PathBuf,
    table: Table,
    /// The workspace's directory and manifest; none for a package alone.
    workspace: Option<(PathBuf, Table)>,
}

/// A dependency of the device's library.
pub(super) struct Dependency {
    /// The package's name, which may differ from the key.
    pub package: String,
    /// Where it lies, if it is of the source tree.
    pub path: Option<PathBuf>,
    /// What the manifests say of it, but for its origin.
    text: String,
}

impl Manifest {
    /// The manifest in a directory.
    pub fn read(dir: &Path) -> Result<Manifest, SourcesError> {
        let table = read_table(dir)?;
        let workspace = workspace_of(dir, &table)?;
        Ok(Manifest {
            dir: dir.to_owned(),
            table,
            workspace,
        })
    }

    /// The directory of the workspace, or of the package if it is in none.
    pub fn workspace_dir(&self) -> &Path {
        self.workspace.as_ref().map_or(&self.dir, |(dir, _)| dir)
    }

    pub fn package_name(&self) -> Result<String, SourcesError> {
        let package = self.table.get("package");
        let name = package.and_then(|package| package.get("name")?.as_str());
        Ok(name
            .ok_or_else(|| self.error("wanted a package with a name, found none"))?
            .to_owned())
    }

    pub fn crate_name(&self, package: &str) -> String {
        let lib = self.table.get("lib");
        let name = lib.and_then(|lib| lib.get("name")?.as_str());
        name.unwrap_or(package).replace('-', "_")
    }

    /// What the library depends on, on the device.
    pub fn dependencies(&self) -> Result<Vec<Dependency>, SourcesError> {
        let mut tables: Vec<&Value> = self.table.get("dependencies").into_iter().collect();
        let targets = self.table.get("target").and_then(Value::as_table);
        for (platform, target) in targets.into_iter().flatten() {
            if is_device(platform).map_err(|message| self.error(message))? {
                tables.extend(target.get("dependencies"));
            }
        }
        let entries = tables.into_iter().filter_map(Value::as_table).flatten();
        entries
            .map(|(key, value)| self.dependency(key, value))
            .collect()
    }

    fn dependency(&self, key: &str, value: &Value) -> Result<Dependency, SourcesError> {
        let (base, full, text) = if value.is_inherited() {
            let inherited = self.workspace.as_ref().and_then(|(dir, workspace)| {
                let all = workspace.get("workspace")?.get("dependencies")?;
                Some((dir, all.get(key)?))
            });
            let missing = || {
                self.error(format!(
                    "`{key}` is inherited, but the workspace has no such dependency"
                ))
            };
            let (dir, inherited) = inherited.ok_or_else(missing)?;
            let own = without_origin(value);
            (
                dir,
                inherited,
                format!("{key}: {} {own}", without_origin(inherited)),
            )
        } else {
            (
                &self.dir,
                value,
                format!("{key}: {}", without_origin(value)),
            )
        };
        let entry = |name| full.get(name).and_then(Value::as_str);
        let path = entry("path").map(|path| {
            let dir = base.join(path);
            fs::canonicalize(&dir).map_err(|e| FileError::new("find the dependency", &dir, e))
        });
        Ok(Dependency {
            package: entry("package").unwrap_or(key).to_owned(),
            path: path.transpose()?,
            text,
        })
    }

    /// The manifest as a text that is the same if it makes the same library, whatever else it says.
    pub fn canonical(&self) -> Result<String, SourcesError> {
        let mut lines = Vec::new();
        let package = self.table.get("package").and_then(Value::as_table);
        for (key, value) in package.into_iter().flatten() {
            if OF_PACKAGE.contains(&key.as_str()) {
                let inherited = || {
                    let (_, workspace) = self.workspace.as_ref()?;
                    workspace.get("workspace")?.get("package")?.get(key)
                };
                let value = if value.is_inherited() {
                    inherited()
                } else {
                    Some(value)
                };
                lines.extend(value.map(|value| format!("{key} = {value}")));
            }
        }
        for key in ["lib", "features"] {
            let value = self.table.get(key);
            lines.extend(value.map(|value| format!("{key} = {value}")));
        }
        lines.extend(self.dependencies()?.into_iter().map(|it| it.text));
        lines.push(String::new());
        Ok(lines.join("\n"))
    }

    /// What the root of the workspace says that changes the code of these packages: replaced packages, and how some are
    /// compiled. All other profile settings are the builder's.
    pub fn canonical_root<'a>(&self, packages: impl Iterator<Item = &'a str>) -> String {
        let root = self
            .workspace
            .as_ref()
            .map_or(&self.table, |(_, table)| table);
        let mut text = String::new();
        for key in ["patch", "replace"] {
            if let Some(value) = root.get(key) {
                text.push_str(&format!("{key} = {value}\n"));
            }
        }
        let profile = root
            .get("profile")
            .and_then(|profile| profile.get("release"));
        let overrides = profile.and_then(|profile| profile.get("package"));
        for package in packages.chain(["*"]) {
            if let Some(value) = overrides.and_then(|overrides| overrides.get(package)) {
                text.push_str(&format!("{package}: {value}\n"));
            }
        }
        text
    }

    fn error(&self, message: impl Into<String>) -> SourcesError {
        toml_error(&self.dir, message)
    }
}

/// A dependency's entry: a version, or a table.
fn without_origin(entry: &Value) -> Value {
    let mut table = entry.as_table().cloned().unwrap_or_default();
    table.retain(|key, _| !OF_ORIGIN.contains(&key.as_str()));
    Value::Table(table)
}

fn read_table(dir: &Path) -> Result<Table, SourcesError> {
    let text = files::read(&dir.join("Cargo.toml"))?;
    toml::parse(&text).map_err(|message| toml_error(dir, message))
}

/// The workspace that a package belongs to: the one that it names, else that of the nearest directory above with one.
fn workspace_of(dir: &Path, package: &Table) -> Result<Option<(PathBuf, Table)>, SourcesError> {
    let named = package
        .get("package")
        .and_then(|package| package.get("workspace")?.as_str());
    if let Some(named) = named {
        let root = dir.join(named);
        let root =
            fs::canonicalize(&root).map_err(|e| FileError::new("find the workspace", &root, e))?;
        let table = read_table(&root)?;
        return Ok(Some((root, table)));
    }
    for above in dir.ancestors() {
        if above.join("Cargo.toml").exists() {
            let table = read_table(above)?;
            if table.contains_key("workspace") {
                return Ok(Some((above.to_owned(), table)));
            }
        }
    }
    Ok(None)
}
