//! The verification of a network's result: a sample of nodes against f64, and of all the sum of their probabilities.

use ndarray::{Array1, Array2, ArrayView1};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use warprow::{CsrMatrix, GcnLayer};

/// Nodes that are drawn.
const NODES: usize = 1000;

/// The greatest error that is taken for rounding.
const TOLERANCE: f64 = 1e-5;

/// What was found in a result.
#[derive(Clone, Copy, Debug)]
pub struct Verification {
    /// Whether the probabilities of each node sum to one, and those of the sample are right.
    pub ok: bool,
    /// The greatest error of the sample's nodes, each relative to one and the magnitudes of the terms that its logits
    /// are the sums of: where these cancel, an error relative to the logits would say nothing.
    pub max_rel_err: f64,
}

/// The result of a network with two layers for some nodes, in f64.
#[derive(Debug)]
pub struct Sample {
    nodes: Vec<NodeResult>,
}

#[derive(Debug)]
struct NodeResult {
    node: usize,
    /// The logarithms of the classes' probabilities.
    wanted: Array1<f64>,
    /// The greatest sum of the magnitudes of a logit's terms.
    magnitude: f64,
}

/// Numbers for a node, and the sums of the magnitudes of the terms that they are made of.
#[derive(Clone, Debug)]
struct Sums {
    values: Array1<f64>,
    magnitudes: Array1<f64>,
}

impl Sample {
    /// Some nodes, and that with the longest row; computed from the nodes within two edges of them alone.
    pub fn draw(
        graph: &CsrMatrix<f32>,
        x: &Array2<f32>,
        layers: &[GcnLayer<f32>; 2],
        seed: u64,
    ) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut nodes: Vec<usize> = (0..NODES)
            .map(|_| random.random_range(0..graph.rows()))
            .collect();
        let row_ptr = graph.indptr();
        nodes.extend((0..graph.rows()).max_by_key(|&node| row_ptr.outer_inds_sz(node).len()));
        let adjacency = Adjacency::of(graph);
        let near = neighbourhood(&adjacency, &nodes);
        let far = neighbourhood(&adjacency, &near);
        let of_inputs = Layer::of(&layers[0]);
        let inputs = table(graph.rows(), &far, |node| {
            let row = x.row(node).mapv(f64::from);
            of_inputs.multiply(&row, &row.mapv(f64::abs))
        });
        let of_hidden = Layer::of(&layers[1]);
        let hidden = table(graph.rows(), &near, |node| {
            let sums = of_inputs.aggregate(&adjacency, node, &inputs);
            // A NaN stays.
            let activated = sums.values.mapv(|h| if h < 0.0 { 0.0 } else { h });
            of_hidden.multiply(&activated, &sums.magnitudes)
        });
        let result = |&node: &usize| {
            let logits = of_hidden.aggregate(&adjacency, node, &hidden);
            NodeResult {
                node,
                wanted: log_softmax(logits.values.view()),
                magnitude: logits.magnitudes.fold(0.0, |most, &other| most.max(other)),
            }
        };
        Self {
            nodes: nodes.par_iter().map(result).collect(),
        }
    }

    /// Compares the result of all nodes, row by row.
    pub fn verify(&self, y: &[f32], classes: usize) -> Verification {
        let sums_to_one = |row: &[f32]| {
            let sum: f64 = row.iter().map(|&y| f64::from(y).exp()).sum();
            (sum - 1.0).abs() < 1e-4
        };
        let mut max_rel_err = 0.0_f64;
        for NodeResult {
            node,
            wanted,
            magnitude,
        } in &self.nodes
        {
            for (&found, &wanted) in y[node * classes..][..classes].iter().zip(wanted) {
                let error = (f64::from(found) - wanted).abs() / (1.0 + magnitude);
                max_rel_err = max_rel_err.max(if error.is_nan() { f64::INFINITY } else { error });
            }
        }
        Verification {
            ok: max_rel_err <= TOLERANCE && y.chunks(classes).all(sums_to_one),
            max_rel_err,
        }
    }
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
        let scale = (0..graph.rows())
            .into_par_iter()
            .map(|node| degree(node).sqrt().recip());
        Self {
            graph,
            scale: scale.collect(),
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

/// The nodes that some nodes hear, each once, in ascending order.
fn neighbourhood(adjacency: &Adjacency<'_>, nodes: &[usize]) -> Vec<usize> {
    let mut heard = vec![false; adjacency.scale.len()];
    for &node in nodes {
        for (other, _) in adjacency.row(node) {
            heard[other] = true;
        }
    }
    (0..heard.len()).filter(|&node| heard[node]).collect()
}

/// What `of` says of each of the nodes, by their numbers.
fn table(nodes: usize, wanted: &[usize], of: impl Fn(usize) -> Sums + Sync) -> Vec<Option<Sums>> {
    let mut table = vec![None; nodes];
    let sums: Vec<_> = wanted.par_iter().map(|&node| of(node)).collect();
    for (&node, sums) in wanted.iter().zip(sums) {
        table[node] = Some(sums);
    }
    table
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
    fn aggregate(&self, adjacency: &Adjacency<'_>, node: usize, products: &[Option<Sums>]) -> Sums {
        let mut sums = Sums {
            values: self.bias.clone(),
            magnitudes: self.bias.mapv(f64::abs),
        };
        for (other, weight) in adjacency.row(node) {
            let heard = products[other]
                .as_ref()
                .expect("neighbours have been computed");
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
    fn the_sample_is_the_network_computed_by_hand() {
        let (graph, x, layers) = network();
        let sample = Sample::draw(&graph, &x, &layers, 1);
        // Degrees 2 and 1. Hidden: 1/2 * 6 + 2 / sqrt(2) - 1 and 2 - 1; logits h and -h.
        let root = 2.0_f64.sqrt();
        let hidden = (2.0 + root) / 2.0 + 1.0 / root;
        for (node, logit) in [(0, hidden), (1, 1.0)] {
            let of_node = sample
                .nodes
                .iter()
                .find(|result| result.node == node)
                .unwrap();
            let wanted = -(1.0 + (-2.0 * logit).exp()).ln();
            assert!((of_node.wanted[0] - wanted).abs() < 1e-14);
            assert!((of_node.wanted[1] - (wanted - 2.0 * logit)).abs() < 1e-14);
        }
    }

    #[test]
    fn a_result_passes_as_it_is_and_not_with_one_wrong_or_missing_number() {
        let (graph, x, layers) = network();
        let sample = Sample::draw(&graph, &x, &layers, 1);
        let mut y = vec![0.0; 4];
        for result in &sample.nodes {
            let row = result.wanted.mapv(|y| y as f32);
            y[2 * result.node..][..2].copy_from_slice(row.as_slice().unwrap());
        }
        let found = sample.verify(&y, 2);
        assert!(found.ok && found.max_rel_err < 1e-7, "{found:?}");
        for wrong in [y[3] - 0.01, f32::NAN] {
            y[3] = wrong;
            let found = sample.verify(&y, 2);
            assert!(!found.ok && found.max_rel_err > 1e-4, "{found:?}");
        }
    }
}
