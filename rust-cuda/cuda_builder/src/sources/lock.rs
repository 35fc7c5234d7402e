//! The part of a lock file that decides what a kernel crate is made from.

use std::collections::{BTreeMap, BTreeSet};

use super::toml::{Table, Value};

/// One package of the lock file.
struct Locked<'a> {
    version: &'a str,
    /// Where it is from; a package of the source tree has none.
    source: Option<&'a str>,
    /// What it depends on: `name`, or where that is not enough `name version` or `name version (source)`.
    dependencies: Vec<&'a str>,
}

/// The packages that are not of the source tree and that the device's library is made with: `name version`, and the
/// source if that is no registry. `roots` has the names of such packages that each package of the source tree asks for
/// by itself.
///
/// What these ask for in turn is all in the list, for whatever target: the lock file does not tell.
pub(crate) fn packages(lock: &Table, roots: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let all = by_name(lock);
    let mut open: Vec<(&str, &Locked<'_>)> = Vec::new();
    for (package, wanted) in roots {
        let local = all.get(package.as_str()).into_iter().flatten();
        let asked = local
            .filter(|package| package.source.is_none())
            .flat_map(|package| &package.dependencies);
        let of_device = asked.filter(|dependency| wanted.contains(name_of(dependency)));
        open.extend(of_device.flat_map(|dependency| find(&all, dependency)));
    }
    let mut used = BTreeSet::new();
    while let Some((name, package)) = open.pop() {
        if used.insert(describe(name, package)) {
            let asked = package.dependencies.iter();
            open.extend(asked.flat_map(|dependency| find(&all, dependency)));
        }
    }
    used.into_iter().collect()
}

fn by_name(lock: &Table) -> BTreeMap<&str, Vec<Locked<'_>>> {
    let packages = lock.get("package").and_then(Value::as_array);
    let mut by_name: BTreeMap<&str, Vec<Locked<'_>>> = BTreeMap::new();
    for package in packages.unwrap_or_default() {
        let text = |key| package.get(key).and_then(Value::as_str);
        let dependencies = package.get("dependencies").and_then(Value::as_array);
        let locked = Locked {
            version: text("version").unwrap_or_default(),
            source: text("source"),
            dependencies: dependencies
                .unwrap_or_default()
                .iter()
                .filter_map(Value::as_str)
                .collect(),
        };
        by_name
            .entry(text("name").unwrap_or_default())
            .or_default()
            .push(locked);
    }
    by_name
}

fn name_of(dependency: &str) -> &str {
    dependency.split(' ').next().unwrap_or(dependency)
}

/// The packages that a dependency of the lock file names: one.
fn find<'a>(
    all: &'a BTreeMap<&str, Vec<Locked<'a>>>,
    dependency: &'a str,
) -> impl Iterator<Item = (&'a str, &'a Locked<'a>)> {
    let mut parts = dependency.splitn(3, ' ');
    let name = parts.next().unwrap_or_default();
    let (version, source) = (parts.next(), parts.next());
    let source = source.map(|source| source.trim_matches(['(', ')']));
    let named = all.get(name).into_iter().flatten();
    named
        .filter(move |package| version.is_none_or(|version| package.version == version))
        .filter(move |package| source.is_none_or(|source| package.source == Some(source)))
        .map(move |package| (name, package))
}

fn describe(name: &str, package: &Locked<'_>) -> String {
    let version = package.version;
    match package.source {
        Some(source) if !source.starts_with("registry+") => format!("{name} {version} ({source})"),
        _ => format!("{name} {version}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::toml::parse;
    use super::*;

    const LOCK: &str = r#"
version = 4
[[package]]
name = "kernels"
version = "0.1.0"
dependencies = ["device-lib", "half 2.7.1", "serde"]
[[package]]
name = "device-lib"
version = "0.1.0"
dependencies = ["half 1.0.0", "rayon"]
[[package]]
name = "half"
version = "1.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
[[package]]
name = "half"
version = "2.7.1"
source = "registry+https://github.com/rust-lang/crates.io-index"
dependencies = ["cfg-if", "other 0.3.0 (git+https://example.org/other#12ab)"]
[[package]]
name = "cfg-if"
version = "1.0.4"
source = "registry+https://github.com/rust-lang/crates.io-index"
dependencies = ["half 2.7.1"]
[[package]]
name = "other"
version = "0.3.0"
source = "git+https://example.org/other#12ab"
[[package]]
name = "rayon"
version = "1.12.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
"#;

    fn used(roots: &[(&str, &[&str])]) -> Vec<String> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let roots = roots
            .iter()
            .map(|&(package, names)| (package.to_owned(), owned(names)))
            .collect();
        packages(&parse(LOCK).unwrap(), &roots)
    }

    #[test]
    fn the_packages_are_those_that_can_be_reached_on_the_device() {
        let half = ["cfg-if 1.0.4", "half 2.7.1"];
        let other = "other 0.3.0 (git+https://example.org/other#12ab)";
        assert_eq!(
            used(&[("kernels", &["half"]), ("device-lib", &[])]),
            [&half[..], &[other]].concat()
        );
        assert_eq!(used(&[("device-lib", &["half"])]), ["half 1.0.0"]);
        assert_eq!(used(&[("device-lib", &["rayon"])]), ["rayon 1.12.0"]);
        assert_eq!(used(&[("kernels", &[])]), [""; 0]);
        assert_eq!(used(&[("unknown", &["half"])]), [""; 0]);
    }
}
