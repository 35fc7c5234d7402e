//! GCN inference over several devices against one.

use crate::device_sets;
use warprow::multi::{Distribution, DivisionOptions, Gcn, OperandRows};
use warprow::{CsrMatrix, GcnLayer, GcnOptions, RowOrder, generate};

fn weighted(nodes: u32, edges: u32) -> CsrMatrix<f64> {
    let graph = generate::rmat::<f64>(nodes, edges, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
    graph.map(|value| 1.0 + value / 2.0)
}

/// One row is longer than all others together.
fn node_that_hears_all(nodes: u32) -> CsrMatrix<f64> {
    let columns = (0..nodes).chain([5, 0]).collect();
    let row = |row| match row {
        0 => 0,
        1 => nodes,
        2.. => (nodes + row - 1).min(nodes + 2),
    };
    let size = nodes as usize;
    let values = vec![0.5; size + 2];
    CsrMatrix::new(
        (size, size),
        (0..=nodes).map(row).collect(),
        columns,
        values,
    )
}

/// Each node's only neighbour is half of the graph away.
fn neighbours_of_another_part(nodes: u32) -> CsrMatrix<f64> {
    let columns = (0..nodes).map(|row| (row + nodes / 2) % nodes).collect();
    let size = nodes as usize;
    CsrMatrix::new(
        (size, size),
        (0..=nodes).collect(),
        columns,
        vec![2.0; size],
    )
}

fn layer(inputs: usize, outputs: usize, seed: u64) -> GcnLayer<f64> {
    let bias = generate::dense::<f64>(1, outputs, seed + 1).unwrap();
    GcnLayer {
        weights: generate::dense(inputs, outputs, seed).unwrap(),
        bias: (seed % 2 == 1).then(|| bias.row(0).to_owned()),
    }
}

#[test]
fn a_network_over_several_devices_gives_what_one_gives() {
    // Layers that become narrower multiply by W first, others by A_hat.
    let small = || vec![layer(5, 8, 1), layer(8, 2, 2)];
    let networks = [
        (weighted(90, 500), vec![layer(12, 16, 1), layer(16, 5, 3)]),
        (weighted(90, 500), vec![layer(20, 6, 2)]),
        (
            weighted(3, 4),
            vec![layer(4, 9, 1), layer(9, 9, 2), layer(9, 3, 5)],
        ),
        (weighted(40, 0), small()),
        (node_that_hears_all(300), small()),
        (neighbours_of_another_part(40), small()),
    ];
    for (graph, layers) in networks {
        let x = generate::dense::<f64>(graph.rows(), layers[0].weights.nrows(), 9).unwrap();
        for devices in device_sets() {
            let one = warprow::Gcn::plan(
                devices.first(),
                graph.view(),
                &layers,
                GcnOptions::default(),
            );
            let wanted = one.unwrap().classify(x.view()).unwrap();
            let orders = [None, Some(RowOrder::FirstColumn)];
            let blocks = orders.map(|order| DivisionOptions::new().order(order));
            let cyclic = DivisionOptions::new().distribution(Distribution::Cyclic);
            let replicated = cyclic.operand(OperandRows::Replicated);
            for division in [blocks[0], blocks[1], cyclic, replicated] {
                let options = GcnOptions::default();
                let gcn = Gcn::plan(&devices, graph.view(), &layers, options, division).unwrap();
                for _ in 0..2 {
                    let y = gcn.classify(x.view()).unwrap();
                    assert_eq!(y.dim(), wanted.dim());
                    for (found, wanted) in y.iter().zip(&wanted) {
                        let bound = 1e-13 * wanted.abs().max(1.0);
                        assert!((found - wanted).abs() <= bound, "{found}, {wanted}: {gcn}");
                    }
                }
            }
        }
    }
}

#[test]
fn features_of_another_shape_are_refused() {
    let graph = weighted(9, 20);
    for devices in device_sets() {
        let division = DivisionOptions::default();
        let layers = [layer(4, 2, 1)];
        let gcn = Gcn::plan(
            &devices,
            graph.view(),
            &layers,
            GcnOptions::default(),
            division,
        );
        let gcn = gcn.unwrap();
        for shape in [(8, 4), (9, 3)] {
            let x = generate::dense::<f64>(shape.0, shape.1, 9).unwrap();
            assert!(gcn.classify(x.view()).is_err());
        }
        // Features are no result, and a result is no features.
        let x = generate::dense::<f64>(9, 4, 9).unwrap();
        let x = gcn.upload(x.view()).unwrap();
        let message = gcn.download(&x).unwrap_err().to_string();
        assert!(message.contains("y is 9 x 4"), "{message}");
        let y = gcn.run(x).unwrap();
        let message = gcn.run(y).unwrap_err().to_string();
        assert!(message.contains("x is 9 x 2"), "{message}");
    }
}

#[test]
fn features_of_a_plan_with_another_order_are_refused_and_those_of_an_equal_plan_are_not() {
    // Each node of a ring has two neighbours, so that parts have as many nodes in each order.
    let mut neighbours = Vec::from_iter((0..40).map(|node| [(node + 39) % 40, (node + 1) % 40]));
    neighbours.iter_mut().for_each(|pair| pair.sort_unstable());
    let row_ptr = (0..=40).map(|node| 2 * node).collect();
    let graph = CsrMatrix::new((40, 40), row_ptr, neighbours.concat(), vec![1.0_f64; 80]);
    let layers = [layer(4, 2, 1)];
    let given = DivisionOptions::new().order(RowOrder::Given);
    let cyclic = DivisionOptions::new().distribution(Distribution::Cyclic);
    let x = generate::dense::<f64>(40, 4, 9).unwrap();
    for devices in device_sets() {
        let plan = |division| {
            let options = GcnOptions::default();
            Gcn::plan(&devices, graph.view(), &layers, options, division).unwrap()
        };
        let [one, equal, other] = [given, given, cyclic].map(plan);
        let y = equal.run(one.upload(x.view()).unwrap()).unwrap();
        assert_eq!(one.download(&y).unwrap(), one.classify(x.view()).unwrap());
        if devices.count().get() > 1 {
            let error = other.run(one.upload(x.view()).unwrap()).unwrap_err();
            assert!(error.to_string().contains("other parts: x"), "{error}");
            let error = other.download(&y).unwrap_err();
            assert!(error.to_string().contains("other parts: y"), "{error}");
        }
    }
}
