//! The bench on the emulator, from its options to its file.

use crate::spmm::bench;
use crate::spmm::options::Options;
use clap::Parser;
use serde_json::Value;
use std::path::Path;
use warprow::SpmmKernel;

pub(crate) fn run(arguments: &[&str], output: &Path) -> anyhow::Result<bool> {
    let output = output.to_str().expect("a temporary path is text");
    let fixed = ["spmm", "--device", "emulator", "--output", output];
    bench::run(&Options::try_parse_from([&fixed, arguments].concat())?)
}

fn objects(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn each_case_and_implementation_has_a_line_that_is_right_and_not_timed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spmm.jsonl");
    let arguments = [
        "--kernel",
        "all",
        "--features",
        "1,5",
        "--kind",
        "rmat35,uniform",
    ];
    assert!(run(&arguments, &path).unwrap());
    let objects = objects(&path);
    assert_eq!(objects.len(), 4 * (2 + SpmmKernel::ALL.len()));
    for object in &objects {
        assert_eq!(object["bench"], "spmm");
        assert_eq!(object["graph"], "small");
        assert_eq!(object["nnz"], 20_011);
        assert_eq!(object["type"], "f32");
        assert!(object["ms"].is_null());
        if object["impl"] == "gather_limit" {
            assert!(object["kernel"].as_str().unwrap().starts_with("tile "));
            assert!(object.get("ok").is_none());
        } else {
            assert!(object["variant"].as_str().unwrap().starts_with("spmm_"));
            assert_eq!(object["ok"], true);
            assert_eq!(object["rows_verified"], 2_003);
            assert!(object["max_rel_err"].as_f64().unwrap() < 1e-5);
        }
        assert_eq!(object["device"], "emulator");
        assert_eq!(object["date"].as_str().unwrap().len(), "2026-01-01".len());
        assert!(object.get("skipped").is_none() && object.get("cusparse").is_none());
    }
    let first = &objects[0];
    assert_eq!(
        (&first["kind"], &first["features"]),
        (&"rmat35".into(), &1.into())
    );
    assert_eq!(first["impl"], "gather_limit");
    assert_eq!(objects[1]["impl"], "warprow");
    let planned = |kernel: &SpmmKernel| objects[1]["kernel"] == kernel.name();
    assert!(SpmmKernel::ALL.iter().any(planned));
    assert_eq!(objects[2]["impl"], SpmmKernel::ALL[0].name());
}

#[test]
fn a_run_in_f64_replaces_the_file_of_the_run_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spmm.jsonl");
    std::fs::write(&path, "what was there\n").unwrap();
    assert!(run(&["--type", "f64", "--features", "2"], &path).unwrap());
    let objects = objects(&path);
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[0]["type"], "f64");
    let skipped = objects[0]["skipped"].as_str().unwrap();
    assert_eq!(skipped, "there is no gather limit in f64");
    assert_eq!(objects[1]["variant"], "spmm_row_bins_f64_2");
    assert!(objects[1]["max_rel_err"].as_f64().unwrap() < 1e-14);
}

#[test]
fn a_run_that_resumes_adds_what_the_file_has_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spmm.jsonl");
    assert!(run(&["--features", "2"], &path).unwrap());
    let before = std::fs::read_to_string(&path).unwrap();
    // The run was killed in the middle of its last line.
    let first = before.lines().next().unwrap();
    std::fs::write(
        &path,
        format!("{first}\n{}", &before[first.len() + 1..][..40]),
    )
    .unwrap();
    let arguments = ["--features", "3,2", "--resume"];
    assert!(run(&arguments, &path).unwrap());
    let after = std::fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(&format!("{first}\n")));
    let cases: Vec<_> = objects(&path)
        .iter()
        .map(|object| (object["features"].as_u64().unwrap(), object["impl"].clone()))
        .collect();
    let wanted = [
        (2, "gather_limit"),
        (3, "gather_limit"),
        (3, "warprow"),
        (2, "warprow"),
    ];
    assert_eq!(
        cases,
        wanted.map(|(features, name)| (features, Value::from(name)))
    );
    // Nothing is left to run.
    assert!(run(&arguments, &path).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), after);
}

#[test]
fn a_file_that_cannot_be_resumed_is_refused_with_the_place_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spmm.jsonl");
    assert!(run(&["--features", "1"], &path).unwrap());
    let results = std::fs::read_to_string(&path).unwrap();
    for (held, wanted) in [
        ("no result\n".to_owned(), "spmm.jsonl:1: wanted a result"),
        (
            format!("{results}{results}"),
            "spmm.jsonl:3: a second result",
        ),
        (
            results.replace(r#""device":"emulator""#, r#""device":"some GPU""#),
            "wanted results of emulator to add to, found results of some GPU",
        ),
        (
            results.replace(r#""ptx":null"#, r#""ptx":"0123abcd""#),
            "wanted results of unknown kernels to add to, found results of the kernels 0123abcd",
        ),
    ] {
        std::fs::write(&path, &held).unwrap();
        let error = run(&["--resume"], &path).unwrap_err();
        assert!(format!("{error:#}").contains(wanted), "{error:#}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), held);
    }
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let path = Path::new("/nonexistent/spmm.jsonl");
    let error = run(&[], path).unwrap_err();
    assert!(
        format!("{error:#}").contains("/nonexistent/spmm.jsonl"),
        "{error:#}"
    );
}

#[test]
fn a_cusparse_that_is_insisted_on_and_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().to_str().unwrap().to_owned();
    let output = folder.path().join("spmm.jsonl");
    let error = run(&["--cusparse", &library], &output).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("libcusparse.so.12 does not load"),
        "{error}"
    );
}

#[test]
fn the_16_bit_types_run_and_kernels_without_them_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spmm.jsonl");
    for element in ["f16", "bf16"] {
        let kernel = SpmmKernel::ALL[0].name();
        let options = ["--type", element, "--features", "2", "--kernel", kernel];
        assert!(run(&options, &path).unwrap());
        let objects = objects(&path);
        assert_eq!(objects[0]["type"], element);
        assert_eq!(objects[1]["ok"], true);
        assert!(objects[2]["skipped"].as_str().unwrap().contains(element));
    }
}

#[test]
fn random_products_have_a_matrix_and_a_number_of_features_each() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("random.jsonl");
    assert!(run(&["--random", "8", "--no-cusparse"], &path).unwrap());
    let objects = objects(&path);
    let ours: Vec<&Value> = objects
        .iter()
        .filter(|object| object["impl"] == "warprow")
        .collect();
    assert_eq!(ours.len(), 8);
    assert!(ours.iter().all(|object| object["ok"] == true));
    assert_eq!(ours[7]["graph"], "random_7");
    assert_eq!(ours[7]["kind"], "band");
    let both = ["--random", "8", "--features", "3"];
    assert!(run(&both, &path).is_err());
}
