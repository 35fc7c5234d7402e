//! Matrices in CSR on every device, against what sprs makes of them on the host.

use proptest::prelude::*;
use sprs::CsMatI;
use std::sync::Arc;
use support::devices;
use warprow::device::{DeviceError, EmulatorOptions};
use warprow::operand::OperandError;
use warprow::{CsrMatrix, Device, DeviceCsr, generate};

/// Small, odd, rectangular, empty, with empty rows at both ends, with one very long row, and with more nonzeros than
/// a block.
fn matrices() -> Vec<CsrMatrix<f32>> {
    let mut long_row = generate::uniform::<f32>(1, 1500, 1500, 3).unwrap();
    for (rows, nonzeros) in [(700, 90), (5, 0)] {
        let other = generate::uniform::<f32>(rows, 1500, nonzeros, 4).unwrap();
        long_row = sprs::vstack(&[other.view(), long_row.view()]);
    }
    vec![
        generate::uniform(1, 1, 1, 1).unwrap(),
        generate::uniform(1, 1, 0, 1).unwrap(),
        generate::uniform(33, 7, 61, 1).unwrap(),
        generate::uniform(7, 5000, 61, 1).unwrap(),
        generate::uniform(5000, 3, 61, 1).unwrap(),
        generate::uniform(130, 300, 5001, 1).unwrap(),
        CsMatI::zero((0, 4)),
        CsMatI::zero((4, 0)),
        CsMatI::zero((0, 0)),
        CsMatI::zero((300, 300)),
        long_row,
    ]
}

fn assert_is(found: &DeviceCsr<f32>, wanted: &CsrMatrix<f32>) {
    assert!(wanted.is_csr());
    let found = found.download().unwrap();
    assert_eq!(found.shape(), wanted.shape());
    // A view of some rows keeps their row pointers in the whole.
    assert_eq!(found.indptr().to_proper(), wanted.indptr().to_proper());
    assert_eq!(found.indices(), wanted.indices());
    assert_eq!(found.data(), wanted.data());
}

#[test]
fn an_upload_is_the_matrix_whichever_way_it_is_stored() {
    for device in devices() {
        for a in matrices() {
            let by_rows = DeviceCsr::upload(&device, a.view()).unwrap();
            assert_is(&by_rows, &a);
            let by_columns = DeviceCsr::upload(&device, a.to_csc().view()).unwrap();
            assert_is(&by_columns, &a);
        }
    }
}

#[test]
fn a_view_of_some_rows_is_uploaded_as_those() {
    let a = generate::uniform::<f32>(50, 20, 300, 5).unwrap();
    let rows = a.slice_outer(13..37);
    for device in devices() {
        assert_is(
            &DeviceCsr::upload(&device, rows.view()).unwrap(),
            &rows.to_owned(),
        );
    }
}

#[test]
fn a_transpose_is_that_of_the_host() {
    for device in devices() {
        for a in matrices() {
            let transposed = DeviceCsr::upload(&device, a.view())
                .and_then(|a| a.transpose())
                .unwrap();
            assert_is(&transposed, &a.transpose_view().to_csr());
        }
    }
}

#[test]
fn each_nonzero_has_its_row() {
    for device in devices() {
        for a in matrices() {
            let rows: Vec<u32> = a.iter().map(|(_, (row, _))| row).collect();
            let on_device = DeviceCsr::upload(&device, a.view()).unwrap();
            let found = on_device.pattern().row_of_each().unwrap();
            assert_eq!(found.download().unwrap(), rows);
        }
    }
}

#[test]
fn nonzeros_by_column_are_those_of_csc() {
    for device in devices() {
        for a in matrices() {
            let sorted = DeviceCsr::upload(&device, a.view())
                .and_then(|a| a.by_column())
                .unwrap();
            let wanted = a.to_csc();
            let cols: Vec<u32> = wanted.iter().map(|(_, (_, col))| col).collect();
            assert_eq!(sorted.row.download().unwrap(), wanted.indices());
            assert_eq!(sorted.col.download().unwrap(), cols);
            assert_eq!(sorted.values.download().unwrap(), wanted.data());
        }
    }
}

#[test]
fn matrices_of_other_values_share_a_pattern() {
    let a = generate::uniform::<f32>(33, 7, 61, 1).unwrap();
    let negated = a.map(|value| -value);
    for device in devices() {
        let on_device = DeviceCsr::upload(&device, a.view()).unwrap();
        let values = device.upload(negated.data()).unwrap();
        let other = DeviceCsr::new(Arc::clone(on_device.pattern()), values).unwrap();
        assert_is(&other, &negated);
        assert_is(&on_device, &a);
        assert!(Arc::ptr_eq(on_device.pattern(), other.pattern()));
    }
}

#[test]
fn no_matrix_is_made_of_a_structure_that_launches_have_yet_to_write() {
    let a = generate::uniform::<f32>(33, 7, 61, 1).unwrap();
    for device in devices() {
        let a = DeviceCsr::upload(&device, a.view()).unwrap();
        let error = device.record(|| a.transpose().map(drop)).unwrap_err();
        assert!(
            matches!(
                error,
                OperandError::Device(DeviceError::NotRecordable { .. })
            ),
            "{error}"
        );
    }
}

#[test]
fn values_are_overwritten_in_place_and_taken_apart_from_their_pattern() {
    let a = generate::uniform::<f32>(33, 7, 61, 1).unwrap();
    let negated = a.map(|value| -value);
    for device in devices() {
        let mut matrix = DeviceCsr::upload(&device, a.view()).unwrap();
        let mut there = matrix.values_mut().unwrap();
        there.copy_from_slice(negated.data()).unwrap();
        assert_is(&matrix, &negated);
        let mut there = matrix.values_mut().unwrap();
        let error = there.copy_from_slice(&[1.0; 60]).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("has 60 elements, wanted are 61"),
            "{error}"
        );
        let mut there = matrix.values_mut().unwrap();
        there.fill_zero().unwrap();
        assert_eq!(there.len(), 61);
        let (pattern, mut values) = matrix.into_parts().unwrap();
        assert_eq!(values.download().unwrap(), [0.0; 61]);
        values.copy_from_slice(a.data()).unwrap();
        assert_is(&DeviceCsr::new(pattern, values).unwrap(), &a);
    }
}

#[test]
fn values_that_are_not_the_pattern_s_are_an_error() {
    let a = generate::uniform::<f32>(33, 7, 61, 1).unwrap();
    for device in devices() {
        let pattern = Arc::clone(DeviceCsr::upload(&device, a.view()).unwrap().pattern());
        let too_few = device.zeros::<f32>(60).unwrap();
        let error = DeviceCsr::new(Arc::clone(&pattern), too_few).unwrap_err();
        assert_eq!(
            error.to_string(),
            "wrong length: the list of values has 60 elements, wanted are 61"
        );
        let elsewhere = Device::emulator(EmulatorOptions::default());
        let values = elsewhere.zeros::<f32>(61).unwrap();
        let error = DeviceCsr::new(pattern, values).unwrap_err();
        assert!(matches!(error, OperandError::OtherDevice { .. }), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn any_matrix_is_itself_when_transposed_twice(
        rows in 1_u32..400, cols in 1_u32..400, part in 0_u32..=100, seed in any::<u64>(),
    ) {
        let nonzeros = (rows * cols).min(2000) * part / 100;
        let a = generate::uniform::<f32>(rows, cols, nonzeros, seed).unwrap();
        for device in devices() {
            let once = DeviceCsr::upload(&device, a.view()).and_then(|a| a.transpose()).unwrap();
            assert_is(&once, &a.transpose_view().to_csr());
            assert_is(&once.transpose().unwrap(), &a);
        }
    }
}
