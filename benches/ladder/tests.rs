//! The bench on the emulator, from its options to its file.

use crate::ladder::bench;
use crate::ladder::options::Options;
use crate::ladder::rungs::{Rung, spgemm_rungs};
use clap::Parser;
use serde_json::Value;
use warprow::{GemmKernel, SpmmKernel};

#[test]
fn each_rung_and_case_has_a_line_that_is_right_or_says_why_it_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ladder.jsonl");
    let output = path.to_str().expect("a temporary path is text");
    let arguments = ["ladder", "--device", "emulator", "--output", output];
    assert!(bench::run(&Options::try_parse_from(arguments).unwrap()).unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    let objects: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let rungs: Vec<Rung> = (SpmmKernel::ALL.iter().copied().map(Rung::of_spmm))
        .chain(spgemm_rungs().map(Rung::of_spgemm))
        .chain(GemmKernel::ALL.iter().copied().map(Rung::of_gemm))
        .collect();
    assert_eq!(objects.len(), rungs.len());
    for (object, rung) in objects.iter().zip(rungs) {
        assert_eq!(object["bench"], "ladder");
        assert_eq!(object["rung"], rung.name);
        assert_eq!(object["parent"], Value::from(rung.parent));
        assert_eq!(object["idea"], rung.idea);
        match object.get("skipped") {
            // Some kernels of XW have one type.
            Some(reason) => assert!(object["family"] == "gemm" && reason.is_string()),
            None => assert!(object["ok"] == true && object["ms"].is_null(), "{object}"),
        }
    }
    let of = |family: &str, key: &str| -> Vec<&Value> {
        let of_family = objects.iter().filter(|object| object["family"] == family);
        let mut found: Vec<_> = of_family.map(|object| &object[key]).collect();
        found.dedup();
        found
    };
    assert_eq!(of("spmm", "case"), ["tiny_rmat57"]);
    assert_eq!(of("spgemm", "case"), ["tiny_rmat57"]);
    assert_eq!(of("gemm", "case"), ["203 x 128 by 128 x 16"]);
    assert_eq!(of("gemm", "type"), ["f32"]);
}
