//! The bench on the emulator, from its options to its file.

use super::options::{Operation, Options};
use super::peer::Peer;
use super::report::{Case, Report};
use super::{graphs, run};
use crate::spmm::cases::{GRAPHS, Graph, Kind};
use clap::Parser;
use serde_json::Value;
use std::num::NonZeroUsize;
use warprow::device::EmulatorOptions;
use warprow::multi::{Partition, RowCuts, Work};
use warprow::operand::OperandError;
use warprow::{Device, Error};

/// The objects that the bench writes on emulators with these arguments.
fn lines(arguments: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("multi.jsonl");
    let output = path.to_str().expect("a temporary path is text");
    let fixed = ["multi", "--device", "emulator", "--output", output];
    let options = Options::try_parse_from([&fixed[..], arguments].concat());
    assert!(run(&options.unwrap()).unwrap());
    let text = std::fs::read_to_string(&path).unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// That lines of these kinds, in the order of their table, with 1 and 3 parts are right, not timed, and balanced.
fn check(lines: &[Value], operation: &str, kinds: &[&str]) {
    let found = lines.iter().map(|line| {
        let kind = line["kind"].as_str().unwrap();
        (kind, line["parts"].as_u64().unwrap())
    });
    let wanted = kinds.iter().flat_map(|&kind| [(kind, 1), (kind, 3)]);
    assert_eq!(found.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
    for line in lines {
        assert_eq!(line["operation"], operation);
        assert_eq!(line["ok"], true, "{line}");
        assert!(line["skipped"].is_null(), "{line}");
        assert_eq!(
            line["gpus"].as_array().unwrap().len() as u64,
            line["devices"]
        );
        assert_eq!(
            line["devices"], line["parts"],
            "each emulator is a device of its own"
        );
        for time in ["ms", "plan_ms", "predicted_ms", "speedup", "cusparse_ms"] {
            assert!(line[time].is_null(), "{time}: {line}");
        }
        assert!(line["imbalance"].as_f64().unwrap() <= 1.05);
        let travels = line["rows_received"].as_u64().unwrap() > 0;
        assert_eq!(travels, line["parts"] == 3);
    }
}

const SMALL: [&str; 6] = ["--rows", "1000", "--row-length", "8", "--parts", "3"];

#[test]
fn products_with_a_dense_matrix_are_right_and_one_part_comes_first() {
    let lines = lines(&[&SMALL[..], &["--features", "4"]].concat());
    check(&lines, "spmm", &["uniform", "communities_shuffled"]);
    for line in &lines {
        let bytes = |phase: &str| line[phase].as_u64().unwrap();
        assert_eq!(bytes("exchange_bytes"), 16 * bytes("rows_received"));
        assert_eq!(bytes("distribution_bytes"), 16 * 1000);
        assert_eq!(bytes("plan_bytes"), 8 * 8000);
        assert!(3 * bytes("exchange_bytes_of_a_gpu") >= bytes("exchange_bytes"));
    }
}

#[test]
fn products_of_graphs_are_right_whether_they_are_gathered_or_not() {
    let arguments = [
        &SMALL[..],
        &["--operation", "spgemm", "--kind", "rmat57,uniform"],
    ]
    .concat();
    for more in [&[][..], &["--no-gather"]] {
        let lines = lines(&[&arguments[..], more].concat());
        check(&lines, "spgemm", &["rmat57", "uniform"]);
        for pair in lines.chunks(2) {
            for count in ["products", "entries"] {
                assert!(pair[0][count].as_u64().unwrap() > 8000, "{}", pair[0]);
                // Pieces of a row that was cut may have entries of the same column.
                assert!(pair[0][count].as_u64() <= pair[1][count].as_u64());
            }
            assert_eq!(pair[0]["products"], pair[1]["products"]);
            let imbalance = pair[1]["imbalance_measured"].as_f64().unwrap();
            assert!((1.0..1.06).contains(&imbalance), "{imbalance}");
        }
    }
}

#[test]
fn networks_are_right() {
    let lines = lines(&["--operation", "gcn", "--parts", "1,3"]);
    check(&lines, "gcn", &["rmat57"]);
    let bytes = |phase: &str| lines[1][phase].as_u64().unwrap();
    // Layers from 33 to 16 to 7 features.
    assert_eq!(
        bytes("exchange_bytes"),
        4 * (16 + 7) * bytes("rows_received")
    );
    assert_eq!(bytes("distribution_bytes"), 4 * 33 * 2003);
}

#[test]
fn what_no_device_can_hold_has_a_line_that_says_so() {
    let device = Device::emulator(EmulatorOptions::default());
    let options = Options::try_parse_from(["multi", "--parts", "2"]).unwrap();
    let mut report = Report::create(&options, &device).unwrap();
    let case = Case::new(Operation::Spgemm, "own", "uniform");
    let peer = Peer::skipped("no cuSPARSE");
    let too_large = || {
        Error::Operand(OperandError::TooLarge {
            what: "the number of products",
            found: 1 << 40,
            most: 1 << 32,
        })
    };
    let skipped = report.case(&options, &device, &case, &peer, |_| Err(too_large()));
    assert!(skipped.is_ok() && report.all_right());
    let failure = || Error::Operand(OperandError::OtherParts { what: "y" });
    let failed = report.case(&options, &device, &case, &peer, |_| Err(failure()));
    assert!(failed.is_err());
}

#[test]
fn one_part_is_first_and_the_others_are_on_as_many_gpus_as_they_can_be() {
    let placements = |arguments: &[&str]| {
        let options = Options::try_parse_from([&["multi"], arguments].concat());
        options.unwrap().placements()
    };
    assert_eq!(placements(&["--parts", "2,1"]), [(1, None), (2, None)]);
    assert_eq!(
        placements(&["--parts", "1,2,4", "--gpus", "1,4"]),
        [(1, None), (2, Some(1)), (4, Some(1)), (4, Some(4))]
    );
}

#[test]
fn more_nonzeros_than_32_bits_count_are_refused() {
    let arguments = ["multi", "--rows", "100000000", "--row-length", "50"];
    let options = Options::try_parse_from(arguments).unwrap();
    let error = graphs::cases(&options, true).unwrap_err().to_string();
    assert!(error.contains("4294967295"), "{error}");
    let billion = ["multi", "--rows", "20000000", "--row-length", "50"];
    let options = Options::try_parse_from(billion).unwrap();
    let (graph, _) = graphs::cases(&options, true).unwrap()[0];
    assert_eq!((graph.rows, graph.nonzeros), (20_000_000, 1_000_000_000));
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
