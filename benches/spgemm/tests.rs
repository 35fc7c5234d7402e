//! The bench on the emulator, from its options to its file.

use crate::spgemm::bench;
use crate::spgemm::options::Options;
use clap::Parser;
use serde_json::Value;
use std::path::Path;

fn run(arguments: &[&str], output: &Path) -> anyhow::Result<bool> {
    let output = output.to_str().expect("a temporary path is text");
    let fixed = ["spgemm", "--device", "emulator", "--output", output];
    bench::run(&Options::try_parse_from([&fixed, arguments].concat())?)
}

#[test]
fn each_product_and_implementation_has_a_line_that_is_right_and_not_timed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spgemm.jsonl");
    assert!(run(&[], &path).unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    let objects: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(objects.len(), 2);
    for object in &objects {
        assert_eq!(object["bench"], "spgemm");
        assert_eq!(object["graph"], "small");
        assert_eq!(object["nnz"], 4_011);
        assert_eq!(object["type"], "f32");
        assert!(object["ms"].is_null() && object["gflops"].is_null());
        let (products, entries) = (object["products"].as_u64(), object["entries"].as_u64());
        assert!(products > entries && entries > Some(4_011), "{object}");
        assert_eq!(object["ok"], true);
        assert_eq!(object["rows_verified"], 503);
    }
    assert_eq!(objects[0]["impl"], "warprow");
    assert_ne!(objects[0]["products"], objects[1]["products"]);
}

#[test]
fn a_line_names_the_entry_points_and_a_sweep_adds_what_launches_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spgemm.jsonl");
    assert!(run(&["--sweep", "--product", "square"], &path).unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    let objects: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let launches = |object: &Value, phase: &str, kernel: &str| {
        let mut names = object[phase].as_array().unwrap().iter();
        names.any(|name| name.as_str().unwrap().starts_with(kernel))
    };
    let of = |name: &str| objects.iter().find(|object| object["impl"] == name);
    let ours = of("warprow").unwrap();
    assert_eq!(ours["ok"], true);
    assert!(launches(ours, "entry_points", "spgemm_row_work"));
    assert!(launches(
        ours,
        "symbolic_entry_points",
        "spgemm_copy_columns"
    ));
    assert!(launches(
        ours,
        "numeric_entry_points",
        "spgemm_sort_products_f32_"
    ));
    let unsorted = of("no_numeric_sort").unwrap();
    assert_eq!(unsorted["ok"], true);
    assert!(!launches(
        unsorted,
        "numeric_entry_points",
        "spgemm_sort_products_f32_"
    ));
    // The matrix has no rows of runs, so the limit changes nothing.
    assert!(of("no_runs").is_none());
}

#[test]
fn a_cusparse_that_is_insisted_on_and_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().to_str().unwrap().to_owned();
    let output = folder.path().join("spgemm.jsonl");
    let error = run(&["--cusparse", &library], &output).unwrap_err();
    assert!(error.to_string().contains("does not load"), "{error}");
}
