//! The verification of a network's result, all nodes against f64; and of one of small whole numbers, exactly.

use ndarray::{Array1, Array2, ArrayView1};
use warprow::reference::{verify_log_softmax, whole_graph, whole_selection};
use warprow::{CsrMatrix, Device, Error, Gcn, GcnLayer, GcnOptions};

/// The greatest error that is taken for rounding.
const TOLERANCE: f64 = 1e-5;

/// What was found in a result.
#[derive(Clone, Copy, Debug)]
pub struct Verification {
    /// Whether all nodes are right.
    pub ok: bool,
    /// The greatest error of the nodes, each relative to one and the magnitudes of the terms that its logits are the
    /// sums of: where these cancel, an error relative to the logits would say nothing.
    pub max_rel_err: f64,
}

/// The result of a network with two layers, in f64.
#[derive(Debug)]
pub struct Reference {
    nodes: Vec<NodeResult>,
}

#[derive(Debug)]
struct NodeResult {
    /// What LogSoftmax is applied to.
    logits: Array1<f64>,
    /// The greatest sum of the magnitudes of a logit's terms.
    magnitude: f64,
}

/// Numbers for a node, and the sums of the magnitudes of the terms that they are made of.
#[derive(Clone, Debug)]
struct Sums {
    values: Array1<f64>,
    magnitudes: Array1<f64>,
}

impl Reference {
    /// That of a network.
    pub fn of(graph: &CsrMatrix<f32>, x: &Array2<f32>, layers: &[GcnLayer<f32>; 2]) -> Self {
        let adjacency = Adjacency::of(graph);
        let of_inputs = Layer::of(&layers[0]);
        let inputs: Vec<Sums> = parallel::map(graph.rows(), |node| {
            let row = x.row(node).mapv(f64::from);
            of_inputs.multiply(&row, &row.mapv(f64::abs))
        });
        let of_hidden = Layer::of(&layers[1]);
        let hidden: Vec<Sums> = parallel::map(graph.rows(), |node| {
            let sums = of_inputs.aggregate(&adjacency, node, &inputs);
            // A NaN stays.
            let activated = sums.values.mapv(|h| if h < 0.0 { 0.0 } else { h });
            of_hidden.multiply(&activated, &sums.magnitudes)
        });
        let nodes = parallel::map(graph.rows(), |node| {
            let logits = of_hidden.aggregate(&adjacency, node, &hidden);
            NodeResult {
                logits: logits.values,
                magnitude: logits.magnitudes.fold(0.0, |most, &other| most.max(other)),
            }
        });
        Self { nodes }
    }

    /// Compares the result of all nodes, row by row.
    pub fn verify(&self, y: &[f32], classes: usize) -> Verification {
        let error_of = |number: usize| {
            let (node, found) = (&self.nodes[number], &y[number * classes..][..classes]);
            let wanted = log_softmax(node.logits.view());
            let errors = found.iter().zip(wanted).map(|(&found, wanted)| {
                let found = f64::from(found);
                if found == wanted || (found.is_nan() && wanted.is_nan()) {
                    return 0.0;
                }
                let error = (found - wanted).abs() / (1.0 + node.magnitude);
                if error.is_nan() { f64::INFINITY } else { error }
            });
            errors.fold(0.0, f64::max)
        };
        let nodes = self.nodes.len();
        let max_rel_err = parallel::reduce(nodes, || 0.0, error_of, f64::max);
        Verification {
            ok: max_rel_err <= TOLERANCE,
            max_rel_err,
        }
    }
}

/// Whether a network of the same edges and widths is right, all of whose sums are exact, as its numbers are small
/// multiples of 1/16: to the error of LogSoftmax alone.
///
/// # Errors
///
/// The device's.
pub fn is_exact(
    device: &Device,
    graph: &CsrMatrix<f32>,
    widths: [usize; 3],
    seed: u64,
) -> Result<bool, Error> {
    let graph = whole_graph(graph.view(), seed);
    let [features, hidden, classes] = widths;
    let layer = |inputs, outputs, seed| GcnLayer {
        weights: whole_selection(inputs, outputs, seed),
        bias: Some(whole_selection(1, outputs, seed + 1).row(0).to_owned()),
    };
    let layers = [
        layer(features, hidden, seed),
        layer(hidden, classes, seed + 2),
    ];
    // One row for each node, so that all elements are 1 or -1.
    let x: Array2<f32> = whole_selection(1, graph.rows() * features, seed + 4);
    let x = x.into_shape_with_order((graph.rows(), features));
    let x = x.expect("there are as many elements");
    let y = Gcn::plan(device, graph.view(), &layers, GcnOptions::default())?.classify(x.view())?;
    let reference = Reference::of(&graph, &x, &layers);
    let logits = Array2::from_shape_fn(y.dim(), |(node, class)| {
        reference.nodes[node].logits[class] as f32
    });
    let found = verify_log_softmax(logits.view(), y.view());
    if !found.ok() {
        eprintln!("small whole numbers: {found}");
    }
    Ok(found.ok())
}

/// `D^-1/2 (A + I) D^-1/2`, row by row, in f64. The weights of the graph's edges are positive.
struct Adjacency<'a> {
    graph: &'a CsrMatrix<f32>,
    /// The diagonal of `D^-1/2`.
    scale: Vec<f64>,
}

impl<'a> Adjacency<'a> {
    fn of(graph: &'a CsrMatrix<f32>) -> Self {
        let degree = |node| {
            row_with_loop(graph, node)
                .map(|(_, weight)| weight)
                .sum::<f64>()
        };
        Self {
            graph,
            scale: parallel::map(graph.rows(), |node| degree(node).sqrt().recip()),
        }
    }

    /// The nodes that a node hears, itself among them, and how much.
    fn row(&self, node: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let scaled = move |(other, weight)| (other, self.scale[node] * weight * self.scale[other]);
        row_with_loop(self.graph, node).map(scaled)
    }
}

/// The edges of a node, with a loop of weight 1 if it has none.
fn row_with_loop(graph: &CsrMatrix<f32>, node: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
    let edges = graph.indptr().outer_inds_sz(node);
    let columns = &graph.indices()[edges.clone()];
    let has_loop = columns.contains(&(node as u32));
    let weights = graph.data()[edges].iter().map(|&weight| f64::from(weight));
    let columns = columns.iter().map(|&column| column as usize);
    columns
        .zip(weights)
        .chain((!has_loop).then_some((node, 1.0)))
}

/// A layer's weights and bias in f64, and their magnitudes.
struct Layer {
    weights: Array2<f64>,
    magnitudes: Array2<f64>,
    bias: Array1<f64>,
}

impl Layer {
    fn of(layer: &GcnLayer<f32>) -> Self {
        let weights = layer.weights.mapv(f64::from);
        let bias = match &layer.bias {
            Some(bias) => bias.mapv(f64::from),
            None => Array1::zeros(weights.ncols()),
        };
        Self {
            magnitudes: weights.mapv(f64::abs),
            weights,
            bias,
        }
    }

    /// A node's features times the weights.
    fn multiply(&self, features: &Array1<f64>, magnitudes: &Array1<f64>) -> Sums {
        Sums {
            values: features.dot(&self.weights),
            magnitudes: magnitudes.dot(&self.magnitudes),
        }
    }

    /// The sum of what a node hears, and the bias.
    fn aggregate(&self, adjacency: &Adjacency<'_>, node: usize, products: &[Sums]) -> Sums {
        let mut sums = Sums {
            values: self.bias.clone(),
            magnitudes: self.bias.mapv(f64::abs),
        };
        for (other, weight) in adjacency.row(node) {
            let heard = &products[other];
            sums.values.scaled_add(weight, &heard.values);
            sums.magnitudes.scaled_add(weight, &heard.magnitudes);
        }
        sums
    }
}

fn log_softmax(logits: ArrayView1<'_, f64>) -> Array1<f64> {
    let max = logits.fold(f64::NEG_INFINITY, |max, &logit| max.max(logit));
    let sum: f64 = logits.iter().map(|logit| (logit - max).exp()).sum();
    logits.mapv(|logit| logit - max - sum.ln())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;
    use sprs::CsMatI;

    /// Node 0 hears node 1, which has a loop; one feature, one hidden feature, two classes.
    fn network() -> (CsrMatrix<f32>, Array2<f32>, [GcnLayer<f32>; 2]) {
        let graph = CsMatI::new((2, 2), vec![0, 1, 2], vec![1_u32, 1], vec![1.0, 1.0]);
        let layers = [
            GcnLayer {
                weights: array![[2.0]],
                bias: Some(array![-1.0]),
            },
            GcnLayer {
                weights: array![[1.0, -1.0]],
                bias: None,
            },
        ];
        (graph, array![[3.0], [1.0]], layers)
    }

    #[test]
    fn the_reference_is_the_network_computed_by_hand() {
        let (graph, x, layers) = network();
        let reference = Reference::of(&graph, &x, &layers);
        // Degrees 2 and 1. Hidden: 1/2 * 6 + 2 / sqrt(2) - 1 and 2 - 1; logits h and -h.
        let root = 2.0_f64.sqrt();
        let hidden = (2.0 + root) / 2.0 + 1.0 / root;
        for (node, logit) in [(0, hidden), (1, 1.0)] {
            let found = &reference.nodes[node].logits;
            assert!((found[0] - logit).abs() < 1e-14 && (found[1] + logit).abs() < 1e-14);
        }
        let y = log_softmax(reference.nodes[1].logits.view());
        assert!((y[0] + (1.0 + (-2.0_f64).exp()).ln()).abs() < 1e-14);
    }

    #[test]
    fn a_result_passes_as_it_is_and_not_with_one_wrong_or_missing_number() {
        let (graph, x, layers) = network();
        let reference = Reference::of(&graph, &x, &layers);
        let rows = reference.nodes.iter();
        let mut y: Vec<f32> = rows
            .flat_map(|node| log_softmax(node.logits.view()))
            .map(|y| y as f32)
            .collect();
        let found = reference.verify(&y, 2);
        assert!(found.ok && found.max_rel_err < 1e-7, "{found:?}");
        for wrong in [y[3] - 0.01, f32::NAN] {
            y[3] = wrong;
            let found = reference.verify(&y, 2);
            assert!(!found.ok && found.max_rel_err > 1e-4, "{found:?}");
        }
    }

    #[test]
    fn a_nan_passes_where_it_belongs() {
        let (graph, mut x, layers) = network();
        x[(0, 0)] = f32::NAN;
        let reference = Reference::of(&graph, &x, &layers);
        let right = log_softmax(reference.nodes[1].logits.view()).mapv(|y| y as f32);
        let y = [f32::NAN, f32::NAN, right[0], right[1]];
        assert!(reference.verify(&y, 2).ok);
        assert!(!reference.verify(&[0.0, f32::NAN, right[0], right[1]], 2).ok);
    }

    #[test]
    fn a_network_of_whole_numbers_is_exact() {
        let device = Device::emulator(Default::default());
        let (graph, ..) = network();
        assert!(is_exact(&device, &graph, [3, 4, 2], 1).unwrap());
    }
}
