//! The operands and the result of a network as npy files, so that a peer can run the same network and compare.

use crate::gcn::networks::Network;
use anyhow::{Context, Result};
use ndarray::Array2;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use warprow::{CsrMatrix, GcnLayer};

/// Writes `NETWORK-row_ptr.npy`, `-col_idx`, `-x`, `-w1`, `-b1`, `-w2`, `-b2` and `-y`; indices as i32, all else as
/// f32. The edges have weight 1.
///
/// # Errors
///
/// A folder or a file that cannot be written; 2^31 edges or more.
pub fn save(
    folder: &Path,
    network: &Network,
    graph: &CsrMatrix<f32>,
    x: &Array2<f32>,
    layers: &[GcnLayer<f32>; 2],
    y: &[f32],
) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let write =
        |name: &str, kind: &str, shape: &[usize], elements: &mut dyn Iterator<Item = [u8; 4]>| {
            let path = folder.join(format!("{}-{name}.npy", network.name));
            let written = File::create(&path).and_then(|file| {
                let mut file = BufWriter::new(file);
                file.write_all(&header(kind, shape))?;
                for element in elements {
                    file.write_all(&element)?;
                }
                file.flush()
            });
            written.with_context(|| path.display().to_string())
        };
    let indices = |name: &str, indices: &[u32]| {
        let all_fit = indices.iter().all(|&index| i32::try_from(index).is_ok());
        anyhow::ensure!(all_fit, "wanted indices below 2^31 for {name}");
        write(
            name,
            "<i4",
            &[indices.len()],
            &mut indices.iter().map(|index| index.to_le_bytes()),
        )
    };
    let floats = |name: &str, shape: &[usize], floats: &mut dyn Iterator<Item = &f32>| {
        write(
            name,
            "<f4",
            shape,
            &mut floats.map(|float| float.to_le_bytes()),
        )
    };
    indices("row_ptr", graph.indptr().into_raw_storage())?;
    indices("col_idx", graph.indices())?;
    floats("x", x.shape(), &mut x.iter())?;
    for (number, layer) in (1..).zip(layers) {
        let bias = layer.bias.as_ref().context("each layer has a bias")?;
        let weights = &layer.weights;
        floats(&format!("w{number}"), weights.shape(), &mut weights.iter())?;
        floats(&format!("b{number}"), bias.shape(), &mut bias.iter())?;
    }
    floats("y", &[graph.rows(), network.widths[2]], &mut y.iter())
}

/// The start of an npy file (NumPy enhancement proposal 1, version 1.0) of an array that is stored by rows.
fn header(kind: &str, shape: &[usize]) -> Vec<u8> {
    let extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    let mut text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({extents}), }}");
    // Magic, version and length are 10 bytes; the whole ends with a newline at a multiple of 64.
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    text = format!("{text:<width$}\n", width = length - 1);
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((length as u16).to_le_bytes());
    header.extend(text.as_bytes());
    header
}
