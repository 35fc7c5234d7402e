//! Networks on every device: the normalised matrix, layers in either order, a trained network, and what is refused.

mod support;

use ndarray::{Array1, Array2, ArrayView2, array};
use sprs::CsMatI;
use std::path::{Path, PathBuf};
use warprow::csr::DeviceCsr;
use warprow::device::Device;
use warprow::gcn::{GcnElement, OperatorKind, normalized_adjacency, read_layers, read_matrix};
use warprow::matrix_market::read_matrix_market;
use warprow::{
    CsrMatrix, Error, Gcn, GcnLayer, GcnOptions, RowOrder, Scalar, SpmmKernel, generate, reference,
};

/// `D^-1/2 (A + I) D^-1/2` with dense matrices in f64.
fn normalized<T: Scalar>(a: &CsrMatrix<T>) -> Array2<f64> {
    let n = a.rows();
    let mut dense = Array2::<f64>::zeros((n, n));
    for (value, (row, column)) in a.iter() {
        dense[[row as usize, column as usize]] = value.to_f64();
    }
    for i in 0..n {
        if a.get(i, i).is_none() {
            dense[[i, i]] = 1.0;
        }
    }
    let scale: Vec<f64> = dense
        .rows()
        .into_iter()
        .map(|row| {
            if row.sum() > 0.0 {
                1.0 / row.sum().sqrt()
            } else {
                0.0
            }
        })
        .collect();
    Array2::from_shape_fn((n, n), |(i, j)| scale[i] * dense[[i, j]] * scale[j])
}

/// The network in f64, step by step as it is defined.
fn network<T: Scalar>(
    a: &CsrMatrix<T>,
    x: ArrayView2<'_, T>,
    layers: &[GcnLayer<T>],
) -> Array2<f64> {
    let a = normalized(a);
    let mut x = x.mapv(T::to_f64);
    for (index, layer) in layers.iter().enumerate() {
        x = a.dot(&x.dot(&layer.weights.mapv(T::to_f64)));
        if let Some(bias) = &layer.bias {
            x += &bias.mapv(T::to_f64);
        }
        if index + 1 < layers.len() {
            x.mapv_inplace(|x| if x < 0.0 { 0.0 } else { x });
        }
    }
    reference::log_softmax(x.view())
}

fn layer<T: Scalar>(inputs: usize, outputs: usize, bias: bool, seed: u64) -> GcnLayer<T> {
    let row = generate::dense::<T>(1, outputs, seed + 1).row(0).to_owned();
    GcnLayer {
        weights: generate::dense(inputs, outputs, seed),
        bias: bias.then_some(row),
    }
}

fn assert_close<T: Scalar>(found: &Array2<T>, wanted: &Array2<f64>, tolerance: f64, what: &str) {
    assert_eq!(found.dim(), wanted.dim(), "{what}");
    for (place, &wanted) in wanted.indexed_iter() {
        let error = (found[place].to_f64() - wanted).abs();
        assert!(
            error <= tolerance * wanted.abs().max(1.0),
            "{what} at {place:?}: {:?}, wanted {wanted}",
            found[place]
        );
    }
}

/// Weights of edges from 0.5 to 1.5.
fn weighted<T: GcnElement>(nodes: u32, edges: u32) -> CsrMatrix<T> {
    let graph = generate::rmat::<T>(nodes, edges, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
    graph.map(|value| T::from_f64(1.0 + value.to_f64() / 2.0))
}

fn every_device_agrees<T: GcnElement>(
    graph: &CsrMatrix<T>,
    x: ArrayView2<'_, T>,
    layers: &[GcnLayer<T>],
    tolerance: f64,
) {
    let wanted = network(graph, x, layers);
    for device in support::devices() {
        for fused in [false, true] {
            let options = GcnOptions {
                fused,
                ..GcnOptions::default()
            };
            let mut gcn = Gcn::plan(&device, graph.view(), layers, options).unwrap();
            let what = gcn.to_string();
            let y = gcn.classify(x).unwrap();
            assert_close(&y, &wanted, tolerance, &what);
            assert_eq!(gcn.classify(x).unwrap(), y, "a second run: {what}");
        }
    }
}

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
    for device in support::devices() {
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

#[test]
fn layers_run_in_the_cheaper_order_and_give_the_same_either_way() {
    let device = Device::emulator(Default::default());
    let graph = weighted::<f32>(60, 300);
    let kinds = |widths: [usize; 3], fused| {
        let layers = [
            layer(widths[0], widths[1], true, 1),
            layer(widths[1], widths[2], true, 3),
        ];
        let options = GcnOptions {
            fused,
            ..GcnOptions::default()
        };
        let gcn = Gcn::plan(&device, graph.view(), &layers, options).unwrap();
        gcn.operators()
            .map(|operator| operator.kind)
            .collect::<Vec<_>>()
    };
    use OperatorKind::{Activate, Gemm, LogSoftmax, Spmm, SpmmActivate, SpmmLogSoftmax};
    assert_eq!(
        kinds([20, 8, 5], true),
        [Gemm, SpmmActivate, Gemm, SpmmLogSoftmax]
    );
    assert_eq!(
        kinds([20, 8, 5], false),
        [Gemm, Spmm, Activate, Gemm, Spmm, LogSoftmax]
    );
    for fused in [false, true] {
        assert_eq!(
            kinds([5, 20, 30], fused),
            [Spmm, Gemm, Spmm, Gemm, LogSoftmax]
        );
    }
    // There is no instance for two elements at a time, and no sub-warp has all of 200 classes.
    assert_eq!(
        kinds([20, 6, 6], true),
        [Gemm, Spmm, Activate, Gemm, Spmm, LogSoftmax]
    );
    assert_eq!(
        kinds([200, 200, 200], true),
        [Gemm, SpmmActivate, Gemm, Spmm, LogSoftmax]
    );
    for widths in [
        &[9, 4][..],
        &[4, 9],
        &[12, 16, 5],
        &[3, 8, 8, 2],
        &[7, 7, 7, 7],
        &[1, 1],
    ] {
        for bias in [false, true] {
            let layers: Vec<_> = (widths.windows(2).zip(1..))
                .map(|(pair, seed)| layer::<f32>(pair[0], pair[1], bias, seed))
                .collect();
            let x = generate::dense::<f32>(60, widths[0], 9);
            every_device_agrees(&graph, x.view(), &layers, 1e-5);
        }
    }
}

/// A layer of each kind that ends in its product with A_hat, with every number of lanes, rows cut among tasks and blocks, and rows
/// in another order.
fn ended_products_agree<T: GcnElement>(tolerance: f64) {
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
        (40, RowOrder::Given, 4, None),
        (40, RowOrder::Given, 1, Some(32)),
        (61, RowOrder::Given, 4, None),
    ] {
        let layers = [
            layer::<T>(classes, classes, classes % 2 == 1, 1),
            layer(classes, classes, classes != 16, 3),
        ];
        let x = generate::dense::<T>(150, classes, 9);
        let wanted = network(&graph, x.view(), &layers);
        for device in support::devices() {
            let mut options = GcnOptions {
                fused: true,
                ..GcnOptions::default()
            };
            options.spmm.task_size = Some(task_size);
            options.spmm.lanes = lanes;
            options.spmm.order = Some(order);
            let mut gcn = Gcn::plan(&device, graph.view(), &layers, options).unwrap();
            let kinds: Vec<_> = gcn.operators().map(|operator| operator.kind).collect();
            assert!(kinds.contains(&OperatorKind::SpmmActivate), "{gcn}");
            assert!(kinds.contains(&OperatorKind::SpmmLogSoftmax), "{gcn}");
            let y = gcn.classify(x.view()).unwrap();
            assert_close(&y, &wanted, tolerance, &gcn.to_string());
            assert_eq!(gcn.classify(x.view()).unwrap(), y, "a second run: {gcn}");
        }
    }
}

#[test]
fn layers_that_end_in_their_product_are_right_where_rows_are_cut_and_in_another_order() {
    ended_products_agree::<f32>(1e-5);
    ended_products_agree::<f64>(1e-13);
}

#[test]
fn a_nan_stays_in_its_row_and_its_neighbours() {
    // Node 1 hears 0, and nobody else does.
    let graph = CsMatI::new((4, 4), vec![0_u32, 0, 1, 1, 1], vec![0_u32], vec![1.0_f32]);
    let layers = [layer::<f32>(8, 4, true, 1), layer(4, 4, true, 3)];
    let mut x = generate::dense::<f32>(4, 8, 9);
    x[[0, 3]] = f32::NAN;
    for device in support::devices() {
        for fused in [false, true] {
            let options = GcnOptions {
                fused,
                ..GcnOptions::default()
            };
            let mut gcn = Gcn::plan(&device, graph.view(), &layers, options).unwrap();
            let y = gcn.classify(x.view()).unwrap();
            let nan: Vec<bool> = (y.rows().into_iter())
                .map(|row| row.iter().all(|y| y.is_nan()))
                .collect();
            assert_eq!(nan, [true, true, false, false], "{gcn}");
        }
    }
}

#[test]
fn a_network_in_f64_is_right_to_thirteen_digits() {
    let graph = weighted::<f64>(150, 900);
    let layers = [layer(21, 16, true, 1), layer(16, 7, true, 3)];
    let x = generate::dense::<f64>(150, 21, 9);
    every_device_agrees(&graph, x.view(), &layers, 1e-13);
}

#[test]
fn runs_with_the_same_buffers_and_with_others_all_give_the_same() {
    let graph = weighted::<f32>(90, 500);
    let layers = [layer(12, 16, true, 1), layer(16, 5, true, 3)];
    let x = generate::dense::<f32>(90, 12, 9);
    let wanted = network(&graph, x.view(), &layers);
    for device in support::devices() {
        let mut gcn = Gcn::plan(&device, graph.view(), &layers, GcnOptions::default()).unwrap();
        let upload = || device.upload(x.as_slice().unwrap()).unwrap();
        let (x, other_x) = (upload(), upload());
        let mut y = device.uninitialized::<f32>(90 * 5).unwrap();
        // The first run launches one by one, the second records, the third repeats; then others come between.
        for input in [&x, &x, &x, &other_x, &x, &other_x, &other_x, &other_x] {
            y.fill_bytes(0xff).unwrap();
            gcn.run(input, &mut y).unwrap();
            let found = Array2::from_shape_vec((90, 5), y.download().unwrap()).unwrap();
            assert_close(&found, &wanted, 1e-5, &gcn.to_string());
        }
        let mut short = device.uninitialized::<f32>(90 * 5 - 1).unwrap();
        assert!(gcn.run(&x, &mut short).is_err());
    }
}

#[test]
fn a_network_whose_products_add_to_zeros_runs_again_and_again() {
    let graph = weighted::<f32>(60, 300);
    let layers = [layer(9, 4, true, 1)];
    let x = generate::dense::<f32>(60, 9, 9);
    let wanted = network(&graph, x.view(), &layers);
    let mut options = GcnOptions::default();
    options.spmm.kernel = Some(SpmmKernel::ThreadPerNonzero);
    for device in support::devices() {
        let mut gcn = Gcn::plan(&device, graph.view(), &layers, options).unwrap();
        let x = device.upload(x.as_slice().unwrap()).unwrap();
        let mut y = device.uninitialized::<f32>(60 * 4).unwrap();
        for _ in 0..4 {
            gcn.run(&x, &mut y).unwrap();
            let found = Array2::from_shape_vec((60, 4), y.download().unwrap()).unwrap();
            assert_close(&found, &wanted, 1e-5, &gcn.to_string());
        }
    }
}

/// A file of `tests/data`: cargo runs tests in the package's directory, on whatever machine.
fn data(name: &str) -> PathBuf {
    Path::new("tests/data").join(name)
}

#[test]
fn a_network_trained_by_pytorch_gives_what_it_gives_there() {
    let graph = read_matrix_market::<f32>(data("karate.mtx")).unwrap();
    let layers = read_layers::<f32>(data("karate.safetensors")).unwrap();
    let x = read_matrix::<f32>(data("karate-x.npy")).unwrap();
    let wanted = read_matrix::<f64>(data("karate-y.npy")).unwrap();
    assert_eq!(
        (graph.nnz(), layers.len(), x.dim(), wanted.dim()),
        (156, 2, (34, 20), (34, 2))
    );
    for device in support::devices() {
        let mut gcn = Gcn::plan(&device, graph.view(), &layers, GcnOptions::default()).unwrap();
        let y = gcn.classify(x.view()).unwrap();
        for (found, wanted) in y.iter().zip(&wanted) {
            let error = (f64::from(*found) / wanted - 1.0).abs();
            assert!(error <= 1e-5, "{found} on {device}, wanted {wanted}");
        }
    }
    assert_close(
        &network(&graph, x.view(), &layers),
        &wanted,
        1e-13,
        "the definition",
    );
}

#[test]
fn weights_from_a_folder_of_npy_files_are_those_of_the_safetensors_file() {
    let layers = read_layers::<f64>(data("karate.safetensors")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (number, layer) in (1..).zip(&layers) {
        let path = |name| folder.path().join(format!("conv{number}.{name}.npy"));
        let weights = layer.weights.t().as_standard_layout().into_owned();
        ndarray_npy::write_npy(path("lin.weight"), &weights).unwrap();
        ndarray_npy::write_npy(path("bias"), layer.bias.as_ref().unwrap()).unwrap();
    }
    assert_eq!(read_layers::<f64>(folder.path()).unwrap(), layers);
    std::fs::remove_file(folder.path().join("conv2.bias.npy")).unwrap();
    assert_eq!(read_layers::<f64>(folder.path()).unwrap()[1].bias, None);
}

#[test]
fn files_that_hold_no_network_are_refused_with_what_is_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: PathBuf| read_layers::<f32>(path).unwrap_err().to_string();
    let text = refused(folder.path().to_owned());
    assert!(
        text.ends_with("wanted is a tensor `conv1.lin.weight`, found are none"),
        "{text}"
    );
    assert!(refused(folder.path().join("nothing.safetensors")).contains("nothing.safetensors"));
    let path = folder.path().join("text.safetensors");
    std::fs::write(&path, "this is no such file, whatever its name says").unwrap();
    assert!(refused(path).contains("no safetensors file"));
    let path = folder.path().join("conv1.lin.weight.npy");
    ndarray_npy::write_npy(&path, &array![1.0_f32, 2.0]).unwrap();
    let text = refused(folder.path().to_owned());
    assert!(
        text.contains("of shape [2], wanted is two dimensions"),
        "{text}"
    );
    std::fs::write(&path, "no array").unwrap();
    assert!(refused(folder.path().to_owned()).contains("no npy file"));
}

#[test]
fn parts_that_do_not_fit_are_refused_with_their_sizes() {
    let device = Device::emulator(Default::default());
    let graph = weighted::<f32>(5, 9);
    let refused = |graph: &CsrMatrix<f32>, layers: &[GcnLayer<f32>]| {
        let plan = Gcn::plan(&device, graph.view(), layers, GcnOptions::default());
        plan.unwrap_err().to_string()
    };
    assert_eq!(refused(&graph, &[]), "no network: it has no layers");
    let text = refused(&graph, &[layer(3, 4, true, 1), layer(5, 2, true, 1)]);
    assert_eq!(
        text,
        "no network: layer 2 takes 5 features, and the one before gives 4"
    );
    let short = GcnLayer {
        weights: Array2::zeros((3, 2)),
        bias: Some(Array1::zeros(3)),
    };
    assert!(refused(&graph, &[short]).contains("its bias has 3 elements"));
    let rectangular = generate::uniform::<f32>(4, 5, 6, 1).unwrap();
    assert!(refused(&rectangular, &[layer(3, 2, true, 1)]).contains("its graph is 4 x 5"));
    let layers = [layer(3, 2, true, 1)];
    let mut gcn = Gcn::plan(&device, graph.view(), &layers, GcnOptions::default()).unwrap();
    let wrong = gcn.classify(Array2::zeros((5, 4)).view()).unwrap_err();
    assert!(matches!(wrong, Error::Columns { columns: 3, .. }));
    let wrong = gcn.classify(Array2::zeros((4, 3)).view()).unwrap_err();
    assert!(matches!(wrong, Error::Rows { rows: 5, .. }));
}
