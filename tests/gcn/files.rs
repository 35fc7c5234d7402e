//! Networks from files: one that PyTorch has trained, and files that hold none.

use crate::{assert_close, network};
use ndarray::{ArrayViewD, array};
use std::path::{Path, PathBuf};
use support::devices;
use warprow::gcn::{read_layers, read_matrix};
use warprow::matrix_market::read_matrix_market;
use warprow::{Gcn, GcnOptions};

/// A file of `data` beside the tests: cargo runs tests in the package's directory, on whatever machine.
fn data(name: &str) -> PathBuf {
    Path::new("data").join(name)
}

/// Writes an npy file of version 1, in f64.
fn write_npy(path: PathBuf, array: ArrayViewD<'_, f64>) {
    let axes: String = array
        .shape()
        .iter()
        .map(|axis| format!("{axis}, "))
        .collect();
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({axes}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(array.iter().flat_map(|number| number.to_le_bytes()));
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_network_trained_by_pytorch_gives_what_it_gives_there() {
    let graph = read_matrix_market::<f32>(data("karate.mtx")).unwrap();
    let layers = read_layers::<f32>(data("karate.safetensors")).unwrap();
    let x = read_matrix::<f32>(data("karate-x.npy")).unwrap();
    let wanted = read_matrix::<f64>(data("karate-y.npy")).unwrap();
    assert_eq!(
        (graph.nnz(), layers.len(), x.dim(), wanted.dim()),
        (156, 2, (34, 20), (34, 2))
    );
    for device in devices() {
        let mut gcn = Gcn::plan(&device, graph.view(), &layers, GcnOptions::default()).unwrap();
        let y = gcn.classify(x.view()).unwrap();
        assert_eq!(y.dim(), wanted.dim());
        for (found, wanted) in y.iter().zip(&wanted) {
            let error = (f64::from(*found) / wanted - 1.0).abs();
            assert!(error <= 1e-5, "{found} on {device}, wanted {wanted}");
        }
    }
    assert_close(
        &network(&graph, x.view(), &layers),
        &wanted,
        1e-13,
        "the definition",
    );
}

#[test]
fn weights_from_a_folder_of_npy_files_are_those_of_the_safetensors_file() {
    let layers = read_layers::<f64>(data("karate.safetensors")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (number, layer) in (1..).zip(&layers) {
        let path = |name| folder.path().join(format!("conv{number}.{name}.npy"));
        write_npy(path("lin.weight"), layer.weights.t().into_dyn());
        write_npy(path("bias"), layer.bias.as_ref().unwrap().view().into_dyn());
    }
    assert_eq!(read_layers::<f64>(folder.path()).unwrap(), layers);
    std::fs::remove_file(folder.path().join("conv2.bias.npy")).unwrap();
    assert_eq!(read_layers::<f64>(folder.path()).unwrap()[1].bias, None);
}

#[test]
fn files_that_hold_no_network_are_refused_with_what_is_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: PathBuf| read_layers::<f32>(path).unwrap_err().to_string();
    let text = refused(folder.path().to_owned());
    assert!(
        text.ends_with("wanted is a tensor `conv1.lin.weight`, found are none"),
        "{text}"
    );
    assert!(refused(folder.path().join("nothing.safetensors")).contains("nothing.safetensors"));
    let path = folder.path().join("text.safetensors");
    std::fs::write(&path, "this is no such file, whatever its name says").unwrap();
    assert!(refused(path).contains("no safetensors file"));
    let path = folder.path().join("conv1.lin.weight.npy");
    write_npy(path.clone(), array![1.0, 2.0].view().into_dyn());
    let text = refused(folder.path().to_owned());
    assert!(
        text.contains("of shape [2], wanted is two dimensions"),
        "{text}"
    );
    std::fs::write(&path, "no array").unwrap();
    assert!(refused(folder.path().to_owned()).contains("no npy file"));
}

#[test]
fn a_truncated_file_says_how_much_of_it_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let truncated = |name: &str| {
        let bytes = std::fs::read(data(name)).unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        path
    };
    let text = read_matrix::<f32>(truncated("karate-x.npy"))
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("bytes of numbers after the header, found"),
        "{text}"
    );
    let text = read_layers::<f32>(truncated("karate.safetensors"))
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("bytes of tensors after the header, found"),
        "{text}"
    );
}

#[test]
fn names_in_a_file_are_quoted_in_part_and_escaped() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a\x1b[2J.npy"), "").unwrap();
    for number in 0..100 {
        std::fs::write(folder.path().join(format!("conv{number}.npy")), "").unwrap();
    }
    let text = read_layers::<f32>(folder.path()).unwrap_err().to_string();
    let (_, found) = text.split_once("found are ").unwrap();
    assert!(found.starts_with("`a\\u{1b}[2J.npy, conv0.npy"), "{found}");
    assert!(found.chars().count() <= 82, "{found}");
}
