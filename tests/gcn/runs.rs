//! Runs of a network: one after the other, in f64, with a NaN, and with products that add to zeros.

use crate::{assert_close, every_device_agrees, layer, logits, network, weighted};
use ndarray::Array2;
use sprs::CsMatI;
use support::devices;
use warprow::device::DeviceError;
use warprow::gcn::GcnError;
use warprow::operand::OperandError;
use warprow::reference::{verify_log_softmax, whole_graph, whole_selection};
use warprow::{CsrMatrix, Gcn, GcnLayer, GcnOptions, SpmmKernel, generate};

#[test]
fn a_nan_stays_in_its_row_and_its_neighbours() {
    // Node 1 hears 0, and nobody else does.
    let graph = CsMatI::new((4, 4), vec![0_u32, 0, 1, 1, 1], vec![0_u32], vec![1.0_f32]);
    let layers = [layer::<f32>(8, 4, true, 1), layer(4, 4, true, 3)];
    let mut x = generate::dense::<f32>(4, 8, 9).unwrap();
    x[[0, 3]] = f32::NAN;
    for device in devices() {
        let mut gcn = Gcn::plan(&device, graph.view(), &layers, GcnOptions::default()).unwrap();
        let y = gcn.classify(x.view()).unwrap();
        let nan: Vec<bool> = (y.rows().into_iter())
            .map(|row| row.iter().all(|y| y.is_nan()))
            .collect();
        assert_eq!(nan, [true, true, false, false], "{gcn}");
    }
}

#[test]
fn an_infinity_times_the_zeros_of_padding_is_not_read() {
    // The hidden features are padded to four. ReLU makes those of nodes 0 and 1 zeros; their padding is NaN.
    let graph = CsMatI::new((3, 3), vec![0_u32, 0, 1, 1], vec![0_u32], vec![1.0_f32]);
    let mut layers = [layer::<f32>(5, 3, true, 1), layer(3, 2, true, 3)];
    layers[0].weights.fill(1.0);
    let mut x = generate::dense::<f32>(3, 5, 9).unwrap();
    x[[0, 3]] = f32::NEG_INFINITY;
    for device in devices() {
        let mut gcn = Gcn::plan(&device, graph.view(), &layers, GcnOptions::default()).unwrap();
        let y = gcn.classify(x.view()).unwrap();
        assert!(y.iter().all(|y| y.is_finite()), "{gcn}: {y}");
        assert_eq!(y.row(0), y.row(1), "{gcn}");
    }
}

#[test]
fn an_infinite_hidden_feature_times_negative_weights_is_minus_infinity() {
    // Features of nodes 0 and 1 are infinite after layer 1, so minus infinity and then 0 after layer 2.
    let graph = CsMatI::new((3, 3), vec![0_u32, 0, 1, 1], vec![0_u32], vec![1.0_f32]);
    let mut layers = [
        layer::<f32>(20, 16, true, 1),
        layer(16, 16, true, 3),
        layer(16, 3, true, 5),
    ];
    layers[0].weights.fill(0.01);
    layers[1].weights.fill(-0.01);
    layers[1].bias = Some(ndarray::Array1::ones(16));
    let mut x = generate::dense::<f32>(3, 20, 9).unwrap();
    x[[0, 3]] = f32::INFINITY;
    for device in devices() {
        let mut gcn = Gcn::plan(&device, graph.view(), &layers, GcnOptions::default()).unwrap();
        let y = gcn.classify(x.view()).unwrap();
        assert!(y.iter().all(|y| y.is_finite()), "{gcn}: {y}");
        assert_eq!(y.row(0), y.row(1), "{gcn}");
        assert_ne!(y.row(0), y.row(2), "{gcn}");
    }
}

#[test]
fn weights_and_features_that_tf32_cannot_hold_are_multiplied_as_exactly() {
    // Hidden features of up to 2e38, and weights so small that tf32 does not hold what their first part leaves over.
    let graph = weighted::<f32>(150, 900);
    let x = generate::dense::<f32>(150, 21, 9).unwrap();
    for classes in [7, 40] {
        let mut layers = [layer::<f32>(21, 16, true, 1), layer(16, classes, true, 3)];
        layers[0].weights *= 1e37;
        layers[1].weights *= 1e-38;
        every_device_agrees(&graph, x.view(), &layers, 1e-5);
    }
    // A feature that would be rounded to infinity, in three of 150 nodes.
    let graph = CsMatI::zero((150, 150));
    let mut layer = layer::<f32>(16, 40, true, 1);
    layer.weights *= 1e-25;
    let mut x = generate::dense::<f32>(150, 16, 9).unwrap();
    (3..6).for_each(|node| x[[node, 2 * node]] = f32::MAX);
    every_device_agrees(&graph, x.view(), &[layer], 1e-5);
}

#[test]
fn a_network_in_f64_is_right_to_thirteen_digits() {
    let graph = weighted::<f64>(150, 900);
    let layers = [layer(21, 16, true, 1), layer(16, 7, true, 3)];
    let x = generate::dense::<f64>(150, 21, 9).unwrap();
    every_device_agrees(&graph, x.view(), &layers, 1e-13);
}

#[test]
fn runs_with_the_same_buffers_and_with_others_all_give_the_same() {
    let graph = weighted::<f32>(90, 500);
    let layers = [layer(12, 16, true, 1), layer(16, 5, true, 3)];
    let x = generate::dense::<f32>(90, 12, 9).unwrap();
    let wanted = network(&graph, x.view(), &layers);
    for device in devices() {
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
    let x = generate::dense::<f32>(60, 9, 9).unwrap();
    let wanted = network(&graph, x.view(), &layers);
    let mut options = GcnOptions::default();
    options.tuning.kernel = Some(SpmmKernel::ThreadPerNonzero);
    for device in devices() {
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

#[test]
fn a_network_of_whole_numbers_is_exact_and_one_other_edge_shows() {
    let structure = generate::rmat::<f32>(300, 4000, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
    let graph = whole_graph::<_, f32>(structure.view(), 1);
    let layers = [(9, 8, 1), (8, 5, 3)].map(|(inputs, outputs, seed)| GcnLayer {
        weights: whole_selection(inputs, outputs, seed),
        bias: Some(whole_selection(1, outputs, seed + 1).row(0).to_owned()),
    });
    let x = whole_selection(9, 300, 9).reversed_axes();
    let logits = logits(&graph, x.view(), &layers);
    let in_f32 = logits.mapv(|logit| logit as f32);
    assert_eq!(in_f32.mapv(f64::from), logits, "f32 holds the sums");
    let mut wrong = graph.clone();
    wrong.data_mut()[2000] += 1.0;
    for device in devices() {
        let verify = |graph: &CsrMatrix<f32>| {
            let gcn = Gcn::plan(&device, graph.view(), &layers, GcnOptions::default());
            let y = gcn.unwrap().classify(x.view()).unwrap();
            verify_log_softmax(in_f32.view(), y.view())
        };
        assert!(verify(&graph).ok(), "{}", verify(&graph));
        assert!(!verify(&wrong).ok());
    }
}

#[test]
fn a_run_inside_a_recording_is_recorded_each_time() {
    let graph = weighted::<f32>(90, 500);
    let layers = [layer(12, 16, true, 1), layer(16, 5, true, 3)];
    let x = generate::dense::<f32>(90, 12, 9).unwrap();
    let wanted = network(&graph, x.view(), &layers);
    let mut options = GcnOptions::default();
    options.tuning.task_size = Some(16);
    for device in devices() {
        let mut gcn = Gcn::plan(&device, graph.view(), &layers, options).unwrap();
        let what = gcn.to_string();
        let x = device.upload(x.as_slice().unwrap()).unwrap();
        let [mut y, mut z] = [(); 2].map(|()| device.uninitialized::<f32>(90 * 5).unwrap());
        let mut recordings = Vec::new();
        for _ in 0..3 {
            recordings.push(device.record(|| gcn.run(&x, &mut y)).unwrap());
            // One of the network's own runs, of which the second is recorded too.
            z.fill_bytes(0xff).unwrap();
            gcn.run(&x, &mut z).unwrap();
            let found = Array2::from_shape_vec((90, 5), z.download().unwrap()).unwrap();
            assert_close(&found, &wanted, 1e-5, &what);
        }
        drop(gcn);
        for recording in recordings {
            y.fill_bytes(0xff).unwrap();
            // SAFETY: the pointers were taken in the recording.
            unsafe { recording.launch().unwrap() };
            let found = Array2::from_shape_vec((90, 5), y.download().unwrap()).unwrap();
            assert_close(&found, &wanted, 1e-5, &what);
        }
    }
}

#[test]
fn a_network_that_needs_more_than_launches_cannot_be_recorded_each_time() {
    let graph = weighted::<f32>(60, 300);
    let layers = [layer(9, 4, true, 1)];
    let mut options = GcnOptions::default();
    options.tuning.kernel = Some(SpmmKernel::ThreadPerNonzero);
    for device in devices() {
        let mut gcn = Gcn::plan(&device, graph.view(), &layers, options).unwrap();
        let x = device.zeros::<f32>(60 * 9).unwrap();
        let mut y = device.uninitialized::<f32>(60 * 4).unwrap();
        for _ in 0..3 {
            let error = device.record(|| gcn.run(&x, &mut y)).unwrap_err();
            assert!(
                matches!(
                    error,
                    GcnError::Operand(OperandError::Device(DeviceError::NotRecordable { .. }))
                ),
                "{error}"
            );
            gcn.run(&x, &mut y).unwrap();
        }
    }
}
