//! LogSoftmax by the kernel that the rows allow, and networks, whose first and last operators read X and write Y.

use super::{LAYOUTS, Wide, layout};
use ndarray::Array2;
use warprow::log_softmax::{LogSoftmax, SoftmaxElement};
use warprow::reference::{verify_close, verify_log_softmax};
use warprow::{Gcn, GcnLayer, GcnOptions, Scalar, bf16, f16, generate};

fn log_softmax_verifies<T: SoftmaxElement + Scalar>() {
    for device in support::devices() {
        for classes in [1, 4, 16, 47, 64, 100] {
            let x = generate::dense::<T>(35, classes, 7).unwrap();
            let plan = LogSoftmax::plan(&device, classes, None).unwrap();
            for (k, of_x) in LAYOUTS.into_iter().enumerate() {
                let of_y = LAYOUTS[(k * 3 + classes) % LAYOUTS.len()];
                let wide = Wide::new(&device, x.view(), of_x);
                let mut y = Wide::new(&device, x.view(), of_y);
                plan.run(wide.view(), 35, y.view_mut()).unwrap();
                let y = y
                    .download()
                    .unwrap_or_else(|error| panic!("{classes}, {of_x:?}, {of_y:?}: {error}"));
                let checked = verify_log_softmax(x.view(), y.view());
                assert!(
                    checked.ok(),
                    "{classes} classes, {of_x:?}, {of_y:?}: {checked}"
                );
            }
        }
    }
}

#[test]
fn log_softmax_takes_any_columns_of_wider_buffers() {
    log_softmax_verifies::<f32>();
    log_softmax_verifies::<f64>();
    log_softmax_verifies::<f16>();
    log_softmax_verifies::<bf16>();
}

#[test]
fn a_network_reads_and_writes_columns_of_wider_buffers_in_every_run() {
    let graph = generate::uniform::<f32>(60, 60, 400, 1).unwrap();
    let layer = |rows, cols, seed| GcnLayer {
        weights: generate::dense::<f32>(rows, cols, seed).unwrap(),
        bias: None,
    };
    for (features, hidden, classes) in [(12, 16, 5), (8, 4, 8)] {
        let layers = [layer(features, hidden, 1), layer(hidden, classes, 2)];
        let x = generate::dense::<f32>(60, features, 3).unwrap();
        for device in support::devices() {
            let mut gcn = Gcn::plan(&device, graph.view(), &layers, GcnOptions::default()).unwrap();
            let packed = gcn.classify(x.view()).unwrap().mapv(f64::from);
            let wide = Wide::new(&device, x.view(), layout(0, 4));
            let old = Array2::from_elem((60, classes), 7.0);
            let mut y = Wide::new(&device, old.view(), layout(1, 2));
            // The second run records its launches, and the third repeats them.
            for _ in 0..3 {
                gcn.run(wide.view(), y.view_mut()).unwrap();
                let found = y.download().unwrap();
                let checked = verify_close(packed.view(), found.view(), 1e-6);
                assert!(checked.ok(), "{gcn}: {checked}");
            }
        }
    }
}
