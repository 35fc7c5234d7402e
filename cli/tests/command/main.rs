//! The command as a program: what it prints where, its exit codes, and the files that it leaves.

mod files;
mod operands;
mod project;
#[cfg(target_os = "linux")]
mod surroundings;
#[cfg(feature = "bench")]
mod tune;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A matrix of 3 x 3.
const SMALL: &str = "%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1\n2 3 2\n3 1 3\n";

/// The command on the emulator.
fn warprow(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warprow"));
    command
        .args(arguments)
        .env("WARPROW_DEVICE", "emulator")
        .env_remove("COLUMNS");
    command
}

/// A folder with the small matrix in `a.mtx`, in which commands are run.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("a.mtx", SMALL);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    fn run(&self, arguments: &[&str]) -> Output {
        warprow(arguments)
            .current_dir(self.0.path())
            .output()
            .unwrap()
    }

    /// The standard output of a command that must succeed, and print no errors.
    fn printed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (stdout, stderr) = texts(&output);
        assert_eq!(
            (output.status.code(), stderr.as_str()),
            (Some(0), ""),
            "{arguments:?}: {stdout}"
        );
        stdout
    }

    /// The message of a command that must fail with that code, print one message and change no file.
    fn refused(&self, arguments: &[&str], code: i32) -> String {
        let before = self.names();
        let output = self.run(arguments);
        let (stdout, stderr) = texts(&output);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {stdout}{stderr}"
        );
        assert!(stderr.starts_with("error: "), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
        assert_eq!(self.names(), before, "{arguments:?}");
        stderr
    }
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

#[test]
fn info_tells_size_lengths_symmetry_products_and_plans() {
    // Long lines are wrapped.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = Folder::new().printed(&["info", "a.mtx", "--features", "16"]);
    for wanted in [
        "matrix     a.mtx: 3 x 3, 3 nonzeros, 1.0 a row",
        "rows       1 to 1 nonzeros, median 1, mean 1.0",
        "columns    0 to 2 nonzeros",
        "symmetry   0.0 % of the nonzeros off the diagonal",
        "bandwidth  2 below the diagonal, 1 above",
        "A x A      3 products, 3 entries",
        "device     emulator of NVIDIA H200",
        "planned for 16 features",
        "plan       SpGEMM in f32 of a 3 x 3 and a 3 x 3 matrix",
    ] {
        assert!(words(&text).contains(&words(wanted)), "{wanted}: {text}");
    }
}

#[test]
fn info_predicts_a_time_and_its_bound_for_each_number_of_features() {
    let text = Folder::new().printed(&["info", "a.mtx", "--features", "32,512", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let plans = value["plans"].as_array().expect("plans");
    let features: Vec<_> = plans
        .iter()
        .filter_map(|plan| plan["features"].as_u64())
        .collect();
    assert_eq!(features, [32, 512]);
    for plan in &plans[..2] {
        let seconds = plan["predicted"]["seconds"].as_f64().expect("a time");
        // Nothing takes less than a launch; so small a product takes less than a millisecond.
        assert!((1e-6..1e-3).contains(&seconds), "{plan}");
        assert_eq!(plan["predicted"]["bound_by"], "launches", "{plan}");
    }
}

#[test]
fn every_matrix_has_information_even_one_without_rows_or_nonzeros() {
    let folder = Folder::new();
    for (rows, columns) in [(0, 0), (0, 3), (3, 0), (3, 3)] {
        let banner = "%%MatrixMarket matrix coordinate real general\n";
        folder.write("empty.mtx", format!("{banner}{rows} {columns} 0\n"));
        let text = folder.printed(&["info", "empty.mtx", "--plot", "a.svg"]);
        assert!(
            text.contains(&format!("{rows} x {columns}, 0 nonzeros")),
            "{text}"
        );
    }
}

#[test]
fn json_is_one_line_that_a_program_reads() {
    let folder = Folder::new();
    for arguments in [
        &["info", "a.mtx", "--json"][..],
        &["spmm", "a.mtx", "--json", "-o", "y.npy"],
        &["spgemm", "a.mtx", "--json"],
        &["gcn", "a.mtx", "--json"],
        &["doctor", "--json"],
    ] {
        let text = folder.printed(arguments);
        assert_eq!(text.lines().count(), 1, "{text}");
        let object: serde_json::Value = serde_json::from_str(&text).unwrap();
        if let Some(verified) = object.get("verified") {
            assert_eq!(verified, true);
        }
        if arguments[0] == "info" {
            assert_eq!(object["shape"], serde_json::json!([3, 3]));
            assert_eq!(object["rows"]["most"], 1);
        }
    }
}

#[test]
fn bad_input_names_file_and_line_and_ends_with_2() {
    let folder = Folder::new();
    folder.write("line.mtx", SMALL.replace("2 3 2", "2 4 2"));
    folder.write("line.csv", "source,target\n0,1\n0,x\n");
    folder.write("empty.mtx", "");
    folder.write("empty.npz", "");
    folder.write("x.npy", "no array");
    folder.write("wide.mtx", SMALL.replace("3 3 3", "3 4 3"));
    std::fs::create_dir(folder.path("folder.mtx")).unwrap();
    for (arguments, message) in [
        (
            &["info", "line.mtx"][..],
            "line.mtx:4: wanted a column index from 1 to 3, found `4`",
        ),
        (
            &["info", "line.csv"],
            "line.csv:3: wanted a column index, found `x`",
        ),
        (&["spmm", "empty.mtx"], "empty.mtx:1: wanted the banner"),
        (&["spmm", "empty.npz"], "empty.npz: no zip file"),
        (
            &["spmm", "a.mtx", "x.npy"],
            "x.npy: wanted `\\x93NUMPY` and a version",
        ),
        (&["info", "none.mtx"], "cannot open none.mtx: No such file"),
        (
            &["info", "folder.mtx"],
            "folder.mtx:1: cannot read: Is a directory",
        ),
        (
            &["info", "a.txt"],
            "a.txt: wanted the name of a sparse matrix to end in .mtx",
        ),
        (
            &["spmm", "a.mtx", "-o", "y.mtx"],
            "y.mtx: wanted the name of a dense matrix to end in .npy",
        ),
        (
            &["spgemm", "wide.mtx"],
            "a 3 x 4 matrix cannot multiply a 3 x 4 one: give a second one",
        ),
        (
            &["gcn", "a.mtx", "--widths", "3"],
            "--widths: wanted two numbers or more",
        ),
        (
            &["spmm", "a.mtx", "-o", "no/such/y.npy"],
            "cannot write no/such/y.npy: No such file",
        ),
        (
            &["spmm", "a.mtx", "--features", "4294967295"],
            "wanted 206 GB of memory",
        ),
    ] {
        let found = folder.refused(arguments, 2);
        assert!(found.contains(message), "{found}");
        assert_eq!(found.lines().count(), 1, "{found}");
    }
}

#[test]
fn wrong_usage_ends_with_2_and_help_with_0() {
    let folder = Folder::new();
    folder.refused(&["spmm"], 2);
    folder.refused(&["spmm", "a.mtx", "--features", "x"], 2);
    folder.refused(&["no-such"], 2);
    folder.refused(&["spmm", "a.mtx", "--device", "gpu"], 2);
    let text = folder.printed(&["--help"]);
    for subcommand in [
        "info",
        "spmm",
        "spgemm",
        "gcn",
        "doctor",
        "new",
        "completions",
    ] {
        assert!(text.contains(&format!("\n  {subcommand} ")), "{subcommand}");
        assert!(
            folder
                .printed(&[subcommand, "--help"])
                .contains("Examples:"),
            "{subcommand}"
        );
    }
}

#[test]
fn a_device_that_is_not_there_ends_with_3() {
    let folder = Folder::new();
    // No machine has so many.
    let found = folder.refused(
        &["spmm", "a.mtx", "-o", "y.npy", "--device", "cuda:4000"],
        3,
    );
    assert!(
        found.starts_with("error: no device `cuda:4000`: "),
        "{found}"
    );
    if cfg!(feature = "bench") {
        let found = folder.refused(&["bench", "a.mtx", "--against", "cusparse"], 3);
        assert!(found.contains("wanted a GPU"), "{found}");
    }
    let variable = warprow(&["spmm", "a.mtx"])
        .current_dir(folder.0.path())
        .env("WARPROW_DEVICE", "gpu")
        .output()
        .unwrap();
    assert_eq!(variable.status.code(), Some(2));
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = Folder::new().printed(&["completions", shell]);
        assert!(script.contains("spgemm"), "{shell}");
    }
}

#[cfg(feature = "bench")]
#[test]
fn the_bench_verifies_each_choice_of_the_plan() {
    let text = Folder::new().printed(&["bench", "a.mtx", "--features", "3,8"]);
    assert_eq!(
        text.matches("a.mtx file, 3 x 3, 3 nonzeros").count(),
        2,
        "{text}"
    );
    for name in ["warprow", "vector", "in_step", "lanes_8", "clustered"] {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        assert!(
            line.is_some_and(|line| line.contains("ok: 3 rows")),
            "{text}"
        );
    }
}

#[test]
fn the_doctor_multiplies_on_the_emulator() {
    let text = Folder::new().printed(&["doctor"]);
    assert!(text.contains("a test product is right"), "{text}");
    assert!(text.ends_with("\nwarprow works here\n"), "{text}");
    let insists = warprow(&["doctor", "--device", "cuda:4000"])
        .output()
        .unwrap();
    assert_eq!(insists.status.code(), Some(1), "{insists:?}");
}
