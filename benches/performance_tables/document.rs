//! The document as a whole: its marks, its summary, and what makes the script refuse it.

use super::{Site, assert_all_in, planted, planted_for};
use std::path::Path;

#[test]
fn the_summary_has_a_line_for_each_operation_with_results() {
    let case = |graph, ours: &str, theirs: &str| {
        let outcome = |ms| format!(r#""ms":{ms},"ok":true"#);
        [
            planted_for(graph, 32, "warprow", &outcome(ours)),
            planted_for(graph, 32, "cusparse_default", &outcome(theirs)),
        ]
    };
    let of_file = |line: &String| line.replace("rmat57", "file");
    let generated = [case("ppa", "1.0", "4.0"), case("ddi", "2.0", "1.0")].concat();
    let files: Vec<String> = case("words", "2.0", "3.0").iter().map(of_file).collect();
    let site = Site::with(&["summary"]);
    site.write("spmm.jsonl", &[generated, files].concat());
    let small = case("ppa", "1.0", "1.1").map(|line| line.replace("01-02", "01-03"));
    site.write(
        "spmm_small.jsonl",
        &[case("am", "1.0", "1.1"), small].concat(),
    );
    let Some(text) = site.written() else {
        return;
    };
    assert_all_in(
        &text,
        &[
            "(#spmm) | cuSPARSE 12.6.3 | 2 | 1.41 | 2.25 | 0.50 | 1 | 2026-01-02 |",
            "(#spmm-of-real-matrices) | cuSPARSE 12.6.3 | 1 | 1.50 | 1.50 | 1.50 | 0 | 2026-01-02 |",
            "(#small-matrices) | cuSPARSE 12.6.3 | 2 | 1.10 | 1.10 | 1.10 | 0 | 2026-01-02 to 2026-01-03 |",
        ],
    );
    assert_eq!(text.matches("cuSPARSE 12.6.3").count(), 3, "{text}");
    assert!(!text.contains("GCN"), "{text}");
}

#[test]
fn only_what_stands_between_the_marks_is_rewritten_and_a_check_rewrites_nothing() {
    let site = Site::with(&["spmm"]);
    site.write("spmm.jsonl", &[planted("warprow", r#""ms":2.0,"ok":true"#)]);
    let before = site.text();
    let Some(stale) = site.run(&["--check"]) else {
        return;
    };
    assert_eq!(stale.status.code(), Some(1));
    assert_eq!(site.text(), before);
    assert!(site.run(&[]).unwrap().status.success());
    let text = site.text();
    assert!(
        text.starts_with(
            "before\n<!-- begin: spmm -->\nGraphs of the sizes of data sets, in brackets rows"
        ),
        "{text}"
    );
    assert!(text.ends_with("\n<!-- end: spmm -->\nafter\n"), "{text}");
    assert!(site.run(&["--check"]).unwrap().status.success());
}

#[test]
fn a_section_without_results_says_so() {
    let sections = [
        "ladder_spmm",
        "spmm",
        "spmm_counters",
        "gemm",
        "gcn",
        "spgemm",
    ];
    let site = Site::with(&sections);
    let Some(text) = site.written() else {
        return;
    };
    assert_eq!(text.matches("Not measured yet.").count(), sections.len());
}

#[test]
fn results_and_documents_that_are_none_are_refused_with_the_place() {
    let site = Site::with(&["spmm"]);
    let right = planted("warprow", r#""ms":2.0,"ok":true"#);
    site.write("spmm.jsonl", &[right.clone(), "[]".to_owned()]);
    let Some(message) = site.refused() else {
        return;
    };
    assert!(
        message.contains("spmm.jsonl:2: wanted a result"),
        "{message}"
    );
    site.write("spmm.jsonl", &[String::new()]);
    assert!(site.refused().unwrap().contains("found none"));
    site.write("spmm.jsonl", &[right]);
    for (document, wanted) in [
        ("no marks\n", "wanted marks"),
        ("<!-- begin: spnn -->\n<!-- end: spnn -->\n", "found spnn"),
        (
            "<!-- begin: spmm -->\n",
            "wanted one line <!-- begin: spmm -->",
        ),
    ] {
        std::fs::write(&site.document, document).unwrap();
        let message = site.refused().unwrap();
        assert!(
            message.contains("performance.md: ") && message.contains(wanted),
            "{message}"
        );
    }
}

#[test]
fn the_document_of_the_repository_has_every_section() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let document = std::fs::read_to_string(root.join("docs/performance.md")).unwrap();
    for family in ["spmm", "spgemm", "gemm"] {
        for name in [family.to_owned(), format!("ladder_{family}")] {
            assert!(
                document.contains(&format!("<!-- begin: {name} -->")),
                "{name}"
            );
        }
    }
}
