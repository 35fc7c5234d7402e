//! The networks: sizes of their graphs, and widths of their layers.

use warprow::{CsrMatrix, Error, GcnLayer, generate};

/// A network with two layers: the size of its graph, and the features of a node, hidden features and classes.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// The name by which it is selected.
    pub name: &'static str,
    /// Rows and columns of the adjacency matrix.
    pub nodes: u32,
    /// Its nonzeros.
    pub edges: u32,
    /// Features, hidden features, classes.
    pub widths: [usize; 3],
}

/// A small one for the emulator, the report's, and two of the sizes of the Open Graph Benchmark.
pub const NETWORKS: [Network; 4] = [
    network("small", 2_003, 20_011, [33, 16, 7]),
    network("stanford", 281_903, 2_312_497, [128, 16, 16]),
    network("arxiv", 169_343, 1_166_243, [128, 16, 40]),
    network("products", 2_449_029, 123_718_280, [100, 16, 47]),
];

const fn network(name: &'static str, nodes: u32, edges: u32, widths: [usize; 3]) -> Network {
    Network {
        name,
        nodes,
        edges,
        widths,
    }
}

impl Network {
    /// A random graph of that size, its edges of weight 1.
    ///
    /// # Errors
    ///
    /// The generator's.
    pub fn graph(&self, seed: u64) -> Result<CsrMatrix<f32>, Error> {
        let probabilities = [0.57, 0.19, 0.19, 0.05];
        let graph: CsrMatrix<f32> = generate::rmat(self.nodes, self.edges, probabilities, seed)?;
        Ok(graph.map(|_| 1.0))
    }

    /// Random weights and biases.
    ///
    /// # Errors
    ///
    /// The generator's.
    pub fn layers(&self, seed: u64) -> Result<[GcnLayer<f32>; 2], Error> {
        let layer = |inputs, outputs, seed| -> Result<_, Error> {
            Ok(GcnLayer {
                weights: generate::dense::<f32>(inputs, outputs, seed)?,
                bias: Some(generate::dense(1, outputs, seed + 1)?.row(0).to_owned()),
            })
        };
        let [features, hidden, classes] = self.widths;
        Ok([
            layer(features, hidden, seed + 1)?,
            layer(hidden, classes, seed + 3)?,
        ])
    }
}
