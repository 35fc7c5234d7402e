//! Finding a compiler that makes PTX: a new enough `rustc` with its `cargo` and the sources of `core`.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable that names the `rustc` to use.
pub(crate) const DEVICE_RUSTC: &str = "WARPROW_DEVICE_RUSTC";

/// The `rustc` of the system: on Debian its sources are a package away, whatever toolchain `rustup` has active.
const SYSTEM_RUSTC: &str = "/usr/bin/rustc";

/// The least version, tested: older ones lack parts of `core::arch::nvptx` or miscompile barriers in its back end.
const LEAST: (u32, u32) = (1, 95);

/// A compiler that makes PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    rustc: PathBuf,
    cargo: PathBuf,
    sources: PathBuf,
    compiler: String,
}

/// Why no toolchain was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolchainError {
    /// No place has a toolchain that serves; one line for each place.
    #[error("no Rust toolchain that makes PTX: {}", .0.join("; "))]
    NotFound(Vec<String>),
    /// The one that `WARPROW_DEVICE_RUSTC` names does not serve.
    #[error("{DEVICE_RUSTC}: {0}")]
    Insisted(String),
}

impl Toolchain {
    /// The toolchain to build kernels with: the one whose `rustc` the environment variable `WARPROW_DEVICE_RUSTC`
    /// names; else the active one (`RUSTC`, which `cargo` sets for build scripts, or `rustc` on the path) if it has the
    /// component `rust-src`; else `/usr/bin/rustc` if its sources are installed.
    ///
    /// # Errors
    ///
    /// None of them serves, with the reason for each; or the one that the variable names does not: then no other is
    /// tried.
    pub fn find() -> Result<Toolchain, ToolchainError> {
        let mut reasons = Vec::new();
        for candidate in candidates() {
            match Toolchain::at(&candidate) {
                Ok(toolchain) => return Ok(toolchain),
                Err(reason) => reasons.push(reason),
            }
        }
        if insisted().is_some() {
            return Err(ToolchainError::Insisted(reasons.join("; ")));
        }
        Err(ToolchainError::NotFound(reasons))
    }

    /// The toolchain among those that [`find`](Toolchain::find) looks at whose [`compiler`](Toolchain::compiler) is
    /// this one: the one that can make a PTX file anew, byte for byte.
    pub fn find_compiler(compiler: &str) -> Option<Toolchain> {
        let mut found = candidates()
            .into_iter()
            .filter_map(|rustc| Toolchain::at(rustc).ok());
        found.find(|toolchain| toolchain.compiler == compiler)
    }

    /// The toolchain that this `rustc` belongs to.
    ///
    /// # Errors
    ///
    /// It does not run, is too old, or has no `cargo` or no sources beside it: a sentence that says which.
    pub fn at(rustc: impl AsRef<Path>) -> Result<Toolchain, String> {
        let asked = rustc.as_ref();
        let version = ask(asked, &["-Vv"])?;
        let sysroot = PathBuf::from(ask(asked, &["--print", "sysroot"])?.trim());
        let field = |name: &str| {
            version
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        let release = field("release:").unwrap_or_default();
        if minor_version(release).is_none_or(|release| release < LEAST) {
            let (major, minor) = LEAST;
            return Err(format!(
                "{} is {release}, PTX needs {major}.{minor} or newer",
                asked.display()
            ));
        }
        // What is asked may be rustup's proxy, which reads the environment and the working directory: the real
        // programs are in the sysroot.
        let beside = |name: &str| {
            let name = format!("{name}{}", env::consts::EXE_SUFFIX);
            let places = [sysroot.join("bin").join(&name), asked.with_file_name(&name)];
            places
                .into_iter()
                .find(|path| path.is_absolute() && path.exists())
        };
        let rustc = beside("rustc").unwrap_or_else(|| asked.to_owned());
        let cargo =
            beside("cargo").ok_or_else(|| format!("{} has no cargo beside it", rustc.display()))?;
        let sources = sysroot.join("lib/rustlib/src/rust");
        if !sources.join("library/core/src/lib.rs").exists() {
            let wanted = sources.join("library");
            return Err(format!(
                "{} ({release}) has no sources of `core` at {}",
                rustc.display(),
                wanted.display()
            ));
        }
        let first_line = version.lines().next().unwrap_or_default();
        let compiler = format!(
            "{first_line}, LLVM {}",
            field("LLVM version:").unwrap_or("unknown")
        );
        Ok(Toolchain {
            rustc,
            cargo,
            sources,
            compiler,
        })
    }

    /// The compiler.
    pub fn rustc(&self) -> &Path {
        &self.rustc
    }

    /// The `cargo` of the same toolchain.
    pub fn cargo(&self) -> &Path {
        &self.cargo
    }

    /// The directory of the standard library's sources: `library/core` is below it.
    pub fn sources(&self) -> &Path {
        &self.sources
    }

    /// The compiler's version and commit and its LLVM's version, on one line.
    pub fn compiler(&self) -> &str {
        &self.compiler
    }

    /// Files that change when a toolchain comes that [`find`](Toolchain::find) would take. Only those that exist: cargo
    /// takes a watched file that does not exist as changed each time.
    pub(crate) fn watched() -> Vec<PathBuf> {
        let active = ask(&active(), &["--print", "sysroot"]).unwrap_or_default();
        let components = Path::new(active.trim()).join("lib/rustlib/components");
        [components, PathBuf::from(SYSTEM_RUSTC)]
            .into_iter()
            .filter(|path| path.is_file())
            .collect()
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at {}, sources at {}",
            self.compiler,
            self.rustc.display(),
            self.sources.display()
        )
    }
}

fn insisted() -> Option<OsString> {
    env::var_os(DEVICE_RUSTC).filter(|path| !path.is_empty())
}

fn active() -> PathBuf {
    env::var_os("RUSTC")
        .unwrap_or_else(|| "rustc".into())
        .into()
}

fn candidates() -> Vec<PathBuf> {
    match insisted() {
        Some(rustc) => vec![rustc.into()],
        None => vec![active(), SYSTEM_RUSTC.into()],
    }
}

fn ask(rustc: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = program(rustc).args(arguments).output();
    let output = output.map_err(|error| format!("{} does not run: {error}", rustc.display()))?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stderr);
        let first = messages.lines().next().unwrap_or_default();
        return Err(format!(
            "{} {} failed ({}): {first}",
            rustc.display(),
            arguments.join(" "),
            output.status
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A command that runs a toolchain's program with its own libraries. Cargo and rustup put those of the outer toolchain
/// in `LD_LIBRARY_PATH`, and a compiler of the same version that is installed elsewhere would load them, and take their
/// directory for its sysroot.
pub(crate) fn program(path: &Path) -> Command {
    let mut command = Command::new(path);
    if let Some(libraries) = env::var_os("LD_LIBRARY_PATH") {
        let foreign = env::split_paths(&libraries).filter(|dir| !is_toolchain_library(dir));
        match env::join_paths(foreign) {
            Ok(libraries) if !libraries.is_empty() => command.env("LD_LIBRARY_PATH", libraries),
            _ => command.env_remove("LD_LIBRARY_PATH"),
        };
    }
    command
}

fn is_toolchain_library(dir: &Path) -> bool {
    dir.join("rustlib").is_dir() || dir.components().any(|part| part.as_os_str() == "rustlib")
}

fn minor_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(minor_version("1.96.0-nightly"), Some((1, 96)));
        assert!(minor_version("1.100.0").unwrap() > LEAST);
        assert!(minor_version("1.94.1").unwrap() < LEAST);
        assert_eq!(minor_version(""), None);
    }

    #[test]
    fn a_program_that_is_no_rustc_is_refused_with_its_path() {
        let missing = Toolchain::at("/nonexistent/rustc").unwrap_err();
        assert!(
            missing.contains("/nonexistent/rustc does not run"),
            "{missing}"
        );
        let other = Toolchain::at("/bin/true").unwrap_err();
        assert!(
            other.contains("/bin/true is , PTX needs 1.95 or newer"),
            "{other}"
        );
    }
}
