//! GCN: the normalised adjacency matrix, and bias with ReLU.

use crate::assert_all_run;
use warprow::reference::{verify_close, verify_log_softmax};
use warprow::reference::{whole_graph, whole_selection};
use warprow::{Device, Gcn, GcnElement, GcnLayer, GcnOptions, Scalar, generate};
use warprow_kernels::gcn::activate;
use warprow_kernels::gemm::BiasRelu;
use warprow_kernels::matrix::Operand;

#[test]
fn every_entry_point_runs() {
    assert_all_run("gcn", |device| {
        one_layer::<f32>(device, 9, 5);
        one_layer::<f64>(device, 9, 5);
        one_layer::<f32>(device, 16, 47);
        one_layer::<f32>(device, 16, 64);
        bias_and_relu::<f32>(device);
        bias_and_relu::<f64>(device);
        aggregation::<f32>(device);
        aggregation::<f64>(device);
    });
}

/// Three layers whose products with the graph do all that follows them: ReLU, nothing and LogSoftmax, for rows of a
/// block, of warps and of four lanes.
fn aggregation<T: GcnElement>(device: &Device) {
    const NODES: u32 = 1100;
    let lengths = |row: u32| match row {
        500 => 1090,
        _ if row % 90 == 7 => 100,
        _ => row % 12,
    };
    let edges =
        (0..NODES).flat_map(|row| (0..lengths(row)).map(move |k| (row, (k * 7 + row) % NODES)));
    let mut graph = sprs::TriMatI::<T, u32>::new((NODES as usize, NODES as usize));
    edges.for_each(|(row, column)| {
        graph.add_triplet(row as usize, column as usize, T::from_f64(1.0))
    });
    let graph: sprs::CsMatI<T, u32, u32> = graph.to_csr();
    let layers = [(9, 6, 1), (6, 19, 3), (19, 5, 7)].map(|(inputs, outputs, seed)| GcnLayer {
        weights: generate::dense::<T>(inputs, outputs, seed).unwrap(),
        bias: Some(
            generate::dense(1, outputs, seed + 1)
                .unwrap()
                .row(0)
                .to_owned(),
        ),
    });
    let x = generate::dense::<T>(NODES as usize, 9, 5).unwrap();
    let mut gcn = Gcn::plan(device, graph.view(), &layers, GcnOptions::default()).unwrap();
    let y = gcn.classify(x.view()).unwrap();
    let sums = y
        .rows()
        .into_iter()
        .map(|row| row.iter().map(|y| y.to_f64().exp()).sum::<f64>());
    assert!(
        sums.into_iter().all(|sum| (sum - 1.0).abs() < 1e-4),
        "{gcn}"
    );
}

/// A network of one layer without bias, in numbers that every order of summation adds up exactly.
fn one_layer<T: GcnElement>(device: &Device, features: usize, classes: usize) {
    const NODES: usize = 300;
    let structure = generate::rmat::<f32>(NODES as u32, 2500, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
    let graph = whole_graph::<_, T>(structure.view(), 1);
    let layer = GcnLayer {
        weights: whole_selection(features, classes, 1),
        bias: None,
    };
    let x = whole_selection::<T>(features, NODES, 2).reversed_axes();
    // Each node has a degree of 1 or 4, its loop included, so that the reciprocal of its root is 1 or 1/2.
    let mut dense = ndarray::Array2::<f64>::zeros((NODES, NODES));
    for (value, (row, column)) in graph.iter() {
        dense[[row as usize, column as usize]] = value.to_f64();
    }
    for i in (0..NODES).filter(|&i| graph.get(i, i).is_none()) {
        dense[[i, i]] = 1.0;
    }
    let scale = dense
        .sum_axis(ndarray::Axis(1))
        .mapv(|degree| 1.0 / degree.sqrt());
    let normalized =
        ndarray::Array2::from_shape_fn(dense.dim(), |(i, j)| scale[i] * dense[[i, j]] * scale[j]);
    let logits = normalized.dot(&x.mapv(T::to_f64).dot(&layer.weights.mapv(T::to_f64)));
    let mut gcn = Gcn::plan(device, graph.view(), &[layer], GcnOptions::default()).unwrap();
    let y = gcn.classify(x.view()).unwrap();
    let checked = verify_log_softmax(logits.mapv(T::from_f64).view(), y.view());
    assert!(checked.ok(), "{gcn}: {checked}");
}

/// The kernel between two layers, with elements at the end that are no whole vector.
fn bias_and_relu<T: Scalar + Operand>(device: &Device) {
    let (rows, cols) = (333, 47);
    let before = generate::dense::<T>(rows, cols, 1).unwrap();
    let bias = generate::dense::<T>(1, cols, 2).unwrap();
    let mut y = device.upload(before.as_slice().unwrap()).unwrap();
    let bias_there = device.upload(bias.as_slice().unwrap()).unwrap();
    let epilogue = BiasRelu {
        bias: bias_there.read_only(),
        has_bias: 1,
        relu: 1,
    };
    let elements = (rows * cols) as u64;
    let arguments = (elements, cols as u32, y.mutable(), epilogue);
    let config = activate::launch(elements).unwrap();
    // SAFETY: `y` has `elements` elements, and the bias one for each column.
    unsafe {
        device
            .launch(&activate::activate::<T>(), config, arguments)
            .unwrap();
    }
    let wanted = ndarray::Zip::from(&before)
        .and_broadcast(&bias)
        .map_collect(|y, bias| (y.to_f64() + bias.to_f64()).max(0.0));
    let found = ndarray::Array2::from_shape_vec((rows, cols), y.download().unwrap()).unwrap();
    // One addition, of which the result is rounded to the type.
    let checked = verify_close(wanted.view(), found.view(), T::UNIT_ROUNDOFF);
    assert!(checked.ok(), "{}: {checked}", T::NAME);
}
