//! Processes of their own for tests, and the driver that they open.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, id};
use std::sync::OnceLock;

use libcuda::LIBRARY_VARIABLE;

/// The environment variable that is set in processes which the tests start.
pub const CHILD: &str = "LIBCUDA_TEST_CHILD";

/// Runs `body` in a new process with the given environment variables; that process runs only the test `name`.
pub fn in_own_process(name: &str, environment: &[(&str, &OsStr)], body: impl FnOnce()) {
    const DONE: &str = "the test's body has run to its end";
    if env::var_os(CHILD).is_some() {
        body();
        println!("{DONE}");
        return;
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env_remove(LIBRARY_VARIABLE)
        .env(CHILD, "1")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stdout.contains(DONE),
        "{name} in its own process: {}\n{stdout}\n{stderr}",
        output.status
    );
}

/// The fake driver, compiled once for the tests of a process. Without rustc, it prints that the test is skipped and
/// returns `None`.
fn fake_driver() -> Option<&'static Path> {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        let rustc = env::var_os("RUSTC").unwrap_or("rustc".into());
        if let Err(error) = Command::new(&rustc).arg("--version").output() {
            println!("skipped: no rustc that compiles a driver to test with: {error}");
            return None;
        }
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fake-{}", id()));
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("libcuda.so.1");
        let status = Command::new(rustc)
            .args(["--edition=2024", "--crate-type=cdylib", "--crate-name=cuda"])
            .args(["-Cpanic=abort", "-o"])
            .arg(&file)
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/fake_driver/lib.rs"
            ))
            .status()
            .unwrap();
        assert!(status.success(), "the fake driver does not compile");
        Some(file)
    });
    file.as_deref()
}

/// The fake driver for the process that starts the test in a new process; that one gets an empty path. `None` if the
/// test is skipped.
pub fn fake_driver_for_child() -> Option<&'static Path> {
    match env::var_os(CHILD) {
        Some(_) => Some(Path::new("")),
        None => fake_driver(),
    }
}

/// Runs `body` in a new process with the fake driver, as [`in_own_process`] does.
pub fn in_fake_driver(name: &str, body: impl FnOnce()) {
    let Some(file) = fake_driver_for_child() else {
        return;
    };
    in_own_process(name, &[(LIBRARY_VARIABLE, file.as_os_str())], body);
}

/// The value that each function of the fake driver returns. `tests/fake_driver/lib.rs` has the same function.
pub const fn code_of(name: &str) -> u32 {
    let name = name.as_bytes();
    let mut code = 7;
    let mut i = 0;
    while i < name.len() {
        code = (code * 31 + name[i] as u32) % 1_000_003;
        i += 1;
    }
    code
}
