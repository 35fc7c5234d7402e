//! The script that writes the results into the README, on results of this bench and on planted ones.

use crate::spmm::tests::run;
use std::path::Path;
use std::process::{Command, Output};

const EMPTY: &str = "before\n<!-- begin: spmm -->\nold\n<!-- end: spmm -->\nafter\n";

/// Runs the script; `None`, with a word, where there is no Python.
fn readme_tables(results: &Path, readme: &Path, arguments: &[&str]) -> Option<Output> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/readme-tables");
    let mut command = Command::new("python3");
    command.arg(script).arg("--results").arg(results);
    command.arg("--readme").arg(readme).args(arguments);
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            println!("skipped: python3 does not run: {error}");
            None
        }
    }
}

/// A line of results of the graph `ppa` with 32 features.
fn planted(implementation: &str, outcome: &str) -> String {
    planted_for("ppa", 32, implementation, outcome)
}

fn planted_for(graph: &str, features: u32, implementation: &str, outcome: &str) -> String {
    let version = if implementation.starts_with("cusparse") {
        r#""cusparse":"12.6.3","#
    } else {
        r#""kernel":"some_kernel","#
    };
    format!(
        r#"{{"bench":"spmm","graph":"{graph}","kind":"rmat57","rows":3,"cols":3,"nnz":4,"features":{features},"type":"f32","impl":"{implementation}",{version}{outcome},"device":"NVIDIA H200","driver":"CUDA 13.0","date":"2026-01-02"}}"#
    )
}

/// The section of these results, with a chart beside them or without; `None` without Python.
fn section(lines: &[String], with_chart: bool) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("spmm.jsonl");
    let readme = folder.path().join("README.md");
    std::fs::write(&results, lines.join("\n")).unwrap();
    std::fs::write(&readme, EMPTY).unwrap();
    if with_chart {
        std::fs::write(folder.path().join("spmm.svg"), "").unwrap();
    }
    let written = readme_tables(&results, &readme, &[])?;
    assert!(written.status.success(), "{written:?}");
    Some(std::fs::read_to_string(&readme).unwrap())
}

#[test]
fn a_ratio_is_to_the_best_right_algorithm_of_the_later_result() {
    let lines = [
        planted("warprow", r#""ms":9.0,"ok":true"#),
        planted("cusparse_default", r#""ms":3.0,"ok":true"#),
        planted("cusparse_csr_alg1", r#""ms":1.0,"ok":false"#),
        planted("cusparse_csr_alg2", r#""ms":2.5,"ok":true"#),
        planted("cusparse_csr_alg3", r#""skipped":"too large""#),
        planted(
            "warprow",
            r#""ms":2.0,"ok":true,"plan_ms":5.0,"order_ms":2.0,"upload_ms":70.0"#,
        ),
        planted("gather_limit", r#""ms":1.5"#),
    ];
    let Some(text) = section(&lines, true) else {
        return;
    };
    for part in [
        "| times as fast as the best of cuSPARSE, f32 | 32 |\n|---|---|\n| rmat57 | 1.25 (1.25) |\n",
        "| part of the gather limit, f32 | 32 |\n|---|---|\n| rmat57 | 0.75 (0.75) |\n",
        "[Each case as a chart](spmm.svg). 1 cases, 1 of them timed against cuSPARSE: slower than its best algorithm in 0",
        "the time of 1.5 runs (the median; at most 1.5: ppa, rmat57, f32, 32)",
        "2026-01-02: NVIDIA H200, driver for CUDA 13.0, cuSPARSE 12.6.3",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn means_are_geometric_and_cells_of_a_part_of_the_graphs_say_so() {
    let case = |graph, features, ours: &str, theirs: &str| {
        let outcome = |ms| format!(r#""ms":{ms},"ok":true,"plan_ms":3.0"#);
        [
            planted_for(graph, features, "warprow", &outcome(ours)),
            planted_for(graph, features, "cusparse_default", &outcome(theirs)),
        ]
    };
    let mut lines = [
        case("ppa", 128, "1.0", "4.0"),
        case("ppa", 32, "1.0", "2.0"),
        case("ddi", 32, "4.0", "2.0"),
    ]
    .concat();
    lines.push(planted_for("ddi", 128, "warprow", r#""skipped":"no room""#));
    let Some(text) = section(&lines, false) else {
        return;
    };
    for part in [
        "f32 | 32 | 128 |\n|---|---|---|\n| rmat57 | 1.00 (0.50) | 4.00 (4.00, 1) |\n",
        "4 cases, 3 of them timed against cuSPARSE: slower than its best algorithm in 1, the least ratio is 0.50 (ddi, rmat57, f32, 32).",
        "Without a time: 1 cases, no room.",
        "The gather limit was not measured.",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    // What a plan took without its upload is not known of results of this form.
    assert!(
        !text.contains("chart") && !text.contains("preprocessing"),
        "{text}"
    );
}

#[test]
fn good_choices_of_the_sweep_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("spmm.jsonl");
    let readme = folder.path().join("README.md");
    let timed = |graph, implementation, ms: &str| {
        planted_for(
            graph,
            32,
            implementation,
            &format!(r#""ms":{ms},"ok":true"#),
        )
    };
    let sweep = [
        timed("ppa", "warprow", "1.04"),
        timed("ppa", "lanes_8", "1.0"),
        timed("ppa", "cusparse_default", "0.5"),
        timed("ddi", "warprow", "1.1"),
        timed("ddi", "in_step", "1.0"),
        timed("am", "warprow", "1.0"),
    ];
    std::fs::write(&results, timed("ppa", "warprow", "1.0")).unwrap();
    std::fs::write(folder.path().join("spmm_choices.jsonl"), sweep.join("\n")).unwrap();
    std::fs::write(&readme, EMPTY).unwrap();
    let Some(written) = readme_tables(&results, &readme, &[]) else {
        return;
    };
    assert!(written.status.success(), "{written:?}");
    let text = std::fs::read_to_string(&readme).unwrap();
    assert!(
        text.contains("In 2 cases each kernel") && text.contains("the best of them in 1.\n"),
        "{text}"
    );
}

#[test]
fn only_what_stands_between_the_marks_is_rewritten_and_a_check_rewrites_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("spmm.jsonl");
    let readme = folder.path().join("README.md");
    std::fs::write(&results, planted("warprow", r#""ms":2.0,"ok":true"#)).unwrap();
    std::fs::write(&readme, EMPTY).unwrap();
    let Some(stale) = readme_tables(&results, &readme, &["--check"]) else {
        return;
    };
    assert_eq!(stale.status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(&readme).unwrap(), EMPTY);
    let write = readme_tables(&results, &readme, &[]).unwrap();
    assert!(write.status.success());
    let text = std::fs::read_to_string(&readme).unwrap();
    assert!(
        text.starts_with("before\n<!-- begin: spmm -->\nGeometric"),
        "{text}"
    );
    assert!(text.ends_with("\n<!-- end: spmm -->\nafter\n"), "{text}");
    let check = readme_tables(&results, &readme, &["--check"]).unwrap();
    assert!(check.status.success());
}

#[test]
fn what_the_bench_writes_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let (results, readme) = (
        folder.path().join("spmm.jsonl"),
        folder.path().join("README.md"),
    );
    assert!(run(&["--features", "3"], &results).unwrap());
    std::fs::write(&readme, EMPTY).unwrap();
    let Some(written) = readme_tables(&results, &readme, &[]) else {
        return;
    };
    assert!(written.status.success(), "{written:?}");
    let text = std::fs::read_to_string(&readme).unwrap();
    assert!(
        text.contains("1 cases, 0 of them timed") && text.contains("1 cases, not timed"),
        "{text}"
    );
}

#[test]
fn results_and_readmes_that_are_none_are_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let (results, readme) = (
        folder.path().join("spmm.jsonl"),
        folder.path().join("README.md"),
    );
    std::fs::write(&readme, "no marks\n").unwrap();
    let refused = |lines: &str| {
        std::fs::write(&results, lines).unwrap();
        let output = readme_tables(&results, &readme, &[])?;
        assert_eq!(output.status.code(), Some(1));
        Some(String::from_utf8(output.stderr).unwrap())
    };
    let right = planted("warprow", r#""ms":2.0,"ok":true"#);
    let Some(message) = refused(&format!("{right}\n[]\n")) else {
        return;
    };
    assert!(
        message.contains("spmm.jsonl:2: wanted a result"),
        "{message}"
    );
    assert!(refused("\n").unwrap().contains("found none"));
    let message = refused(&right).unwrap();
    assert!(
        message.contains("README.md: wanted one line <!-- begin: spmm -->"),
        "{message}"
    );
}
