//! The bench on the emulator, from its options to its file.

use super::{Options, run};
use clap::Parser;

#[test]
fn each_matrix_has_a_line_that_is_right_and_not_timed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("upload.jsonl");
    let fixed = ["upload", "--device", "emulator", "--output"];
    let output = path.to_str().expect("a temporary path is text");
    let arguments = [&fixed[..], &[output, "--nonzeros", "16,5000"]].concat();
    assert!(run(&Options::try_parse_from(arguments).unwrap()).unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    let objects: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let nonzeros: Vec<_> = objects.iter().map(|object| &object["nnz"]).collect();
    assert_eq!(nonzeros, [256, 4992]);
    for object in &objects {
        assert_eq!(object["ok"], true);
        assert!(object["ms"].is_null() && object["check_part"].is_null());
    }
}
