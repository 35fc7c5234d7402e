//! Networks on every device: the normalised matrix, layers in either order, a trained network, and what is refused.

mod adjacency;
mod files;
mod layers;
mod refused;
mod runs;

use ndarray::{Array2, ArrayView2};
use support::devices;
use warprow::gcn::GcnElement;
use warprow::{CsrMatrix, Gcn, GcnLayer, GcnOptions, Scalar, generate, reference};

/// `D^-1/2 (A + I) D^-1/2` with dense matrices in f64.
fn normalized<T: Scalar>(a: &CsrMatrix<T>) -> Array2<f64> {
    let n = a.rows();
    let mut dense = Array2::<f64>::zeros((n, n));
    for (value, (row, column)) in a.iter() {
        dense[[row as usize, column as usize]] = value.to_f64();
    }
    for i in 0..n {
        if a.get(i, i).is_none() {
            dense[[i, i]] = 1.0;
        }
    }
    let scale: Vec<f64> = dense
        .rows()
        .into_iter()
        .map(|row| {
            if row.sum() > 0.0 {
                1.0 / row.sum().sqrt()
            } else {
                0.0
            }
        })
        .collect();
    Array2::from_shape_fn((n, n), |(i, j)| scale[i] * dense[[i, j]] * scale[j])
}

/// The network in f64, step by step as it is defined.
fn network<T: Scalar>(
    a: &CsrMatrix<T>,
    x: ArrayView2<'_, T>,
    layers: &[GcnLayer<T>],
) -> Array2<f64> {
    reference::log_softmax(logits(a, x, layers).view())
}

/// The network in f64, up to LogSoftmax.
fn logits<T: Scalar>(
    a: &CsrMatrix<T>,
    x: ArrayView2<'_, T>,
    layers: &[GcnLayer<T>],
) -> Array2<f64> {
    let a = normalized(a);
    let mut x = x.mapv(T::to_f64);
    for (index, layer) in layers.iter().enumerate() {
        x = a.dot(&x.dot(&layer.weights.mapv(T::to_f64)));
        if let Some(bias) = &layer.bias {
            x += &bias.mapv(T::to_f64);
        }
        if index + 1 < layers.len() {
            x.mapv_inplace(|x| if x < 0.0 { 0.0 } else { x });
        }
    }
    x
}

fn layer<T: Scalar>(inputs: usize, outputs: usize, bias: bool, seed: u64) -> GcnLayer<T> {
    let row = generate::dense::<T>(1, outputs, seed + 1)
        .unwrap()
        .row(0)
        .to_owned();
    GcnLayer {
        weights: generate::dense(inputs, outputs, seed).unwrap(),
        bias: bias.then_some(row),
    }
}

fn assert_close<T: Scalar>(found: &Array2<T>, wanted: &Array2<f64>, tolerance: f64, what: &str) {
    assert_eq!(found.dim(), wanted.dim(), "{what}");
    for (place, &wanted) in wanted.indexed_iter() {
        let error = (found[place].to_f64() - wanted).abs();
        assert!(
            error <= tolerance * wanted.abs().max(1.0),
            "{what} at {place:?}: {:?}, wanted {wanted}",
            found[place]
        );
    }
}

/// Weights of edges from 0.5 to 1.5.
fn weighted<T: GcnElement>(nodes: u32, edges: u32) -> CsrMatrix<T> {
    let graph = generate::rmat::<T>(nodes, edges, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
    graph.map(|value| T::from_f64(1.0 + value.to_f64() / 2.0))
}

fn every_device_agrees<T: GcnElement>(
    graph: &CsrMatrix<T>,
    x: ArrayView2<'_, T>,
    layers: &[GcnLayer<T>],
    tolerance: f64,
) {
    let wanted = network(graph, x, layers);
    for device in devices() {
        let mut gcn = Gcn::plan(&device, graph.view(), layers, GcnOptions::default()).unwrap();
        let what = gcn.to_string();
        let y = gcn.classify(x).unwrap();
        assert_close(&y, &wanted, tolerance, &what);
        assert_eq!(gcn.classify(x).unwrap(), y, "a second run: {what}");
    }
}
