//! Results in files: the same in every format, and what the other subcommands read.

use super::{Folder, root, texts};
use ndarray::Array2;
use warprow::files::{Output, read_dense, read_sparse};

#[test]
fn a_product_is_the_same_in_every_format() {
    let folder = Folder::new();
    folder.printed(&["spgemm", "a.mtx", "-o", "c.mtx"]);
    let wanted = read_sparse::<f32>(folder.path("c.mtx")).unwrap();
    assert_eq!(wanted.nnz(), 3);
    for name in ["c.npz", "c.tsv", "c.csv", "c.mtx.gz", "c.csv.gz"] {
        let text = folder.printed(&["spgemm", "a.mtx", "-o", name]);
        assert!(text.contains("check      verified: 3 entries"), "{text}");
        assert!(text.ends_with(&format!("written    {name}\n")), "{text}");
        assert_eq!(
            read_sparse::<f32>(folder.path(name)).unwrap(),
            wanted,
            "{name}"
        );
        // A x (A x A), from that file.
        folder.printed(&["spgemm", "a.mtx", name, "-o", "cube.npz"]);
    }
}

#[test]
fn a_dense_result_is_the_next_products_operand() {
    let folder = Folder::new();
    folder.printed(&["spmm", "a.mtx", "--features", "5", "-o", "y.safetensors"]);
    let y = read_dense::<f32>(folder.path("y.safetensors")).unwrap();
    let text = folder.printed(&[
        "spmm",
        "a.mtx",
        "y.safetensors",
        "-o",
        "z.npy",
        "--type",
        "f64",
    ]);
    assert!(text.contains("check      verified: 15 entries"), "{text}");
    let z = read_dense::<f32>(folder.path("z.npy")).unwrap();
    assert_eq!(z.row(0), y.row(0));
    assert_eq!(z.row(1), &y.row(2) * 2.0);
    for arguments in [
        &["--reduction", "max", "--type", "f16"][..],
        &["--transpose", "--reduction", "mean", "--type", "bf16"],
        &["--kernel", "warp_per_row", "--no-verify"],
    ] {
        folder.printed(&[&["spmm", "a.mtx", "y.safetensors"], arguments].concat());
    }
}

#[test]
fn a_network_that_pytorch_has_trained_classifies_as_there() {
    let folder = Folder::new();
    let data = root().join("tests/data");
    let path = |name: &str| data.join(name).to_string_lossy().into_owned();
    folder.printed(&[
        "gcn",
        &path("karate.mtx"),
        &path("karate-x.npy"),
        "--weights",
        &path("karate.safetensors"),
        "-o",
        "y.npy",
    ]);
    let y = read_dense::<f64>(folder.path("y.npy")).unwrap();
    let wanted = read_dense::<f64>(data.join("karate-y.npy")).unwrap();
    assert_eq!(y.dim(), wanted.dim());
    assert!(
        y.iter()
            .zip(&wanted)
            .all(|(y, wanted)| (y / wanted - 1.0).abs() < 1e-5)
    );
}

#[test]
fn edge_lists_take_their_options() {
    let folder = Folder::new();
    folder.write("edges", "source,target\n0,1\n1,2\n");
    let text = folder.printed(&[
        "info",
        "edges",
        "--format",
        "csv",
        "--symmetric",
        "--no-plans",
    ]);
    assert!(
        text.contains("3 x 3, 4 nonzeros") && text.contains("symmetric, values too"),
        "{text}"
    );
    let text = folder.printed(&[
        "info",
        "edges",
        "--format",
        "csv",
        "--shape",
        "4x9",
        "--no-plans",
    ]);
    assert!(text.contains("4 x 9, 2 nonzeros"), "{text}");
    let found = folder.refused(&["info", "edges", "--format", "csv", "--shape", "4"], 2);
    assert!(found.contains("wanted two numbers"), "{found}");
}

#[test]
fn a_picture_has_the_nonzeros_and_the_lengths() {
    let folder = Folder::new();
    folder.printed(&["info", "a.mtx", "--plot", "a.svg", "--no-plans"]);
    let svg = std::fs::read_to_string(folder.path("a.svg")).unwrap();
    assert!(
        svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"),
        "{svg}"
    );
    for text in [
        "a.mtx: 3 x 3, 3 nonzeros",
        "nonzeros of a row",
        "nonzeros of a column",
    ] {
        assert!(svg.contains(text), "{text}");
    }
}

#[test]
fn a_wrong_result_would_be_told_by_the_exit_code_and_is_not_asked_for_with_no_verify() {
    let folder = Folder::new();
    let output = folder.run(&["spmm", "a.mtx", "--no-verify"]);
    let (stdout, _) = texts(&output);
    assert_eq!(output.status.code(), Some(0));
    assert!(!stdout.contains("check"), "{stdout}");
}

#[test]
fn a_wrong_result_is_not_written_and_an_existing_file_stays() {
    let folder = Folder::new();
    // 1e30 * 1e30 - 1e30 * 1e30 is 0 in f64; in f32 the products are infinite.
    let banner = "%%MatrixMarket matrix coordinate real general\n";
    folder.write("row.mtx", format!("{banner}1 2 2\n1 1 1e30\n1 2 -1e30\n"));
    let x = Output::dense(folder.path("x.npy")).unwrap();
    x.write_dense(Array2::from_elem((2, 1), 1e30_f32).view())
        .unwrap();
    folder.write("y.npy", "from before");
    let arguments = ["spmm", "row.mtx", "x.npy", "-o", "y.npy"];
    let found = folder.refused(&arguments, 1);
    assert!(
        found.starts_with("error: y.npy is not written: "),
        "{found}"
    );
    let content = || std::fs::read(folder.path("y.npy")).unwrap();
    assert_eq!(content(), b"from before");
    folder.printed(&[&arguments[..], &["--no-verify"]].concat());
    assert_ne!(content(), b"from before");
}
