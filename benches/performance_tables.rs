//! The script that writes the results into docs/performance.md, on results of the SpMM bench and on planted ones.

mod document;
mod plans;

use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder of results, and a document with the marks of some sections.
struct Site {
    folder: TempDir,
    document: PathBuf,
}

impl Site {
    fn with(sections: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let document = folder.path().join("performance.md");
        let marks = sections
            .iter()
            .map(|name| format!("<!-- begin: {name} -->\nold\n<!-- end: {name} -->\n"));
        let text = format!("before\n{}after\n", marks.collect::<String>());
        std::fs::write(&document, text).unwrap();
        Self { folder, document }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn write(&self, file: &str, lines: &[String]) {
        std::fs::write(self.path(file), lines.join("\n")).unwrap();
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.document).unwrap()
    }

    /// Runs the script; none, and a word, where there is no Python.
    fn run(&self, arguments: &[&str]) -> Option<Output> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/performance-tables");
        let mut command = Command::new("python3");
        // The checkout stays as it is.
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.arg(script).arg("--results").arg(self.folder.path());
        command.arg("--document").arg(&self.document);
        match command.args(arguments).output() {
            Ok(output) => Some(output),
            Err(error) => {
                println!("skipped: python3 does not run: {error}");
                None
            }
        }
    }

    /// The document after a run, in which line ends are spaces: a sentence may be wrapped anywhere.
    fn written(&self) -> Option<String> {
        let written = self.run(&[])?;
        assert!(written.status.success(), "{written:?}");
        Some(self.text().replace('\n', " "))
    }

    /// What the script complains of.
    fn refused(&self) -> Option<String> {
        let output = self.run(&[])?;
        assert_eq!(output.status.code(), Some(1));
        Some(String::from_utf8(output.stderr).unwrap())
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
        r#"{{"bench":"spmm","graph":"{graph}","kind":"rmat57","rows":3,"cols":3,"nnz":4,"features":{features},"#
    ) + &format!(
        r#""type":"f32","impl":"{implementation}",{version}{outcome},"device":"NVIDIA H200","driver":"CUDA 13.0","#
    ) + r#""date":"2026-01-02"}"#
}

/// A line of results of the ladder of SpMM.
fn rung(name: &str, parent: &str, case: &str, outcome: &str) -> String {
    format!(
        r#"{{"bench":"ladder","family":"spmm","rung":"{name}","parent":{parent},"idea":"{name}'s idea","#
    ) + &format!(
        r#""case":"{case}","type":"f32",{outcome},"device":"NVIDIA H200","driver":"CUDA 13.0","#
    ) + r#""date":"2026-01-02"}"#
}

fn assert_all_in(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn a_ratio_is_to_the_best_right_algorithm_of_the_later_result() {
    let site = Site::with(&["spmm", "spmm_plan"]);
    site.write(
        "spmm.jsonl",
        &[
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
        ],
    );
    std::fs::write(site.path("spmm.svg"), "").unwrap();
    let Some(text) = site.written() else {
        return;
    };
    assert_all_in(
        &text,
        &[
            "**Times as fast as the best algorithm of cuSPARSE.** warprow is slower than cuSPARSE in 0 of 1 cases.",
            "| f32, features | 32 | |---|---| | rmat57 | 1.25 (1.25) |",
            "faster than the limit in 0 of 1 cases.",
            "| f32, features | 32 | |---|---| | rmat57 | 0.75 (0.75) |",
            "[chart of all cases](./spmm.svg)",
            "| second plan, with its search | 1 | 2.5 | 2.5 (ppa, rmat57, f32, 32) |",
            "| the same plans without the search | 1 | 1.5 | 1.5 (ppa, rmat57, f32, 32) |",
            "2026-01-02: NVIDIA H200, driver for CUDA 13.0, cuSPARSE 12.6.3.",
        ],
    );
}

#[test]
fn flushed_times_floors_and_break_even_have_their_tables() {
    let site = Site::with(&["spmm", "spmm_plan", "spmm_files"]);
    let of_ours =
        r#""ms":1.0,"flushed_ms":2.0,"ok":true,"plan_ms":7.0,"first_plan_ms":9.0,"upload_ms":70.0"#;
    let of_default = r#""ms":3.0,"flushed_ms":5.0,"ok":true,"plan_ms":1.0,"first_plan_ms":1.0"#;
    // Its preprocessing takes longer than our plan, so it never wins.
    let of_second = r#""ms":2.0,"flushed_ms":9.0,"ok":true,"plan_ms":8.0,"first_plan_ms":10.0"#;
    let lines = [
        planted("warprow", of_ours),
        planted("cusparse_default", of_default),
        planted("cusparse_csr_alg2", of_second),
        planted("memory_floor", r#""ms":1.0,"bytes":4,"gb_per_s":4100.0"#),
        planted("l2_floor", r#""ms":0.5,"bytes":4,"gb_per_s":5500.0"#),
    ];
    let of_file = |line: &String| line.replace("rmat57", "file").replace("ppa", "words");
    let files: Vec<String> = lines.iter().map(of_file).collect();
    site.write("spmm.jsonl", &[&lines[..], &files].concat());
    let Some(text) = site.written() else {
        return;
    };
    assert_all_in(
        &text,
        &[
            "**Times as fast as cuSPARSE with a flushed L2 cache.**",
            "| rmat57 | 2.50 (2.50) |",
            "1 cases, 1 of them timed against cuSPARSE.",
            "(4.10 TB/s)",
            "**Speed relative to the memory floor.**",
            "| rmat57 | 0.50 (0.50) |",
            "(5.50 TB/s)",
            // (7 - 1) / (3 - 1), and (9 - 1) / (3 - 1).
            "| first | 4 | 4 | 0 | 2 |",
            "| second | 3 | 3 | 0 | 2 |",
            "| second plan, no search | 2 | 7.0 | 7.0 (words, file, f32, 32) |",
            "| first plan | 2 | 9.0 | 9.0 (words, file, f32, 32) |",
            "| `words` | f32 | 32 | 1.0000 | 2.00 | 2.0000 | 2.50 | 0.50 | 0.50 | 7.00 | 3 |",
        ],
    );
}

#[test]
fn a_mark_with_a_gpu_has_the_results_of_its_folder() {
    let site = Site::with(&["spmm"]);
    let results = site.path("h200");
    for (gpu, ms) in [("h200", "4.0"), ("h100", "5.0")] {
        std::fs::create_dir(site.path(gpu)).unwrap();
        let lines = [
            planted("warprow", r#""ms":1.0,"ok":true"#),
            planted("cusparse_default", &format!(r#""ms":{ms},"ok":true"#)),
        ];
        site.write(&format!("{gpu}/spmm.jsonl"), &lines);
    }
    let marks = "<!-- begin: spmm -->\n<!-- end: spmm -->\n<!-- begin: spmm h100 -->\n<!-- end: spmm h100 -->\n";
    std::fs::write(&site.document, marks).unwrap();
    let Some(written) = site.run(&["--results", results.to_str().unwrap()]) else {
        return;
    };
    assert!(written.status.success(), "{written:?}");
    let text = site.text();
    let (of_h200, of_h100) = text.split_once("<!-- begin: spmm h100 -->").unwrap();
    assert_all_in(of_h200, &["| rmat57 | 4.00 (4.00) |", "(h200/spmm.jsonl)"]);
    assert_all_in(of_h100, &["| rmat57 | 5.00 (5.00) |", "(h100/spmm.jsonl)"]);
}

#[test]
fn the_peak_of_memory_stands_beside_that_of_cusparses_default() {
    let site = Site::with(&["spgemm"]);
    let line = |implementation: &str, outcome: &str| {
        format!(
            r#"{{"bench":"spgemm","graph":"a","product":"A x A","impl":"{implementation}","products":300,"#
        ) + &format!(r#""entries":200,"gflops":3.0,"ok":true,{outcome},"device":"NVIDIA H200","#)
            + r#""driver":"CUDA 13.0","date":"2026-01-02"}"#
    };
    let ours = r#""ms":1.0,"numeric_first_ms":0.5,"numeric_ms":0.25,"peak_bytes":3000000"#;
    site.write(
        "spgemm.jsonl",
        &[
            line("warprow", ours),
            line("cusparse_default", r#""ms":4.0,"peak_bytes":12000000"#),
            line(
                "cusparse_reuse",
                r#""ms":3.0,"numeric_ms":0.75,"peak_bytes":1"#,
            ),
        ],
    );
    let Some(text) = site.written() else {
        return;
    };
    assert_all_in(
        &text,
        &[
            "Later numeric runs are slower than `SpGEMMreuse` in 0 of 1 products. The smallest ratio is 3.00 (a, A x A).",
            "| a, A x A | 3.00e+02 | 2.00e+02 | 1.00 | 3 | 3.00 | 0.50 | 0.25 | 0.75 | 3 | 0.25 |",
        ],
    );
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
    let site = Site::with(&["spmm", "spmm_plan"]);
    site.write("spmm.jsonl", &lines);
    let Some(text) = site.written() else {
        return;
    };
    assert_all_in(
        &text,
        &[
            "| f32, features | 32 | 128 | |---|---|---| | rmat57 | 1.00 (0.50) | 4.00 (4.00, 1) |",
            "slower than cuSPARSE in 1 of 3 cases. The smallest ratio is 0.50 (ddi, rmat57, f32, 32).",
            "4 cases, 3 of them timed against cuSPARSE.",
            "Without a time: 1 (no room).",
            "The gather limit was not measured.",
            // These results do not tell the time of the plan from that of the upload.
            "<!-- begin: spmm_plan --> Not measured yet.",
        ],
    );
    assert!(!text.contains("chart"), "{text}");
}

#[test]
fn each_version_of_cusparse_has_a_table_of_few_features() {
    let case = |graph, features, ms: &str, version: &str| {
        let theirs = planted_for(
            graph,
            features,
            "cusparse_default",
            &format!(r#""ms":{ms},"ok":true"#),
        );
        [
            planted_for(graph, features, "warprow", r#""ms":2.0,"ok":true"#),
            theirs.replace("12.6.3", version),
        ]
    };
    let site = Site::with(&["spmm_narrow"]);
    let cases = [
        case("ddi", 2, "1.0", "12.9.4"),
        case("ppa", 2, "3.0", "12.6.3"),
        case("ppa", 1, "9.0", "12.6.3"),
    ];
    site.write("spmm_narrow.jsonl", &cases.concat());
    let Some(text) = site.written() else {
        return;
    };
    assert_all_in(
        &text,
        &[
            "cuSPARSE 12.9.4**, on `ddi`. warprow is slower in 1 of 1 cases. The smallest ratio is 0.50 (ddi, rmat57, f32, 2).",
            "cuSPARSE 12.6.3**, on `ppa`. warprow is slower in 0 of 1 cases. The smallest ratio is 1.50 (ppa, rmat57, f32, 2).",
            "| f32, features | 2 | |---|---| | rmat57 | 1.50 (1.50) |",
        ],
    );
}

#[test]
fn a_rung_is_compared_with_its_parent_of_the_same_case() {
    let site = Site::with(&["ladder_spmm", "ladder_gemm"]);
    site.write(
        "ladder.jsonl",
        &[
            rung("root", "null", "small", r#""ms":4.0,"ok":true"#),
            rung("fast", r#""root""#, "small", r#""ms":2.0,"ok":true"#),
            rung(
                "short",
                r#""root""#,
                "small",
                r#""skipped":"a row is too long""#,
            ),
            rung("root", "null", "large", r#""ms":0.02,"ok":true"#),
            rung(
                "fast",
                r#""root""#,
                "large",
                r#""ms":0.04,"ok":true,"precision":"tf32""#,
            ),
            rung("short", r#""root""#, "large", r#""ms":1.0,"ok":false"#),
        ],
    );
    let Some(text) = site.written() else {
        return;
    };
    assert_all_in(
        &text,
        &[
            "Slower than its parent in at least one case: `fast`.",
            "| rung | parent | idea | small, f32 | large, f32 | |---|---|---|---|---|",
            "| `root` | none | root's idea | 4 | 0.0200 |",
            "| `fast` | `root` | fast's idea | 2 (2.00) | 0.0400 tf32 (0.50) |",
            "| `short` | `root` | short's idea | - | wrong |",
            "- `short` (small, f32): a row is too long",
            "<!-- begin: ladder_gemm --> Not measured yet. <!-- end: ladder_gemm -->",
        ],
    );
}

#[test]
fn what_the_bench_writes_can_be_read() {
    let site = Site::with(&["spmm"]);
    assert!(crate::spmm::tests::run(&["--features", "3"], &site.path("spmm.jsonl")).unwrap());
    let Some(text) = site.written() else {
        return;
    };
    assert_all_in(
        &text,
        &[
            "1 cases, 0 of them timed against cuSPARSE.",
            "Without a time: 1 (not timed).",
        ],
    );
}
