//! Pipes, full disks, signals, terminals: what surrounds a command on Linux.

use super::{Folder, texts, warprow};
use std::fs::File;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

#[test]
fn a_reader_who_leaves_ends_the_command_silently() {
    let folder = Folder::new();
    for arguments in [
        &["info", "a.mtx"][..],
        &["doctor"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let mut command = warprow(arguments);
        command
            .current_dir(folder.0.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), texts(&output).1.as_str()),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_result_is_written_even_if_nobody_reads_what_is_printed() {
    let folder = Folder::new();
    let mut command = warprow(&["spgemm", "a.mtx", "-o", "c.npz"]);
    command.current_dir(folder.0.path()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(folder.names(), ["a.mtx", "c.npz"]);
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    let folder = Folder::new();
    let mut command = warprow(&["spmm", "a.mtx"]);
    command
        .current_dir(folder.0.path())
        .stdout(File::create("/dev/full").unwrap());
    let output = command
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    let text = texts(&output).1;
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.starts_with("error: cannot write to the standard output: "),
        "{text}"
    );
    std::os::unix::fs::symlink("/dev/full", folder.path("c.npz")).unwrap();
    let found = folder.refused(&["spgemm", "a.mtx", "-o", "c.npz"], 2);
    assert!(
        found.starts_with("error: cannot write c.npz: No space left"),
        "{found}"
    );
}

#[test]
fn values_for_programs_are_printed_even_if_the_picture_cannot_be_written() {
    let folder = Folder::new();
    std::os::unix::fs::symlink("/dev/full", folder.path("a.svg")).unwrap();
    let output = folder.run(&["info", "a.mtx", "--json", "--plot", "a.svg"]);
    let (stdout, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.starts_with("error: cannot write a.svg: No space left"),
        "{stderr}"
    );
    let object: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(object["shape"], serde_json::json!([3, 3]));
}

#[test]
fn pipes_are_read_and_written() {
    let folder = Folder::new();
    for name in ["in.mtx", "out.csv"] {
        assert!(
            Command::new("mkfifo")
                .arg(folder.path(name))
                .status()
                .unwrap()
                .success()
        );
    }
    let mut command = warprow(&["spgemm", "in.mtx", "-o", "out.csv"]);
    let mut child = command
        .current_dir(folder.0.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (from, to) = (folder.path("a.mtx"), folder.path("in.mtx"));
    let feeder = std::thread::spawn(move || std::fs::copy(from, to).unwrap());
    let mut text = String::new();
    File::open(folder.path("out.csv"))
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    feeder.join().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(text.starts_with("# shape 3 3\n0,0,1.0\n"), "{text}");
    assert_eq!(folder.names(), ["a.mtx", "in.mtx", "out.csv"]);
}

#[test]
fn an_existing_result_is_kept_if_the_command_fails() {
    let folder = Folder::new();
    folder.write("c.npz", "from before");
    folder.refused(
        &["spgemm", "a.mtx", "-o", "c.npz", "--device", "cuda:4000"],
        3,
    );
    assert_eq!(std::fs::read(folder.path("c.npz")).unwrap(), b"from before");
}

#[test]
fn a_signal_leaves_no_incomplete_file() {
    for (signal, number) in [("HUP", 1), ("INT", 2), ("TERM", 15)] {
        let folder = folder_with_a_long_product();
        let mut command = warprow(&["spgemm", "dense.tsv", "-o", "c.npz"]);
        let mut child = start(&folder, &mut command);
        send(signal, &child);
        assert_eq!(child.wait().unwrap().signal(), Some(number));
        assert_eq!(folder.names(), ["a.mtx", "dense.tsv"]);
    }
}

#[test]
fn a_signal_that_the_parent_ignores_does_not_end_the_command() {
    let folder = folder_with_a_long_product();
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' HUP; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_warprow"))
        .args(["spgemm", "dense.tsv", "-o", "c.npz", "--device", "emulator"]);
    let mut child = start(&folder, &mut command);
    send("HUP", &child);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(folder.names(), ["a.mtx", "c.npz", "dense.tsv"]);
}

/// 300 rows in `dense.tsv` that each meet 300 others: a second at least, on the emulator.
fn folder_with_a_long_product() -> Folder {
    let folder = Folder::new();
    let entries: String = (0..300)
        .flat_map(|row| (0..300).map(move |column| format!("{row} {column}\n")))
        .collect();
    folder.write("dense.tsv", entries);
    folder
}

/// Starts a command, and waits until it has its incomplete file and its handler of signals. It ignores no signal that
/// the test ignores, as under `nohup`.
fn start(folder: &Folder, command: &mut Command) -> Child {
    command.current_dir(folder.0.path()).stdout(Stdio::null());
    let by_default = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
            // SAFETY: the default action is no function that could be called.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: `signal` may be called between `fork` and `exec`.
    unsafe { command.pre_exec(by_default) };
    let mut child = command.spawn().unwrap();
    wait_for(&mut child, "incomplete file", || folder.names().len() == 3);
    // The program goes on from there to its handler of signals.
    sleep(Duration::from_millis(100));
    child
}

fn send(signal: &str, child: &Child) {
    let kill = format!("kill -{signal} {}", child.id());
    let status = Command::new("sh").args(["-c", &kill]).status();
    assert!(status.unwrap().success());
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
fn output_that_is_no_terminal_has_neither_colours_nor_bars() {
    let folder = Folder::new();
    for arguments in [&["spmm", "a.mtx"][..], &["doctor"], &["--help"]] {
        let output = folder.run(arguments);
        let (stdout, stderr) = texts(&output);
        assert!(
            !stdout.contains('\x1b') && stderr.is_empty(),
            "{stdout}{stderr}"
        );
    }
}

#[test]
fn lines_are_as_wide_as_columns_say() {
    for arguments in [&["info", "a.mtx"][..], &["spmm", "--help"], &["doctor"]] {
        let folder = Folder::new();
        let mut command = warprow(arguments);
        let output = command
            .current_dir(folder.0.path())
            .env("COLUMNS", "60")
            .output()
            .unwrap();
        let (stdout, _) = texts(&output);
        // Paths and examples are not broken.
        let too_wide = stdout.lines().filter(|line| line.chars().count() > 60);
        let breakable: Vec<&str> = too_wide
            .filter(|line| line.trim().matches(' ').count() > 8)
            .collect();
        assert!(breakable.is_empty(), "{breakable:#?}");
    }
}
