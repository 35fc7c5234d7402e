//! The normalised matrix of a graph.

use crate::{assert_close, normalized, weighted};
use sprs::CsMatI;
use support::devices;
use warprow::csr::DeviceCsr;
use warprow::gcn::normalized_adjacency;

#[test]
fn the_adjacency_matrix_is_normalised_with_loops_and_isolated_nodes_as_they_are() {
    // Node 0 has a loop of weight 3, 1 hears 0 and 3, 2 hears nobody, 3 hears 1 so little that its row sums to nothing.
    let graph = CsMatI::new(
        (4, 4),
        vec![0_u32, 2, 4, 4, 5],
        vec![0_u32, 1, 0, 3, 1],
        vec![3.0_f64, 1.0, 1.0, 2.0, -1.0],
    );
    let skewed = weighted::<f64>(300, 2500);
    let none = CsMatI::<f64, u32, u32>::zero((70, 70));
    for device in devices() {
        for graph in [&graph, &skewed, &none] {
            let stored = DeviceCsr::upload(&device, graph.view()).unwrap();
            let made = normalized_adjacency(&stored).unwrap();
            let wanted = normalized(graph);
            // It is a matrix of sprs, so that its columns ascend.
            let made = made.download().unwrap();
            let found = made.to_dense();
            assert_close(&found, &wanted, 1e-14, "the matrix");
            let loops = (0..graph.rows()).filter(|&i| graph.get(i, i).is_none());
            assert_eq!(made.nnz(), graph.nnz() + loops.count());
        }
    }
}
