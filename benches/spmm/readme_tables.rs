//! The script that writes the results into the README, on results of this bench and on planted ones.

use crate::run;
use std::path::Path;
use std::process::{Command, Output};

const EMPTY: &str = "before\n<!-- begin: spmm -->\nold\n<!-- end: spmm -->\nafter\n";

/// Runs the script; `None`, with a word, where there is no Python.
fn readme_tables(results: &Path, readme: &Path, arguments: &[&str]) -> Option<Output> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/readme-tables");
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

fn planted(implementation: &str, outcome: &str) -> String {
    let version = if implementation.starts_with("cusparse") {
        r#""cusparse":"12.6.3","#
    } else {
        r#""kernel":"some_kernel","#
    };
    format!(
        r#"{{"bench":"spmm","graph":"ppa","kind":"rmat57","rows":3,"cols":3,"nnz":4,"features":32,"type":"f32","impl":"{implementation}",{version}{outcome},"device":"NVIDIA H200","driver":"CUDA 13.0","date":"2026-01-02"}}"#
    )
}

#[test]
fn the_table_has_the_best_right_algorithm_of_cusparse_and_the_ratio() {
    let folder = tempfile::tempdir().unwrap();
    let (results, readme) = (
        folder.path().join("spmm.jsonl"),
        folder.path().join("README.md"),
    );
    let lines = [
        planted("warprow", r#""ms":9.0,"ok":true"#),
        planted("cusparse_default", r#""ms":3.0,"ok":true"#),
        planted("cusparse_csr_alg1", r#""ms":1.0,"ok":false"#),
        planted("cusparse_csr_alg2", r#""ms":2.5,"ok":true"#),
        planted("cusparse_csr_alg3", r#""skipped":"too large""#),
        // The later result of a case counts.
        planted("warprow", r#""ms":2.0,"ok":true"#),
    ];
    std::fs::write(&results, lines.join("\n")).unwrap();
    std::fs::write(&readme, EMPTY).unwrap();
    let Some(stale) = readme_tables(&results, &readme, &["--check"]) else {
        return;
    };
    assert_eq!(stale.status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(&readme).unwrap(), EMPTY);

    assert!(
        readme_tables(&results, &readme, &[])
            .unwrap()
            .status
            .success()
    );
    let text = std::fs::read_to_string(&readme).unwrap();
    let row = "| ppa | rmat57 | f32 | 32 | 2.0000 | some_kernel | 2.5000 | csr_alg2 | 1.25 |\n";
    assert!(text.contains(row), "{text}");
    assert!(text.contains("2026-01-02: NVIDIA H200, driver for CUDA 13.0, cuSPARSE 12.6.3"));
    assert!(
        text.starts_with("before\n<!-- begin: spmm -->\n|"),
        "{text}"
    );
    assert!(text.ends_with("\n<!-- end: spmm -->\nafter\n"), "{text}");
    assert!(
        readme_tables(&results, &readme, &["--check"])
            .unwrap()
            .status
            .success()
    );
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
        text.contains("| small | rmat57 | f32 | 3 | not timed |"),
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
