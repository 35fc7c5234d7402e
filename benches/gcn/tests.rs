//! The bench on the emulator, from its options to its file.

use crate::gcn::bench;
use crate::gcn::options::Options;
use clap::Parser;
use ndarray::Array2;
use serde_json::Value;
use warprow::gcn::read_matrix;

#[test]
fn each_operator_and_the_whole_have_a_line_that_is_right_and_not_timed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gcn.jsonl");
    let output = path.to_str().expect("a temporary path is text");
    let saved = folder.path().join("saved");
    let save = saved.to_str().expect("a temporary path is text");
    let arguments = [
        "gcn", "--device", "emulator", "--output", output, "--save", save,
    ];
    assert!(bench::run(&Options::try_parse_from(arguments).unwrap()).unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    let objects: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for object in &objects {
        assert_eq!(object["bench"], "gcn");
        assert_eq!(object["graph"], "small");
        assert_eq!(
            (&object["rows"], &object["nnz"]),
            (&2_003.into(), &20_011.into())
        );
        assert_eq!(object["widths"], serde_json::json!([33, 16, 7]));
        assert_eq!(object["type"], "f32");
        assert!(object["ms"].is_null() && object["floor_ms"].is_null());
        assert_eq!(object["ok"], true);
        // It is f32: neither exact nor far off.
        let error = object["max_rel_err"].as_f64().unwrap();
        assert!(error > 0.0 && error < 1e-6, "{error}");
    }
    let operators = objects.iter().map(|object| {
        assert_eq!(object["impl"], "warprow");
        let layer = object["layer"].as_u64().unwrap();
        (object["operator"].as_str().unwrap(), layer)
    });
    let wanted = [
        ("gemm", 1),
        ("aggregate", 1),
        ("aggregate", 2),
        ("launches", 0),
        ("network", 0),
    ];
    assert_eq!(operators.collect::<Vec<_>>(), wanted);
    // The whole moves the sum of what its operators move.
    let bytes = |object: &Value| object["bytes"].as_u64().unwrap();
    let sum: u64 = objects[..objects.len() - 2].iter().map(bytes).sum();
    assert_eq!(bytes(objects.last().unwrap()), sum);
    // What a peer compares itself with.
    let read = |name: &str| -> Array2<f32> { read_matrix(saved.join(name)).unwrap() };
    let (x, y) = (read("small-x.npy"), read("small-y.npy"));
    assert_eq!((x.dim(), y.dim()), ((2_003, 33), (2_003, 7)));
    let sums = y.rows().into_iter().map(|row| row.mapv(f32::exp).sum());
    assert!(sums.into_iter().all(|sum| (sum - 1.0).abs() < 1e-4));
    let row_ptr = std::fs::read(saved.join("small-row_ptr.npy")).unwrap();
    assert_eq!(row_ptr.len(), 128 + 4 * 2_004);
    assert!(row_ptr.ends_with(&20_011_i32.to_le_bytes()));
}
