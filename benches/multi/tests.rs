//! The bench on the emulator, from its options to its file.

use super::{Options, run};
use crate::spmm::cases::{GRAPHS, Graph, Kind};
use clap::Parser;
use std::num::NonZeroUsize;
use warprow::multi::{Partition, RowCuts, Work};

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

/// Rows of the graphs of the benches, divided by this: their rows keep their length.
const SCALE: u32 = 400;

#[test]
fn parts_of_every_graph_of_the_benches_have_at_most_five_percent_more_work_than_the_mean() {
    for graph in GRAPHS {
        for kind in Kind::ALL {
            let rows = (graph.rows / SCALE).max(2_000);
            // A quarter of all entries at most, which every kind can have.
            let nonzeros = u64::from(graph.nonzeros) * u64::from(rows) / u64::from(graph.rows);
            let nonzeros = nonzeros.min(u64::from(rows / 4) * u64::from(rows)) as u32;
            let scaled = Graph {
                rows,
                nonzeros,
                ..*graph
            };
            let a = kind.generate::<f32>(scaled, 1).unwrap();
            let row_ptr = a.indptr();
            let row_ptr = row_ptr.to_proper();
            let b_lengths: Vec<u32> = row_ptr.windows(2).map(|ends| ends[1] - ends[0]).collect();
            let products = Work::Products {
                col_idx: a.indices(),
                b_lengths: &b_lengths,
            };
            for (operation, work) in [("SpMM", Work::Nonzeros), ("SpGEMM", products)] {
                for parts in [2, 4, 8] {
                    let count = NonZeroUsize::new(parts).unwrap();
                    let partition = Partition::by_work(&row_ptr, work, count, RowCuts::Allowed);
                    let imbalance = partition.imbalance();
                    assert!(
                        imbalance <= 1.05,
                        "{operation} of {} ({}), {parts} parts: {imbalance}",
                        graph.name,
                        kind.name()
                    );
                }
            }
        }
    }
}
