//! The example `profile`: its tables, its JSON, what it refuses, and what it reads from `ncu`.

use super::{Folder, SMALL, example, refused, stderr};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// The text that an example prints, which must succeed.
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_profile_shows_the_kernels_that_were_asked_for() {
    let folder = Folder::new("profile");
    let small = folder.file("small.mtx", SMALL);
    let small = small.to_str().unwrap();
    let cases: [(&[&str], &[&str]); 6] = [
        (
            &["spmm", small],
            &["device   emulator of NVIDIA H200", "spmm_row_groups_f32"],
        ),
        (
            &[
                "spmm",
                small,
                "--kernel",
                "warp_per_row",
                "--by-line",
                "--gpu",
                "a100",
            ],
            &[
                "emulator of NVIDIA A100",
                "spmm_warp_per_row_f32",
                "warp_per_row.rs:",
                "(start, end)",
            ],
        ),
        (
            &[
                "spmm",
                small,
                "--kernel",
                "thread_per_row",
                "--compare",
                "column_major",
            ],
            &["spmm_thread_per_row_f32  spmm_column_major_f32", "ratio"],
        ),
        (&["spgemm", small], &["spgemm_"]),
        (
            &["spgemm", small, "--kernel", "fixed_table"],
            &["spgemm_fixed_fill_f32"],
        ),
        (
            &[
                "gemm",
                "--rows",
                "33",
                "--depth",
                "17",
                "--cols",
                "5",
                "--kernel",
                "global_sum",
            ],
            &["gemm_global_sum_f32"],
        ),
    ];
    for (arguments, parts) in cases {
        let Some(mut command) = example("profile") else {
            return;
        };
        let text = printed(command.args(arguments));
        for part in parts {
            assert!(text.contains(part), "{arguments:?}: no `{part}` in\n{text}");
        }
    }
}

#[test]
fn a_profile_in_json_is_a_line_for_each_launch_and_the_plan_has_more() {
    let folder = Folder::new("json");
    let small = folder.file("small.mtx", SMALL);
    let mut lines = Vec::new();
    for arguments in [&[][..], &["--all-launches"]] {
        let Some(mut command) = example("profile") else {
            return;
        };
        let text = printed(
            command
                .arg("spmm")
                .arg(&small)
                .arg("--json")
                .args(arguments),
        );
        for line in text.lines() {
            assert!(
                line.starts_with("{\"kernel\":\"") && line.ends_with('}'),
                "{line}"
            );
        }
        lines.push(text.lines().count());
    }
    assert!(lines[0] == 1 && lines[1] > 1, "{lines:?}");
}

#[test]
fn a_profile_draws_pictures_and_writes_traces() {
    let folder = Folder::new("pictures");
    let small = folder.file("small.mtx", SMALL);
    let (picture, trace) = (folder.0.join("a.svg"), folder.0.join("a.json"));
    for view in ["access", "source", "balance"] {
        let Some(mut command) = example("profile") else {
            return;
        };
        command.arg("spmm").arg(&small).args(["--view", view]);
        command
            .arg("--picture")
            .arg(&picture)
            .arg("--trace")
            .arg(&trace);
        assert!(printed(&mut command).contains("spmm_row_groups_f32"));
        let drawn = fs::read_to_string(&picture).unwrap();
        assert!(drawn.starts_with("<svg"), "{view}");
        let written = fs::read_to_string(&trace).unwrap();
        assert!(written.contains("spmm_row_groups_f32"), "{written}");
        fs::remove_file(&picture).unwrap();
    }
    let Some(mut command) = example("profile") else {
        return;
    };
    command
        .arg("spmm")
        .arg(&small)
        .args(["--warp", "99:0", "--trace"]);
    let text = refused(command.arg(&trace));
    assert!(text.contains("a traced warp, found none"), "{text}");
    let Some(mut command) = example("profile") else {
        return;
    };
    command.arg("spmm").arg(&small).arg("--picture");
    let text = refused(command.arg(folder.0.join("no/such.svg")));
    assert!(text.contains("cannot write "), "{text}");
}

#[test]
fn what_cannot_be_profiled_is_an_error() {
    let folder = Folder::new("refused");
    let small = folder.file("small.mtx", SMALL);
    let small = small.to_str().unwrap();
    let empty = "%%MatrixMarket matrix coordinate real general\n0 0 0\n";
    let empty = folder.file("empty.mtx", empty);
    let cases: [(&[&str], &str); 6] = [
        (&["spmm", "no_such.mtx"], "no_such.mtx"),
        (&["spmm", empty.to_str().unwrap()], "nothing is launched"),
        (&["gemm", "--cols", "0"], "nothing is launched"),
        (&["spmm", small, "--device", "cuda"], "no `ncu`"),
        (&["spmm", small, "--device", "auto"], "--device is auto"),
        (
            &["gemm", "--gpu", "a100", "--kernel", "warpgroup_split"],
            "emulator of NVIDIA A100-SXM4-80GB (108 multiprocessors) has 8.0",
        ),
    ];
    for (arguments, part) in cases {
        let Some(mut command) = example("profile") else {
            return;
        };
        let text = refused(command.args(arguments).env("PATH", &folder.0));
        assert!(text.contains(part), "{arguments:?}: {text}");
    }
}

#[test]
fn the_counters_of_a_gpu_stand_beside_those_of_the_emulator() {
    let folder = Folder::new("ncu");
    let small = folder.file("small.mtx", SMALL);
    let line = |metric: &str, value: &str| {
        format!("\"0\",\"spmm_warp_per_row_f32\",\"{metric}\",\"\",\"{value}\"\n")
    };
    let counted = [
        "device   NVIDIA H200\n".to_owned(),
        "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n".to_owned(),
        line("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "1,234"),
        line("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "n/a"),
        line("gpu__time_duration.sum", "2,048"),
    ];
    let ncu = |script: &str| {
        let path = folder.file("ncu", format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let profile = || {
        let mut command = example("profile")?;
        let path = format!("{}:/usr/bin:/bin", folder.0.display());
        let arguments = ["--kernel", "warp_per_row", "--device", "cuda"];
        command
            .arg("spmm")
            .arg(&small)
            .args(arguments)
            .env("PATH", path);
        Some(command)
    };
    folder.file("counted", counted.concat());
    ncu(&format!("cat {}", folder.0.join("counted").display()));
    let Some(mut command) = profile() else {
        return;
    };
    let text = printed(&mut command);
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    // Two row pointers of three rows; columns, values and a row of X of three nonzeros.
    assert!(
        rows.contains(&vec!["global", "loads:", "requests", "15", "1234"]),
        "{text}"
    );
    assert!(rows.contains(&vec!["nanoseconds", "2048"]), "{text}");
    assert!(
        rows.iter()
            .any(|row| row.starts_with(&["spmm_warp_per_row_f32"])),
        "{text}"
    );

    ncu("echo '==ERROR== no permission'; exit 1");
    let text = refused(&mut profile().unwrap());
    assert!(text.contains("no permission"), "{text}");
    ncu("echo nothing");
    let text = refused(&mut profile().unwrap());
    assert!(text.contains("ncu has counted no launch"), "{text}");
}
