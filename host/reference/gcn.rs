//! A graph convolutional network in f64, up to LogSoftmax.

use ndarray::{Array2, ArrayView1, ArrayView2};
use sprs::{CsMatI, CsMatViewI};

use super::{DenseEpilogue, check_stored_by_rows, gemm, spmm};
use crate::scalar::Scalar;
use crate::triplets::{self, Triplet};

/// A layer's weights, a row for each input feature, and its bias.
pub type LayerView<'a, T> = (ArrayView2<'a, T>, Option<ArrayView1<'a, T>>);

/// The network of [`Gcn`](crate::gcn::Gcn) before its LogSoftmax: a row for each node, a column for each class. Row i
/// of `graph` holds the in-neighbours of node i.
///
/// # Panics
///
/// If the graph is not square or not stored by rows, has 2^32 - 2^16 nodes and nonzeros or more, or is too large for
/// the memory; if the shapes do not fit each other.
#[must_use]
pub fn gcn_logits<T: Scalar>(
    graph: CsMatViewI<'_, T, u32, u32>,
    x: ArrayView2<'_, T>,
    layers: &[LayerView<'_, T>],
) -> Array2<f64> {
    let a_hat = normalized(graph);
    let mut x = x.mapv(Scalar::to_f64);
    for (index, (weights, bias)) in layers.iter().enumerate() {
        let weights = weights.mapv(Scalar::to_f64);
        x = gemm(x.view(), weights.view(), DenseEpilogue::default());
        x = spmm(a_hat.view(), x.view());
        if let Some(bias) = bias {
            x += &bias.mapv(Scalar::to_f64);
        }
        if index + 1 < layers.len() {
            // `max` would turn NaN into 0.
            x.mapv_inplace(|x| if x < 0.0 { 0.0 } else { x });
        }
    }
    x
}

/// `D^-1/2 (A + I) D^-1/2`, where I has entries for the nodes without an edge to themselves, and D is the sum of each
/// row.
fn normalized<T: Scalar>(graph: CsMatViewI<'_, T, u32, u32>) -> CsMatI<f64, u32, u32> {
    check_stored_by_rows(&graph);
    assert_eq!(graph.rows(), graph.cols(), "a graph is a square matrix");
    let nodes = graph.rows() as u32;
    let mut looped = Vec::with_capacity(graph.nnz() + graph.rows());
    let mut degrees = vec![0.0; graph.rows()];
    for (row, nonzeros) in (0..nodes).zip(graph.outer_iterator()) {
        let entries = nonzeros
            .iter()
            .map(|(column, value)| (column as u32, value.to_f64()));
        let own = nonzeros.get(row as usize).is_none().then_some((row, 1.0));
        for (column, value) in entries.chain(own) {
            looped.push(Triplet { row, column, value });
            degrees[row as usize] += value;
        }
    }
    let scale = |node: u32| match degrees[node as usize] {
        degree if degree > 0.0 => 1.0 / degree.sqrt(),
        _ => 0.0,
    };
    for entry in &mut looped {
        entry.value *= scale(entry.row) * scale(entry.column);
    }
    triplets::by_rows(nodes, nodes, &looped).expect("the graph with its loops fits into memory")
}
