//! The matrices, the same for every rung of a family.

use crate::ladder::rungs::Family;
use crate::spgemm::cases::Case as SpgemmCase;
use crate::spmm::cases::{Graph, Kind};
use warprow::CsrMatrix;

/// The graph of the dependencies between Debian's packages, in `data/`.
const PACKAGES: &str = "packages";

/// The graph whose size the generated ones of SpMM have.
const SPMM: &str = "arxiv";

/// The size of the generated graphs of SpGEMM. Its slowest rung computes a long row with one warp, and would take
/// minutes on a graph of SpMM's size.
const SPGEMM: Graph = Graph {
    name: "20k",
    rows: 20_000,
    nonzeros: 160_000,
};

/// A graph for the emulator, where the largest tables of SpGEMM cost the most.
const EMULATED: Graph = Graph {
    name: "tiny",
    rows: 67,
    nonzeros: 401,
};

/// Columns of X in SpMM.
pub const FEATURES: u32 = 32;

/// X and W: rows of X, columns of X, columns of W.
#[derive(Clone, Copy, Debug)]
pub struct DenseShape {
    /// Rows of X and Y.
    pub rows: u32,
    /// Columns of X, rows of W.
    pub depth: usize,
    /// Columns of W and Y.
    pub cols: usize,
}

impl DenseShape {
    /// The product of the contest report that the ladder of XW follows; fewer rows on the emulator.
    pub const fn on(emulator: bool) -> Self {
        Self {
            rows: if emulator { 203 } else { 281_903 },
            depth: 128,
            cols: 16,
        }
    }
}

/// A square sparse matrix and its name.
#[derive(Clone, Debug)]
pub struct NamedGraph {
    /// Its name in the results.
    pub name: String,
    /// The matrix.
    pub a: CsrMatrix<f32>,
}

/// The graphs of a family: a real one and generated ones on a GPU, and a tiny one on the emulator. XW has none.
///
/// # Errors
///
/// A graph that cannot be generated or read.
pub fn graphs(family: Family, on_emulator: bool, seed: u64) -> anyhow::Result<Vec<NamedGraph>> {
    let generated = |graph: Graph, kind: Kind| {
        anyhow::Ok(NamedGraph {
            name: format!("{}_{}", graph.name, kind.name()),
            a: kind.generate(graph, seed)?,
        })
    };
    let size = match family {
        Family::Spmm => Graph::named(SPMM).expect("it is in the table"),
        Family::Spgemm => SPGEMM,
        Family::Gemm => return Ok(Vec::new()),
    };
    if on_emulator {
        return Ok(vec![generated(EMULATED, Kind::Rmat57)?]);
    }
    let packages = SpgemmCase::named(PACKAGES).expect("it is in the table");
    Ok(vec![
        NamedGraph {
            name: PACKAGES.to_owned(),
            a: packages.generate(seed)?,
        },
        generated(size, Kind::Rmat57)?,
        generated(size, Kind::Rmat35)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_has_a_real_graph_and_a_generated_one_of_each_skew() {
        let sizes = |family| -> Vec<(String, usize, usize)> {
            let graphs = graphs(family, false, 1).unwrap();
            let size = |graph: NamedGraph| (graph.name, graph.a.rows(), graph.a.nnz());
            graphs.into_iter().map(size).collect()
        };
        let named = |name: &str, rows, nnz| (name.to_owned(), rows, nnz);
        let packages = named("packages", 63_436, 279_192);
        assert_eq!(
            sizes(Family::Spmm),
            [
                packages.clone(),
                named("arxiv_rmat57", 169_343, 1_166_243),
                named("arxiv_rmat35", 169_343, 1_166_243),
            ]
        );
        assert_eq!(
            sizes(Family::Spgemm),
            [
                packages,
                named("20k_rmat57", 20_000, 160_000),
                named("20k_rmat35", 20_000, 160_000),
            ]
        );
    }
}
