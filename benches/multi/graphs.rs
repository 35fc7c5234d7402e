//! The graphs of SpMM and SpGEMM.

use super::options::Options;
use crate::harness::named;
use crate::spmm::cases::{EMULATED_GRAPH, GRAPHS, Graph, Kind};
use anyhow::Context;
use warprow::CsrMatrix;

/// What a GPU multiplies if nothing is asked for.
const DEFAULT_GRAPH: &str = "products";

/// A graph of another size has this name.
const OWN_GRAPH: &str = "own";

/// The sizes and kinds that the options ask for.
pub fn cases(options: &Options, on_emulator: bool) -> anyhow::Result<Vec<(Graph, Kind)>> {
    let default = if on_emulator {
        EMULATED_GRAPH
    } else {
        DEFAULT_GRAPH
    };
    let graphs = match (options.rows, options.graphs.is_empty()) {
        (Some(rows), _) => vec![own(options, rows)?],
        (None, true) => Graph::named(default).into_iter().collect(),
        (None, false) => named::chosen(GRAPHS, |graph| graph.name, &options.graphs),
    };
    let kinds = options.kinds();
    let of_graph = |graph: Graph| kinds.iter().map(move |&kind| (graph, kind));
    Ok(graphs.into_iter().flat_map(of_graph).collect())
}

fn own(options: &Options, rows: u32) -> anyhow::Result<Graph> {
    let of_rows = || rows.checked_mul(options.row_length);
    let nonzeros = options.nonzeros.or_else(of_rows).with_context(|| {
        format!(
            "{rows} rows of {} nonzeros: there may be {} nonzeros at most",
            options.row_length,
            u32::MAX
        )
    })?;
    Ok(Graph {
        name: OWN_GRAPH,
        rows,
        nonzeros,
    })
}

/// The graph, of which the terminal says how long it took to make.
pub fn generate(graph: Graph, kind: Kind, seed: u64) -> anyhow::Result<CsrMatrix<f32>> {
    let start = std::time::Instant::now();
    let a = kind.generate(graph, seed)?;
    println!(
        "{} ({}): {} rows, {} nonzeros, made in {:.1} s",
        graph.name,
        kind.name(),
        a.rows(),
        a.nnz(),
        start.elapsed().as_secs_f64()
    );
    Ok(a)
}
