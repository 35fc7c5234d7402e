//! The build inside the build: `cargo` compiles the kernel crate for the device, undisturbed by the outer build.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hmac_sha256::Hash;

use crate::files;
use crate::sources::{TARGET, hexadecimal};
use crate::stamp;
use crate::toolchain::program;
use crate::{Arch, BuildError, Sources, Toolchain};

/// Variables of the outer build that the inner one must not see, besides those that begin with `CARGO`: how it
/// compiles (flags, wrappers, a toolchain), and what cargo tells its build scripts.
const OUTER: [&str; 19] = [
    "CLIPPY_ARGS",
    "DEBUG",
    "HOST",
    "MAKEFLAGS",
    "MFLAGS",
    "NUM_JOBS",
    "OPT_LEVEL",
    "OUT_DIR",
    "PROFILE",
    "RUSTC",
    "RUSTC_BOOTSTRAP",
    "RUSTC_LINKER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
    "TARGET",
];

/// Where cargo finds its registries and how it reaches them: the inner build needs that too.
const KEPT: [&str; 6] = [
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_SOURCE_",
];

/// The profile: one module, merged and optimised as a whole, which is why no linker is needed.
pub(crate) const PROFILE: [(&str, &str); 9] = [
    ("CODEGEN_UNITS", "1"),
    ("DEBUG", "none"),
    ("DEBUG_ASSERTIONS", "false"),
    ("INCREMENTAL", "false"),
    ("LTO", "fat"),
    ("OPT_LEVEL", "3"),
    ("OVERFLOW_CHECKS", "false"),
    ("PANIC", "abort"),
    ("STRIP", "none"),
];

/// What `#[kernel]` asks before it makes entry points.
const ENTRY_POINTS: &str = "cuda_entry_points";

/// Compiles the kernel crate and returns the PTX as the compiler wrote it. `target_dir` keeps `core` between builds.
pub(crate) fn compile(
    toolchain: &Toolchain,
    sources: &Sources,
    arch: Arch,
    target_dir: &Path,
) -> Result<String, BuildError> {
    check_arch(toolchain, arch)?;
    let flags = stamp::flags(arch);
    let target_dir = target_dir.join(directory_name(toolchain, sources, &flags));
    let output = run(command(toolchain, sources, &flags, &target_dir))?;
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    let package = sources.package().to_owned();
    if !output.status.success() {
        return Err(match messages.contains("error: could not compile") {
            true => BuildError::Compile { package, messages },
            false => BuildError::Cargo { package, messages },
        });
    }
    // Warnings: cargo shows what a build script writes to stderr when it is asked to be verbose.
    eprint!("{messages}");
    let assembly = target_dir
        .join(TARGET)
        .join("release/deps")
        .join(format!("{}.s", sources.crate_name()));
    Ok(files::read(&assembly)?)
}

fn check_arch(toolchain: &Toolchain, arch: Arch) -> Result<(), BuildError> {
    let mut command = program(toolchain.rustc());
    command.args(["--print", "target-cpus", "--target", TARGET]);
    let listed = run(command)?.stdout;
    let listed = String::from_utf8_lossy(&listed);
    let known = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let known: Vec<&str> = known.filter(|name| name.starts_with("sm_")).collect();
    if known.contains(&arch.to_string().as_str()) {
        return Ok(());
    }
    Err(BuildError::UnknownArch {
        arch,
        compiler: toolchain.compiler().to_owned(),
        known: known.join(" "),
    })
}

/// The compiler names its output after the crate alone. So that no other build overwrites it while cargo holds it to be
/// up to date, each combination of compiler, flags and workspace has its own directory.
fn directory_name(toolchain: &Toolchain, sources: &Sources, flags: &[String]) -> String {
    let mut hash = Hash::new();
    let paths =
        [toolchain.rustc(), sources.workspace()].map(|path| path.as_os_str().as_encoded_bytes());
    for part in paths
        .into_iter()
        .chain([toolchain.compiler().as_bytes(), flags.join(" ").as_bytes()])
    {
        hash.update(part);
        hash.update([0]);
    }
    hexadecimal(&hash.finalize()[..8])
}

fn command(
    toolchain: &Toolchain,
    sources: &Sources,
    flags: &[String],
    target_dir: &Path,
) -> Command {
    let mut command = program(toolchain.cargo());
    for (name, _) in env::vars_os().filter(|(name, _)| is_of_outer_build(name)) {
        command.env_remove(name);
    }
    command
        .env("RUSTC", toolchain.rustc())
        // A stable compiler takes the unstable features that kernels need only so.
        .env("RUSTC_BOOTSTRAP", "1")
        // Empty, not absent: this also overrides a wrapper in the user's configuration.
        .env("RUSTC_WRAPPER", "")
        .env("RUSTC_WORKSPACE_WRAPPER", "")
        .env("CARGO_BUILD_BUILD_DIR", target_dir)
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            encoded_flags(toolchain, sources, flags),
        );
    for (name, value) in PROFILE {
        command.env(format!("CARGO_PROFILE_RELEASE_{name}"), value);
    }
    command.current_dir(sources.crate_dir());
    command.args([
        "rustc",
        "--release",
        "--lib",
        "--crate-type",
        "cdylib",
        "-Zbuild-std=core",
        "--target",
        TARGET,
    ]);
    command.args(["--quiet", "--color", "never"]);
    command
        .arg("--manifest-path")
        .arg(sources.crate_dir().join("Cargo.toml"));
    command.arg("--target-dir").arg(target_dir);
    if sources.workspace().join("Cargo.lock").exists() {
        command.arg("--locked");
    }
    command.args(["--", "--emit=asm", "-Zno-link"]);
    // For this crate alone: the kernels of its dependencies are in PTX of their own.
    command.args(["--cfg", ENTRY_POINTS]);
    command
}

fn is_of_outer_build(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let kept = KEPT.iter().any(|prefix| name.starts_with(prefix));
    OUTER.contains(&name) || name.starts_with("DEP_") || name.starts_with("CARGO") && !kept
}

/// The flags, with those that keep this machine's directories out of the PTX: a panic's location is in its text.
fn encoded_flags(toolchain: &Toolchain, sources: &Sources, flags: &[String]) -> OsString {
    let mut encoded = OsString::from(flags.join("\x1f"));
    encoded.push(format!("\x1f--check-cfg=cfg({ENTRY_POINTS})"));
    let mut remap = |from: &Path, to: &str| {
        encoded.push("\x1f--remap-path-prefix=");
        encoded.push(from);
        encoded.push(to);
    };
    remap(sources.workspace(), "=/kernels");
    if let Some(home) = cargo_home() {
        remap(&home, "=/cargo");
    }
    remap(toolchain.sources(), "=/rustc");
    encoded
}

fn cargo_home() -> Option<PathBuf> {
    let home = || env::home_dir().map(|home| home.join(".cargo"));
    env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home)
}

fn run(mut command: Command) -> Result<Output, BuildError> {
    command.output().map_err(|source| BuildError::Run {
        program: command.get_program().into(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inner_build_sees_registries_but_not_how_the_outer_one_compiles() {
        for name in [
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_PROFILE_RELEASE_LTO",
            "CARGO_TARGET_DIR",
            "RUSTUP_TOOLCHAIN",
        ] {
            assert!(is_of_outer_build(OsStr::new(name)), "{name}");
        }
        for name in [
            "CARGO_HOME",
            "CARGO_NET_OFFLINE",
            "CARGO_HTTP_PROXY",
            "RUSTUP_HOME",
            "PATH",
            "HOME",
        ] {
            assert!(!is_of_outer_build(OsStr::new(name)), "{name}");
        }
    }
}
