//! The examples as programs: sizes beyond all memory, output that nobody reads or that has no room, signals.
//!
//! `cargo test` builds the examples before it runs this; `cargo test --test examples` alone does not.

#![cfg(target_os = "linux")]
mod profile;

use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The examples, and what they want before a matrix.
const EXAMPLES: [(&str, &[&str]); 4] = [
    ("spmm", &[]),
    ("spgemm", &[]),
    ("gcn", &[]),
    ("profile", &["spmm"]),
];

/// A matrix of 3 x 3.
const SMALL: &str = "%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1\n2 3 2\n3 1 3\n";

/// The example on the emulator; `None`, and a line that says so, if it is not built.
fn example(name: &str) -> Option<Command> {
    let tests = std::env::current_exe().unwrap();
    let program = tests
        .ancestors()
        .nth(2)
        .unwrap()
        .join("examples")
        .join(name);
    if !program.exists() {
        println!("skipped: {} is not built", program.display());
        return None;
    }
    let mut command = Command::new(program);
    command.env("WARPROW_DEVICE", "emulator");
    Some(command)
}

/// A folder for the files of one test, empty at first.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let name = format!("warprow-examples-{}-{test}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The message of an example that must end with an error, not a panic or a signal.
fn refused(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = stderr(&output);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{command:?}: {}: {text}",
        output.status
    );
    assert!(
        text.starts_with("error: ") && text.lines().count() == 1,
        "{command:?}: {text}"
    );
    text
}

#[test]
fn sizes_beyond_all_memory_are_errors_that_tell_the_memory() {
    let folder = Folder::new("sizes");
    let one_entry = "%%MatrixMarket matrix coordinate real general\n1 4294967295 1\n1 1 1\n";
    let wide = folder.file("wide.mtx", one_entry);
    let small = folder.file("small.mtx", SMALL);
    let cases: [(&str, &Path, &[&str]); 5] = [
        (
            "spmm",
            &small,
            &["--features", "4294967295", "--type", "f64"],
        ),
        ("spmm", &wide, &["--features", "1073741824"]),
        ("profile", &wide, &["--features", "1073741824"]),
        ("gcn", &small, &["--widths", "4294967296,1,4294967296000"]),
        (
            "gcn",
            &small,
            &["--widths", "18446744073709551615,18446744073709551615"],
        ),
    ];
    for (name, matrix, arguments) in cases {
        let Some(mut command) = example(name) else {
            return;
        };
        let (_, first) = EXAMPLES.iter().find(|(known, _)| *known == name).unwrap();
        let text = refused(command.args(*first).arg(matrix).args(arguments));
        assert!(text.contains(" GB of memory, found "), "{text}");
    }
    // No square matrix.
    for name in ["spgemm", "gcn"] {
        let Some(mut command) = example(name) else {
            return;
        };
        refused(command.arg(&wide));
    }
}

#[test]
fn the_greatest_seed_is_no_error() {
    let folder = Folder::new("seed");
    let small = folder.file("small.mtx", SMALL);
    for name in ["spmm", "gcn"] {
        let Some(mut command) = example(name) else {
            return;
        };
        let output = command
            .arg(&small)
            .args(["--seed", "18446744073709551615"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

#[test]
fn output_that_nobody_reads_ends_an_example_quietly() {
    let folder = Folder::new("pipe");
    let small = folder.file("small.mtx", SMALL);
    for (name, arguments) in EXAMPLES {
        let Some(mut command) = example(name) else {
            return;
        };
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let output = command
            .args(arguments)
            .arg(&small)
            .stdout(writer)
            .output()
            .unwrap();
        assert_eq!(
            (output.status.code(), stderr(&output).as_str()),
            (Some(1), ""),
            "{name}"
        );
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let folder = Folder::new("full");
    let small = folder.file("small.mtx", SMALL);
    for (name, arguments) in EXAMPLES {
        let Some(mut command) = example(name) else {
            return;
        };
        command
            .args(arguments)
            .arg(&small)
            .stdout(File::create("/dev/full").unwrap());
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{name}: {text}");
        assert!(
            text.starts_with("error: cannot write to the standard output: "),
            "{text}"
        );
    }
    // The product, and then the messages too, find no room.
    let Some(mut command) = example("spgemm") else {
        return;
    };
    let text = refused(command.arg(&small).args(["--output", "/dev/full"]));
    assert!(
        text.starts_with("error: cannot write /dev/full: "),
        "{text}"
    );
    let Some(mut command) = example("spgemm") else {
        return;
    };
    command
        .arg(&small)
        .stdout(File::create("/dev/full").unwrap());
    let status = command
        .stderr(File::create("/dev/full").unwrap())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_the_product_is_computed() {
    let folder = Folder::new("place");
    let small = folder.file("small.mtx", SMALL);
    let Some(mut command) = example("spgemm") else {
        return;
    };
    command
        .arg(&small)
        .arg("--output")
        .arg(folder.0.join("no/such.mtx"));
    let output = command.output().unwrap();
    assert!(
        stderr(&output).starts_with("error: cannot write "),
        "{}",
        stderr(&output)
    );
    assert_eq!((output.status.code(), output.stdout), (Some(1), Vec::new()));
}

/// Waits for that, a minute at most.
fn wait_for(child: &mut Child, what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        let ended = child.try_wait().unwrap();
        assert!(
            ended.is_none() && start.elapsed().as_secs() < 60,
            "no {what}: {ended:?}"
        );
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_signal_leaves_no_incomplete_file() {
    for (signal, number) in [("INT", 2), ("TERM", 15)] {
        let folder = Folder::new(signal);
        // 300 rows that each meet 300 others: a second at least, on the emulator.
        let entries = (1..=300).flat_map(|row| (1..=300).map(move |column| (row, column)));
        let entries: String = entries
            .map(|(row, column)| format!("{row} {column}\n"))
            .collect();
        let banner = "%%MatrixMarket matrix coordinate pattern general\n300 300 90000\n";
        let matrix = folder.file("a.mtx", format!("{banner}{entries}"));
        let Some(mut command) = example("spgemm") else {
            return;
        };
        command
            .arg(&matrix)
            .arg("--output")
            .arg(folder.0.join("c.mtx"));
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        wait_for(&mut child, "incomplete file", || folder.names().len() == 2);
        // The program goes on from there to its handler of signals.
        sleep(Duration::from_millis(100));
        let kill = format!("kill -{signal} {}", child.id());
        assert!(
            Command::new("sh")
                .args(["-c", &kill])
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(child.wait().unwrap().signal(), Some(number));
        assert_eq!(folder.names(), ["a.mtx"]);
    }
}

#[test]
fn a_nan_that_the_reference_has_too_is_right() {
    let folder = Folder::new("nan");
    let small = folder.file("small.mtx", SMALL);
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 32)}\n";
    let mut x = [
        b"\x93NUMPY\x01\x00",
        &[header.len() as u8, 0][..],
        header.as_bytes(),
    ]
    .concat();
    let numbers = (0..3 * 32).map(|i| if i == 40 { f32::NAN } else { 0.5 });
    x.extend(numbers.flat_map(f32::to_le_bytes));
    let x = folder.file("x.npy", x);
    let Some(mut command) = example("gcn") else {
        return;
    };
    let output = command
        .arg(&small)
        .arg("--features")
        .arg(&x)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(
        output.status.success() && text.contains("verified"),
        "{text}{}",
        stderr(&output)
    );
}
