//! The bench on the emulator, from its options to its file.

use super::{Options, run};
use clap::Parser;

#[test]
fn each_number_of_parts_has_a_line_that_is_right_and_not_timed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("multi.jsonl");
    let output = path.to_str().expect("a temporary path is text");
    let fixed = [
        "multi",
        "--device",
        "emulator",
        "--rows",
        "1000",
        "--row-length",
        "8",
    ];
    let arguments = [
        &fixed[..],
        &["--features", "4", "--parts", "1,3", "--output", output],
    ]
    .concat();
    assert!(run(&Options::try_parse_from(arguments).unwrap()).unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    let objects: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let found: Vec<_> = (objects.iter())
        .map(|object| {
            (
                object["graph"].as_str().unwrap(),
                object["parts"].as_u64().unwrap(),
            )
        })
        .collect();
    let graphs = ["communities_shuffled", "uniform"];
    let wanted: Vec<_> = graphs
        .iter()
        .flat_map(|&graph| [(graph, 1), (graph, 3)])
        .collect();
    assert_eq!(found, wanted);
    for object in &objects {
        assert_eq!(object["ok"], true);
        assert_eq!(
            object["devices"], object["parts"],
            "each emulator is a device of its own"
        );
        assert!(object["ms"].is_null() && object["predicted_ms"].is_null());
        assert!(object["imbalance"].as_f64().unwrap() <= 1.05);
    }
}
