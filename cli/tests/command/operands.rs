//! Operands, options and places of files that are refused before the computation.

use super::{Folder, texts};
use warprow::device::available_host_memory;

#[test]
fn info_refuses_more_columns_than_the_memory_holds() {
    // 12 bytes for each of 2^32 - 1 columns.
    if available_host_memory().is_none_or(|bytes| bytes > 51_000_000_000) {
        println!("skipped: this machine may have the memory");
        return;
    }
    let folder = Folder::new();
    let banner = "%%MatrixMarket matrix coordinate real general\n";
    folder.write("wide.mtx", format!("{banner}1 4294967295 1\n1 1 1\n"));
    let found = folder.refused(&["info", "wide.mtx"], 2);
    let wanted = "wide.mtx: statistics of 1 x 4 294 967 295: wanted 51.5 GB of memory, found";
    assert!(found.contains(wanted), "{found}");
}

#[test]
fn options_of_edge_lists_are_refused_for_other_formats() {
    let folder = Folder::new();
    folder.printed(&["spgemm", "a.mtx", "-o", "c.npz"]);
    folder.write("e.tsv", "0 1\n1 2\n");
    for (arguments, wanted) in [
        (
            &["info", "a.mtx", "--symmetric"][..],
            "a.mtx: --symmetric is for edge lists: wanted an edge list, found a Matrix Market file",
        ),
        (
            &["spmm", "c.npz", "--shape", "9x9"],
            "c.npz: --shape is for edge lists: wanted an edge list, found an npz file",
        ),
        (
            &["gcn", "e.tsv", "--format", "mtx", "--symmetric"],
            "e.tsv: --symmetric is for edge lists: wanted an edge list, found a Matrix Market file",
        ),
        (
            &["spgemm", "a.mtx", "c.npz", "--symmetric"],
            "a.mtx: --symmetric is for edge lists: wanted an edge list, found a Matrix Market file",
        ),
    ] {
        let found = folder.refused(arguments, 2);
        assert_eq!(found, format!("error: {wanted}\n"));
    }
    // One of the two operands takes the option.
    folder.printed(&["spgemm", "a.mtx", "e.tsv", "--symmetric"]);
}

#[test]
fn the_name_of_a_tensor_is_refused_for_a_file_without_names() {
    let folder = Folder::new();
    folder.printed(&["spmm", "a.mtx", "-o", "y.npy"]);
    for subcommand in ["spmm", "gcn"] {
        let found = folder.refused(&[subcommand, "a.mtx", "y.npy", "--tensor", "x"], 2);
        assert!(
            found.contains("y.npy: wanted no name of a tensor") && found.contains("found `x`"),
            "{found}"
        );
    }
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_the_work() {
    let folder = Folder::new();
    let mut commands = vec![vec!["info", "a.mtx", "--plot", "no/such"]];
    if cfg!(feature = "bench") {
        commands.push(vec!["bench", "a.mtx", "--plot", "no/such"]);
        commands.push(vec!["tune", "--output", "no/such"]);
    }
    for arguments in commands {
        let found = folder.refused(&arguments, 2);
        let wanted = "error: cannot write no/such: No such file";
        assert!(found.starts_with(wanted), "{arguments:?}: {found}");
        let (stdout, _) = texts(&folder.run(&arguments));
        assert_eq!(stdout, "", "{arguments:?}");
    }
}
