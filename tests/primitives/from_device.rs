//! Matrices of arrays that are already on the device: as they are uploaded, and refused if they are no matrix.

use support::devices;
use warprow::operand::OperandError;
use warprow::{Device, DeviceCsr, DevicePattern, generate, spgemm};

fn pattern(
    device: &Device,
    shape: (usize, usize),
    row_ptr: &[u32],
    col_idx: &[u32],
) -> Result<(), OperandError> {
    let (row_ptr, col_idx) = (device.upload(row_ptr)?, device.upload(col_idx)?);
    DevicePattern::from_device(shape.0, shape.1, row_ptr, col_idx).map(drop)
}

#[test]
fn a_matrix_of_device_arrays_is_that_of_an_upload_adopted_or_copied() {
    let a = generate::uniform::<f32>(700, 90, 3000, 1).unwrap();
    let indptr = a.indptr();
    for device in devices() {
        let row_ptr = device.upload(indptr.raw_storage()).unwrap();
        let all = [vec![7; 5], a.indices().to_vec()].concat();
        let all = device.upload(&all).unwrap();
        let col_idx = all.slice(5..).unwrap();
        let values = device.upload(a.data()).unwrap();
        let copied = DeviceCsr::copy_from_device(700, 90, &row_ptr, col_idx, &values).unwrap();
        let col_idx = device.upload(a.indices()).unwrap();
        let adopted = DeviceCsr::from_device(700, 90, row_ptr, col_idx, values).unwrap();
        let uploaded = DeviceCsr::upload(&device, a.view()).unwrap();
        let product = |a: &DeviceCsr<f32>| {
            let b = a.transpose().unwrap();
            let product = spgemm::multiply(a, &b, Default::default()).unwrap();
            product.c.download().unwrap()
        };
        let wanted = product(&uploaded).to_dense();
        for matrix in [copied, adopted] {
            assert!(matrix.download().unwrap() == a);
            let difference = &product(&matrix).to_dense() - &wanted;
            assert!(difference.iter().all(|x| x.abs() < 1e-4));
        }
    }
}

#[test]
fn arrays_that_are_no_matrix_are_refused_with_the_faulty_row() {
    for device in devices() {
        let shape = (3, 4);
        assert!(pattern(&device, shape, &[0, 2, 2, 4], &[0, 3, 1, 2]).is_ok());
        assert!(pattern(&device, (0, 4), &[0], &[]).is_ok());
        assert!(pattern(&device, (3, 0), &[0; 4], &[]).is_ok());
        let structure: [(&[u32], &[u32], usize); 7] = [
            (&[0, 2, 2, 4], &[3, 0, 1, 2], 0),
            (&[0, 2, 2, 4], &[0, 3, 1, 1], 2),
            (&[0, 2, 2, 4], &[0, 3, 1, 4], 2),
            (&[1, 2, 2, 4], &[0, 3, 1, 2], 0),
            (&[0, 2, 2, 3], &[0, 3, 1, 2], 2),
            (&[0, 3, 2, 4], &[0, 3, 1, 2], 1),
            (&[0, 9, 9, 4], &[0, 3, 1, 2], 2),
        ];
        for (row_ptr, col_idx, row) in structure {
            match pattern(&device, shape, row_ptr, col_idx) {
                Err(OperandError::Structure { number, .. }) => {
                    assert_eq!(number, row, "{row_ptr:?} {col_idx:?}");
                }
                other => panic!("{row_ptr:?} {col_idx:?}: {other:?}"),
            }
        }
        let error = pattern(&device, (3, 4), &[0, 2, 4], &[0, 3, 1, 2]).unwrap_err();
        assert!(matches!(error, OperandError::Length { .. }), "{error}");
        let error = pattern(&device, (usize::MAX, 4), &[0], &[]).unwrap_err();
        assert!(matches!(error, OperandError::TooLarge { .. }), "{error}");
        let error = pattern(&device, (0, 4), &[3], &[]).unwrap_err();
        assert!(matches!(error, OperandError::Structure { .. }), "{error}");
    }
}

#[test]
fn arrays_of_two_devices_are_refused_and_unchecked_ones_are_taken_as_they_are() {
    let elsewhere = Device::emulator(Default::default());
    for device in devices() {
        let row_ptr = || device.upload(&[0_u32, 1, 2]).unwrap();
        let foreign = elsewhere.upload(&[0_u32, 1]).unwrap();
        let error = DevicePattern::from_device(2, 2, row_ptr(), foreign).unwrap_err();
        assert!(matches!(error, OperandError::OtherDevice { .. }), "{error}");
        let col_idx = device.upload(&[1_u32, 0]).unwrap();
        // SAFETY: the arrays are those of a matrix.
        let pattern = unsafe { DevicePattern::from_device_unchecked(2, 2, row_ptr(), col_idx) };
        let values = device.upload(&[1.0_f32, 2.0]).unwrap();
        let a = DeviceCsr::new(pattern.unwrap(), values).unwrap();
        assert_eq!(
            a.download().unwrap().to_dense(),
            ndarray::array![[0.0, 1.0], [2.0, 0.0]]
        );
    }
}

#[test]
fn matrices_of_elements_of_any_size_are_transposed() {
    for device in devices() {
        let pattern = generate::uniform::<f32>(40, 30, 200, 1).unwrap();
        let pattern = DeviceCsr::upload(&device, pattern.view()).unwrap();
        let pattern = pattern.pattern();
        let bytes: Vec<u8> = (0..200).collect();
        let words: Vec<u64> = (0..200).map(|k| k << 33).collect();
        let bytes = DeviceCsr::new(pattern.clone(), device.upload(&bytes).unwrap()).unwrap();
        let words = DeviceCsr::new(pattern.clone(), device.upload(&words).unwrap()).unwrap();
        let halves = (0..200_u8)
            .map(|k| warprow::f16::from_f32(k.into()))
            .collect::<Vec<_>>();
        let halves = DeviceCsr::new(pattern.clone(), device.upload(&halves).unwrap()).unwrap();
        let bytes = bytes.transpose().unwrap().values().download().unwrap();
        let words = words.transpose().unwrap().values().download().unwrap();
        let halves = halves.transpose().unwrap().values().download().unwrap();
        assert!(
            bytes
                .iter()
                .zip(&words)
                .all(|(&byte, word)| u64::from(byte) == word >> 33)
        );
        assert!(
            bytes
                .iter()
                .zip(&halves)
                .all(|(&byte, half)| f32::from(byte) == half.to_f32())
        );
        assert!(!bytes.is_sorted());
    }
}
