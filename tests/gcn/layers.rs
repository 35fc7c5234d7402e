//! Layers in either order, with bias, ReLU and LogSoftmax.

use crate::{assert_close, every_device_agrees, layer, network, weighted};
use sprs::CsMatI;
use support::devices;
use warprow::device::DeviceProfile;
use warprow::gcn::{GcnElement, OperatorKind};
use warprow::{Device, Gcn, GcnOptions, RowOrder, generate};

#[test]
fn layers_run_in_the_cheaper_order_and_give_the_same_either_way() {
    let device = Device::emulator(Default::default());
    let graph = weighted::<f32>(60, 300);
    let operators = |widths: [usize; 3], options: GcnOptions| {
        let layers = [
            layer(widths[0], widths[1], true, 1),
            layer(widths[1], widths[2], true, 3),
        ];
        let gcn = Gcn::plan(&device, graph.view(), &layers, options).unwrap();
        let operators = gcn.operators();
        let (kinds, columns): (Vec<_>, Vec<_>) = operators
            .map(|operator| (operator.kind, operator.columns))
            .unzip();
        (kinds, columns)
    };
    let kinds = |widths| operators(widths, GcnOptions::default()).0;
    use OperatorKind::{Activate, Aggregate, Classify, Gemm, LogSoftmax, Spmm};
    let mut options = GcnOptions::default();
    options.tuning.task_size = Some(64);
    assert_eq!(
        operators([20, 8, 5], options).0,
        [Gemm, Spmm, Activate, Gemm, Spmm, LogSoftmax]
    );
    // Features of a product with A_hat are padded to a multiple of four.
    assert_eq!(
        operators([20, 8, 5], GcnOptions::default()),
        (
            vec![Gemm, Aggregate, Gemm, Aggregate],
            vec![(20, 8), (8, 8), (8, 8), (8, 5)]
        )
    );
    // From 16 features, the first `aggregate` multiplies by the weights of layer 2, too.
    assert_eq!(
        operators([20, 16, 6], GcnOptions::default()),
        (
            vec![Gemm, Aggregate, Aggregate],
            vec![(20, 16), (16, 8), (8, 6)]
        )
    );
    assert_eq!(
        operators([20, 7, 64], GcnOptions::default()),
        (
            vec![Gemm, Aggregate, Aggregate, Gemm, LogSoftmax],
            vec![(20, 8), (8, 8), (8, 7), (7, 64), (64, 64)]
        )
    );
    // `classify` takes 16 features and up to 64 classes.
    assert_eq!(kinds([20, 16, 64])[3..], [Classify]);
    assert_eq!(kinds([20, 16, 65])[3..], [Gemm, LogSoftmax]);
    assert_eq!(kinds([20, 17, 64])[3..], [Spmm, Gemm, LogSoftmax]);
    assert_eq!(kinds([5, 20, 30]), [Spmm, Gemm, Spmm, Gemm, LogSoftmax]);
    assert_eq!(kinds([5, 20, 3]), [Spmm, Gemm, Gemm, Aggregate]);
    for widths in [
        &[9, 4][..],
        &[4, 9],
        &[12, 16, 5],
        &[3, 8, 8, 2],
        &[7, 7, 7, 7],
        &[1, 1],
        &[20, 7, 61],
        &[5, 20, 3],
        &[17, 16, 3, 15, 16, 40],
    ] {
        for bias in [false, true] {
            let layers: Vec<_> = (widths.windows(2).zip(1..))
                .map(|(pair, seed)| layer::<f32>(pair[0], pair[1], bias, seed))
                .collect();
            let x = generate::dense::<f32>(60, widths[0], 9).unwrap();
            every_device_agrees(&graph, x.view(), &layers, 1e-5);
        }
    }
}

#[test]
fn products_that_do_not_fit_the_l2_cache_keep_their_operators_apart() {
    use OperatorKind::{Activate, Aggregate, Gemm, LogSoftmax, Spmm};
    let graph = weighted::<f32>(60, 300);
    let x = generate::dense::<f32>(60, 20, 9).unwrap();
    let layers = [layer(20, 7, true, 1), layer(7, 5, true, 3)];
    let wanted = network(&graph, x.view(), &layers);
    // Both products read 60 rows of 8 features.
    let bytes = 60 * 8 * 4;
    for (l2_bytes, kinds) in [
        (bytes, &[Gemm, Aggregate, Gemm, Aggregate][..]),
        (
            bytes - 1,
            &[Gemm, Spmm, Activate, Gemm, Spmm, LogSoftmax][..],
        ),
    ] {
        let mut profile = DeviceProfile::h200();
        profile.hardware.l2_bytes = l2_bytes;
        let device = Device::emulator_of(&profile, Default::default());
        let mut gcn = Gcn::plan(&device, graph.view(), &layers, GcnOptions::default()).unwrap();
        let operators = gcn.operators().map(|operator| operator.kind);
        assert_eq!(operators.collect::<Vec<_>>(), kinds, "{l2_bytes} bytes");
        let y = gcn.classify(x.view()).unwrap();
        assert_close(&y, &wanted, 1e-5, &gcn.to_string());
    }
}

/// Two layers whose products with A_hat have every number of lanes, rows split among tasks and blocks, and rows in
/// another order.
fn layers_agree<T: GcnElement>(tolerance: f64) {
    // Node 5 hears everybody, so that its row is cut among blocks, and some nodes have no edges.
    let skewed = weighted::<T>(150, 600);
    let mut hub = sprs::TriMatI::<T, u32>::new((150, 150));
    for (&value, (row, column)) in &skewed {
        if row != 5 {
            hub.add_triplet(row as usize, column as usize, value);
        }
    }
    (0..150).for_each(|column| hub.add_triplet(5, column, T::from_f64(0.25)));
    let hub: sprs::CsMatI<T, u32, usize> = hub.to_csr();
    let indptr = hub.indptr();
    let starts = indptr.raw_storage().iter().map(|&start| start as u32);
    let graph = CsMatI::new(
        (150, 150),
        starts.collect(),
        hub.indices().to_vec(),
        hub.data().to_vec(),
    );
    // In tasks of 1 for 32 lanes the hub's row has 37 parts, which a block joins and not a warp.
    for (classes, order, task_size, lanes) in [
        (1, RowOrder::Given, 4, None),
        (5, RowOrder::FrequentColumn, 4, None),
        (16, RowOrder::Given, 4, None),
        (33, RowOrder::FirstColumn, 1, Some(32)),
        (33, RowOrder::FirstColumn, 4, None),
        (47, RowOrder::Given, 1, None),
        (40, RowOrder::Given, 4, None),
        (40, RowOrder::Given, 1, Some(32)),
        (61, RowOrder::Given, 4, None),
    ] {
        let layers = [
            layer::<T>(classes, classes, classes % 2 == 1, 1),
            layer(classes, classes, classes != 16, 3),
        ];
        let x = generate::dense::<T>(150, classes, 9).unwrap();
        let wanted = network(&graph, x.view(), &layers);
        for device in devices() {
            let mut options = GcnOptions::default();
            options.tuning.task_size = Some(task_size);
            options.tuning.lanes = lanes;
            options.tuning.order = Some(order);
            let mut gcn = Gcn::plan(&device, graph.view(), &layers, options).unwrap();
            let y = gcn.classify(x.view()).unwrap();
            assert_close(&y, &wanted, tolerance, &gcn.to_string());
            assert_eq!(gcn.classify(x.view()).unwrap(), y, "a second run: {gcn}");
        }
    }
}

#[test]
fn layers_are_right_where_rows_are_cut_and_in_another_order() {
    layers_agree::<f32>(1e-5);
    layers_agree::<f64>(1e-13);
}

/// Two layers on a graph of which one row is computed by a block, and others by a warp; some have no edges.
fn long_rows_agree<T: GcnElement>(tolerance: f64) {
    const NODES: usize = 1300;
    let mut graph = sprs::TriMatI::<T, u32>::new((NODES, NODES));
    for row in 0..NODES {
        let length = match row {
            777 => 1200,
            _ if row % 100 == 3 => 64 + row / 10,
            _ => row % 13,
        };
        for k in 0..length {
            let weight = T::from_f64(0.5 + (k % 7) as f64 / 8.0);
            graph.add_triplet(row, (row + k * 11) % NODES, weight);
        }
    }
    let graph: sprs::CsMatI<T, u32, usize> = graph.to_csr();
    let indptr = graph.indptr();
    let starts = indptr.raw_storage().iter().map(|&start| start as u32);
    let (indices, data) = (graph.indices().to_vec(), graph.data().to_vec());
    let graph = CsMatI::new((NODES, NODES), starts.collect(), indices, data);
    for widths in [
        [9, 16, 16],
        [18, 10, 47],
        [33, 16, 6],
        [20, 13, 11],
        [9, 16, 32],
        [17, 16, 33],
        [17, 16, 61],
        [17, 16, 64],
    ] {
        let layers = [
            layer::<T>(widths[0], widths[1], true, 1),
            layer(widths[1], widths[2], widths[2] != 33, 3),
        ];
        let x = generate::dense::<T>(NODES, widths[0], 9).unwrap();
        every_device_agrees(&graph, x.view(), &layers, tolerance);
    }
}

#[test]
fn layers_are_right_where_rows_are_long() {
    long_rows_agree::<f32>(1e-5);
    long_rows_agree::<f64>(1e-13);
}
