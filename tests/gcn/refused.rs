//! Parts that make no network.

use crate::{layer, weighted};
use ndarray::{Array1, Array2};
use warprow::gcn::GcnError;
use warprow::operand::OperandError;
use warprow::{CsrMatrix, Device, Gcn, GcnLayer, GcnOptions, generate};

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
    assert!(matches!(
        wrong,
        GcnError::Operand(OperandError::Columns { columns: 3, .. })
    ));
    let wrong = gcn.classify(Array2::zeros((4, 3)).view()).unwrap_err();
    assert!(matches!(
        wrong,
        GcnError::Operand(OperandError::Rows { rows: 5, .. })
    ));
}
