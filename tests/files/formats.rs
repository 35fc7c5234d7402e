//! The end of a name decides the format, and a result is there whole or not at all.

use ndarray::{Array2, array};
use std::fs;
use std::path::Path;
use warprow::edge_list::EdgeListOptions;
use warprow::files::{FileError, FileOptions, Format, Output, read_dense, read_sparse};
use warprow::generate;
use warprow::safetensors::{read_safetensors, write_safetensors};
use warprow::{CsrMatrix, Scalar};

/// A matrix with empty rows and columns at its end and in between, and a long row.
fn sparse<T: Scalar>() -> CsrMatrix<T> {
    let mut entries = vec![(0, 3), (5, 0), (5, 7)];
    entries.extend((0..90).map(|column| (8, column)));
    let mut a = sprs::TriMatI::<T, u32>::new((11, 93));
    for (at, (row, column)) in entries.into_iter().enumerate() {
        a.add_triplet(row, column, T::from_f64(at as f64 / 8.0 - 1.0));
    }
    let csr: sprs::CsMatI<T, u32, usize> = a.to_csr();
    let indptr = csr
        .indptr()
        .raw_storage()
        .iter()
        .map(|&start| start as u32)
        .collect();
    CsrMatrix::new(
        (11, 93),
        indptr,
        csr.indices().to_vec(),
        csr.data().to_vec(),
    )
}

#[test]
fn a_sparse_matrix_is_the_same_after_writing_and_reading_in_every_format() {
    fn same<T: Scalar>(folder: &Path) {
        for end in Format::names(true) {
            let path = folder.join(format!("a{end}"));
            let output = Output::sparse(&path).unwrap();
            assert!(!path.exists());
            output.write_sparse(sparse::<T>().view()).unwrap();
            assert_eq!(read_sparse::<T>(&path).unwrap(), sparse(), "{end}");
            fs::remove_file(path).unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    same::<f32>(folder.path());
    same::<f64>(folder.path());
    same::<half::f16>(folder.path());
    same::<half::bf16>(folder.path());
}

#[test]
fn a_dense_matrix_is_the_same_after_writing_and_reading_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let wide: Array2<f64> = generate::dense(37, 11, 1).unwrap();
    let columns = wide.t();
    for end in Format::names(false) {
        let path = folder.path().join(format!("x{end}"));
        Output::dense(&path).unwrap().write_dense(columns).unwrap();
        assert_eq!(read_dense::<f64>(&path).unwrap(), columns, "{end}");
    }
}

#[test]
fn a_place_that_is_dropped_leaves_what_was_there_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("y.npy");
    fs::write(&path, "before").unwrap();
    let output = Output::dense(&path).unwrap();
    assert!(output.partial_path().is_some_and(Path::exists));
    drop(output);
    assert_eq!(fs::read(&path).unwrap(), b"before");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_place_for_bytes_takes_any_name_and_is_whole_or_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.svg");
    drop(Output::bytes(&path).unwrap());
    assert!(!path.exists());
    Output::bytes(&path)
        .unwrap()
        .write_bytes(b"<svg/>")
        .unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"<svg/>");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_name_of_no_format_is_refused_before_anything_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "a.gz", "a.txt", "a.npy", ".."] {
        let path = folder.path().join(name);
        assert!(
            matches!(Output::sparse(&path), Err(FileError::Format { .. })),
            "{name}"
        );
        assert!(
            matches!(read_sparse::<f32>(&path), Err(FileError::Format { .. })),
            "{name}"
        );
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_format_that_is_insisted_on_counts_more_than_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("edges");
    fs::write(&path, "0 1\n1 2\n").unwrap();
    let options = FileOptions::default()
        .format(Format::EdgeList)
        .edge_list(EdgeListOptions::default().symmetric(true));
    assert_eq!(options.read_sparse::<f32>(&path).unwrap().nnz(), 4);
    assert!(options.read_dense::<f32>(&path).is_err());
}

#[test]
fn the_name_of_a_tensor_is_refused_for_an_npy_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let x = array![[1.0f32, 2.0]];
    Output::dense(&path).unwrap().write_dense(x.view()).unwrap();
    let options = FileOptions::default().tensor("x");
    let error = options.read_dense::<f32>(&path).unwrap_err();
    assert!(
        matches!(&error, FileError::Tensor { tensor, .. } if tensor == "x"),
        "{error}"
    );
}

#[test]
fn a_tensor_is_taken_by_its_name_or_as_the_only_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    let x = array![[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]];
    write_safetensors(&path, "weights", x.view()).unwrap();
    for name in [None, Some("weights")] {
        assert_eq!(read_safetensors::<f32>(&path, name).unwrap(), x);
    }
    let error = read_safetensors::<f32>(&path, Some("bias")).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("wanted a tensor `bias`, found `weights`"),
        "{error}"
    );
    let several = "data/karate.safetensors";
    let error = read_safetensors::<f32>(several, None)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("wanted one tensor, or the name of one, found `conv1.bias"),
        "{error}"
    );
    let error = read_safetensors::<f32>(several, Some("conv1.bias"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("tensor `conv1.bias`: wanted two axes, found shape [16]"),
        "{error}"
    );
}
