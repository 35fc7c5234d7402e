//! Networks of one to three layers, run three times: launched, recorded, and replayed.

use super::{Failure, Random, compare, size, sparse, to_dense, unexpected, whole_dense, words};
use ndarray::{Array2, ArrayView1, ArrayView2, s};
use warprow::device::Device;
use warprow::reference::log_softmax;
use warprow::{CsrMatrix, Gcn, GcnLayer, GcnOptions};

/// A random network.
pub fn run(
    random: &mut Random,
    device: &Device,
    describe: &dyn Fn(String),
) -> Result<u64, Failure> {
    let nodes = size(random, 40);
    let pattern: CsrMatrix<f32> = sparse(random, nodes, nodes);
    let graph: CsrMatrix<f32> = pattern.map(|weight| weight.abs() / 4.0 + 0.5);
    let widths: Vec<usize> = (0..random.within(2..=4))
        .map(|_| 1 + size(random, 20))
        .collect();
    let layers: Vec<GcnLayer<f32>> = (widths.windows(2))
        .map(|pair| GcnLayer {
            weights: whole_dense(random, pair[0], pair[1]),
            bias: random.maybe(|random| whole_dense(random, 1, pair[1]).row(0).to_owned()),
        })
        .collect();
    let x: Array2<f32> = whole_dense(random, nodes, widths[0]);
    describe(words("a network", &[device, &graph, &layers, &x]));
    let mut gcn =
        Gcn::plan(device, graph.view(), &layers, GcnOptions::default()).map_err(unexpected)?;
    let (wanted, bounds) = naive(&graph, &layers, &x);
    for _ in 0..3 {
        let y = gcn.classify(x.view()).map_err(unexpected)?;
        for (node, &bound) in bounds.iter().enumerate() {
            let of_node = |y: ArrayView2<'_, _>| y.slice(s![node..=node, ..]).to_owned();
            let wanted = wanted.slice(s![node..=node, ..]).to_owned();
            compare(&of_node(y.view()), &wanted, bound)
                .map_err(|failure| format!("{failure}, node {node}"))?;
        }
    }
    Ok(3)
}

/// The logarithms of the probabilities, and for each node a bound of their errors: a rounding of f32 for each term of
/// each sum, relative to the sum of the terms' magnitudes. A logit may be large where its logarithm is small.
fn naive(
    graph: &CsrMatrix<f32>,
    layers: &[GcnLayer<f32>],
    x: &Array2<f32>,
) -> (Array2<f64>, Vec<f64>) {
    let mut a = to_dense(graph);
    for node in 0..graph.rows() {
        a[(node, node)].get_or_insert(1.0);
    }
    let a = a.mapv(|weight| weight.unwrap_or(0.0));
    let scale: Vec<f64> = a
        .rows()
        .into_iter()
        .map(|row| row.sum().sqrt().recip())
        .collect();
    let a = Array2::from_shape_fn(a.dim(), |(i, j)| scale[i] * a[(i, j)] * scale[j]);
    let mut x = x.mapv(f64::from);
    let mut magnitude = x.mapv(f64::abs);
    let mut terms = 0;
    for (index, layer) in layers.iter().enumerate() {
        let weights = layer.weights.mapv(f64::from);
        x = a.dot(&x.dot(&weights));
        magnitude = a.dot(&magnitude.dot(&weights.mapv(f64::abs)));
        if let Some(bias) = &layer.bias {
            let bias = bias.mapv(f64::from);
            x += &bias;
            magnitude += &bias.mapv(f64::abs);
        }
        if index + 1 < layers.len() {
            x.mapv_inplace(|x| x.max(0.0));
        }
        // The products with weights, those with edges, the factors of an edge, and the bias.
        terms += weights.nrows() + graph.rows() + 4;
    }
    let rounding = f64::from(f32::EPSILON) / 2.0 * terms as f64;
    let greatest =
        |row: ArrayView1<'_, f64>| row.iter().fold(1.0, |so_far, &x| f64::max(so_far, x));
    let bounds = magnitude
        .rows()
        .into_iter()
        .map(|row| 2.0 * rounding * greatest(row));
    (log_softmax(x.view()), bounds.collect())
}
