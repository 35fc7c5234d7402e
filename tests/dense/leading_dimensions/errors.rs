//! Views that cannot be: rows that overlap, slices that are too short, sizes that overflow, columns that are not there.

use super::OperandError;
use warprow::device::Device;
use warprow::gemm::GemmError;
use warprow::spmm::{SpmmError, SpmmOptions};
use warprow::{DenseView, DenseViewMut, Gemm, GemmOptions, Spmm, generate};

#[test]
fn a_leading_dimension_below_the_columns_is_an_error() {
    let device = Device::emulator(Default::default());
    let buffer = device.zeros::<f32>(100).unwrap();
    let error = DenseView::new(&buffer, 3, 10, 9).unwrap_err();
    assert!(matches!(
        error,
        OperandError::LeadingDimension {
            columns: 10,
            found: 9
        }
    ));
}

#[test]
fn a_slice_must_reach_to_the_end_of_the_last_row_and_no_further() {
    let device = Device::emulator(Default::default());
    let mut buffer = device.zeros::<f32>(25).unwrap();
    // Rows start at 0, 11 and 22, and have three elements.
    DenseView::new(&buffer, 3, 3, 11).unwrap();
    let error = DenseViewMut::new(&mut buffer, 3, 4, 11).unwrap_err();
    assert!(
        matches!(
            error,
            OperandError::TooShort {
                wanted: 26,
                found: 25,
                ..
            }
        ),
        "{error}"
    );
    // The product of these sizes does not fit 64 bits.
    let error = DenseView::new(&buffer, usize::MAX, 2, usize::MAX).unwrap_err();
    assert!(matches!(error, OperandError::TooShort { .. }), "{error}");
}

#[test]
fn matrices_without_elements_need_none() {
    let device = Device::emulator(Default::default());
    let buffer = device.zeros::<f32>(0).unwrap();
    let view = DenseView::new(&buffer, 0, 3, 5).unwrap();
    assert_eq!(view.columns(1..).unwrap().cols(), 2);
    let view = DenseView::new(&buffer, 3, 0, 5).unwrap();
    assert_eq!(
        (view.rows(), view.cols(), view.leading_dimension()),
        (3, 0, 5)
    );
}

#[test]
fn columns_that_a_view_does_not_have_are_an_error() {
    let device = Device::emulator(Default::default());
    let buffer = device.zeros::<f32>(20).unwrap();
    let view = DenseView::new(&buffer, 4, 3, 5).unwrap();
    assert_eq!(view.columns(..).unwrap().cols(), 3);
    for range in [2..4, 4..4] {
        let error = view.columns(range).unwrap_err();
        assert!(
            matches!(error, OperandError::ColumnRange { columns: 3, .. }),
            "{error}"
        );
    }
}

#[test]
fn a_view_of_another_shape_than_the_operations_is_an_error() {
    let device = Device::emulator(Default::default());
    let a = generate::uniform::<f32>(4, 6, 10, 1).unwrap();
    let spmm = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
    let x = device.zeros::<f32>(100).unwrap();
    let mut y = device.zeros::<f32>(4 * 3).unwrap();
    let x = |rows, cols| DenseView::new(&x, rows, cols, 9).unwrap();
    let error = spmm.run(x(5, 3), 3, &mut y).unwrap_err();
    assert!(
        matches!(
            error,
            SpmmError::Operand(OperandError::Rows {
                rows: 6,
                found: (5, 3),
                ..
            })
        ),
        "{error}"
    );
    let error = spmm.run(x(6, 2), 3, &mut y).unwrap_err();
    assert!(
        matches!(
            error,
            SpmmError::Operand(OperandError::Columns {
                columns: 3,
                found: (6, 2),
                ..
            })
        ),
        "{error}"
    );
}

#[test]
fn a_leading_dimension_that_kernels_cannot_count_is_an_error() {
    let device = Device::emulator(Default::default());
    let a = generate::uniform::<f32>(1, 1, 1, 1).unwrap();
    let spmm = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
    let x = device.zeros::<f32>(4).unwrap();
    let mut y = device.zeros::<f32>(4).unwrap();
    // A single row ends where its columns do.
    for leading_dimension in [1 << 30, 1 << 33] {
        let x = DenseView::new(&x, 1, 4, leading_dimension).unwrap();
        let error = spmm.run(x, 4, &mut y).unwrap_err();
        let is_too_large = matches!(&error, SpmmError::Operand(OperandError::TooLarge { .. }));
        assert!(is_too_large, "{error}");
    }
}

#[test]
fn xw_wants_views_that_start_at_multiples_of_16_bytes() {
    let device = Device::emulator(Default::default());
    let w = generate::dense::<f32>(4, 4, 1).unwrap();
    let gemm = Gemm::plan(&device, w.view(), None, GemmOptions::default()).unwrap();
    let x = device.zeros::<f32>(40).unwrap();
    let mut y = device.zeros::<f32>(12).unwrap();
    let x = DenseView::new(&x, 3, 10, 10).unwrap();
    gemm.run(x.columns(4..8).unwrap(), 3, &mut y).unwrap();
    let error = gemm.run(x.columns(1..5).unwrap(), 3, &mut y).unwrap_err();
    assert!(
        matches!(
            error,
            GemmError::Operand(OperandError::Alignment {
                what: "x",
                wanted: 16,
                ..
            })
        ),
        "{error}"
    );
}
