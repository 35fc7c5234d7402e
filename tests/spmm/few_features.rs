//! Products with few features: [`Spmv`], and plans that do not know the number of features.

use super::plan::{assert_right, with_long_row};
use ndarray::Axis;
use sprs::CsMatI;
use support::devices;
use warprow::device::{Device, DeviceProfile, EmulatorOptions};
use warprow::reference::WholeProduct;
use warprow::{
    DeviceCsr, Reduction, Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning, Spmv, bf16, f16,
    generate, reference,
};

const SKEWED: [f64; 4] = [0.57, 0.19, 0.19, 0.05];

#[test]
fn spmv_is_the_product_with_one_vector() {
    let a = generate::rmat::<f32>(700, 9_000, SKEWED, 3).unwrap();
    let x = generate::dense::<f32>(700, 1, 4).unwrap();
    for device in devices() {
        let spmv = Spmv::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        assert_eq!(spmv.as_spmm().kernel(), SpmmKernel::Spmv);
        let y = spmv.multiply(x.column(0)).unwrap().insert_axis(Axis(1));
        assert_right(a.view(), x.view(), &y, spmv.as_spmm());
    }
}

#[test]
fn spmv_takes_a_matrix_of_the_device_and_new_values() {
    let a = generate::rmat::<f32>(700, 9_000, SKEWED, 3).unwrap();
    let doubled = a.map(|value| 2.0 * value);
    let x = generate::dense::<f32>(700, 1, 4).unwrap();
    for device in devices() {
        let options = SpmmOptions::new().updatable(true);
        let wanted = Spmv::plan(&device, a.view(), options).unwrap();
        let stored = DeviceCsr::upload(&device, a.view()).unwrap();
        let mut spmv = Spmv::plan_device(&stored, options).unwrap();
        assert_eq!(spmv.as_spmm().kernel(), SpmmKernel::Spmv);
        let y = spmv.multiply(x.column(0)).unwrap();
        assert_eq!(y, wanted.multiply(x.column(0)).unwrap(), "{spmv}");
        spmv.as_spmm_mut().set_values(doubled.data()).unwrap();
        let y = spmv.multiply(x.column(0)).unwrap().insert_axis(Axis(1));
        assert_right(doubled.view(), x.view(), &y, spmv.as_spmm());
    }
}

#[test]
fn a_plan_that_knows_no_features_has_a_kernel_for_few_and_one_for_many() {
    let a = generate::rmat::<f32>(700, 9_000, SKEWED, 3).unwrap();
    // A GPU's choice depends on its rates.
    let emulator = Device::emulator(EmulatorOptions::default());
    let plan = Spmm::plan(&emulator, a.view(), SpmmOptions::default()).unwrap();
    assert_eq!(plan.kernel_for(1), SpmmKernel::RowBins);
    assert_eq!(plan.kernel_for(17), plan.kernel());
    assert_ne!(plan.kernel(), SpmmKernel::RowBins);
    for device in devices() {
        let plan = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        for features in [1, 6, 16, 17] {
            let x = generate::dense::<f32>(700, features, 5).unwrap();
            let y = plan.multiply(x.view()).unwrap();
            assert_right(a.view(), x.view(), &y, &plan);
            assert_eq!(plan.multiply(x.view()).unwrap(), y, "other bits: {plan}");
        }
    }
}

/// Row lengths: short rows among empty ones; a row of many tasks; rows of one task, and a little longer and
/// shorter; no nonzeros at all; one row; more rows than nonzeros.
fn row_lengths() -> Vec<Vec<usize>> {
    vec![
        (0..3_001).map(|row| row * 7 % 5).collect(),
        (0..400)
            .map(|row| if row == 123 { 20_011 } else { row % 9 })
            .collect(),
        vec![2_048, 2_048, 0, 2_049, 2_047, 1, 4_095, 4_097],
        vec![0; 5_000],
        vec![9_999],
        (0..9_001).map(|row| usize::from(row % 300 == 7)).collect(),
        (0..301).map(|row| 60 + row % 7).collect(),
    ]
}

/// A band of rows of these lengths.
pub fn structure(lengths: &[usize]) -> CsMatI<(), u32, u32> {
    let cols = lengths.iter().copied().max().unwrap_or(0) + 17;
    let mut indptr = vec![0];
    let mut indices = Vec::new();
    for (row, &length) in lengths.iter().enumerate() {
        let first = row * 5 % (cols - length + 1);
        indices.extend((first..first + length).map(|col| col as u32));
        indptr.push(indices.len() as u32);
    }
    let data = vec![(); indices.len()];
    CsMatI::new((lengths.len(), cols), indptr, indices, data)
}

fn spmv_is_exact<E: SpmmElement>() {
    for lengths in row_lengths() {
        let whole = WholeProduct::<E>::new(structure(&lengths).view(), 1, 3);
        for device in devices() {
            let spmv = Spmv::plan(&device, whole.a(), SpmmOptions::default()).unwrap();
            for run in 0..2 {
                let y = spmv.multiply(whole.x().column(0)).unwrap();
                let checked = whole.verify(y.insert_axis(Axis(1)).view());
                assert!(checked.is_exact(), "{spmv}, run {run}: {checked}");
            }
        }
    }
}

#[test]
fn spmv_is_exact_however_long_rows_are_and_in_every_type() {
    spmv_is_exact::<f32>();
    spmv_is_exact::<f64>();
    spmv_is_exact::<f16>();
    spmv_is_exact::<bf16>();
}

/// Tasks of less than a chunk and of a few, whose ends lie anywhere in a chunk.
#[test]
fn spmv_is_exact_with_tasks_of_any_size() {
    for lengths in row_lengths() {
        let whole = WholeProduct::<f32>::new(structure(&lengths).view(), 1, 3);
        for device in devices() {
            for size in [37, 129, 1_000, 70_000] {
                let tuning = SpmmTuning::new().task_size(Some(size));
                let options = SpmmOptions::new().tuning(tuning);
                let spmv = Spmv::plan(&device, whole.a(), options).unwrap();
                assert_eq!(spmv.as_spmm().kernel(), SpmmKernel::Spmv);
                let y = spmv.multiply(whole.x().column(0)).unwrap();
                let checked = whole.verify(y.insert_axis(Axis(1)).view());
                assert!(checked.is_exact(), "{spmv}: {checked}");
            }
        }
    }
}

#[test]
fn spmv_takes_means_and_extrema_and_gives_the_same_bits_in_every_run() {
    let a = generate::rmat::<f32>(3_001, 60_000, SKEWED, 5).unwrap();
    let x = generate::dense::<f32>(3_001, 1, 6).unwrap();
    for device in devices() {
        for &reduction in Reduction::ALL {
            let options = SpmmOptions::new().reduction(reduction).deterministic(true);
            let spmv = Spmv::plan(&device, a.view(), options).unwrap();
            let kernel = match reduction {
                Reduction::Sum | Reduction::Mean => SpmmKernel::Spmv,
                _ => SpmmKernel::RowBins,
            };
            assert_eq!(spmv.as_spmm().kernel(), kernel, "{spmv}");
            let y = spmv.multiply(x.column(0)).unwrap();
            let operation = reference::Operation::new().reduction(reduction);
            let checked = operation.verify(a.view(), x.view(), y.view().insert_axis(Axis(1)));
            assert!(checked.ok(), "{spmv}: {checked}");
            for _ in 0..3 {
                assert_eq!(spmv.multiply(x.column(0)).unwrap(), y, "other bits: {spmv}");
            }
        }
    }
}

/// On a GPU whose rates are known, a plan that knows no features takes for one feature a kernel whose tasks it has.
#[test]
fn a_plan_of_an_emulated_gpu_that_knows_no_features_is_right_with_any() {
    let device = Device::emulator_of(&DeviceProfile::h200(), EmulatorOptions::default());
    let skewed = generate::rmat::<f32>(700, 9_000, SKEWED, 3).unwrap();
    let even = generate::uniform::<f32>(3_000, 3_000, 40_000, 3).unwrap();
    for (a, for_few) in [
        (&skewed, None),
        (&with_long_row(&even), Some(SpmmKernel::RowBins)),
        (&even, Some(SpmmKernel::RowGroups)),
    ] {
        let plan = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        let is_for_many = matches!(plan.kernel(), SpmmKernel::Vector | SpmmKernel::InStep);
        assert!(is_for_many, "{plan}");
        for (features, wanted) in [
            (1, Some(SpmmKernel::RowBins)),
            (2, for_few),
            (4, for_few),
            (8, for_few),
            (17, None),
            (33, Some(plan.kernel())),
            (64, None),
            (65, Some(plan.kernel())),
            (200, Some(plan.kernel())),
        ] {
            let kernel = plan.kernel_for(features);
            let what = format!("{features} features by {}: {plan}", kernel.name());
            assert_eq!(wanted.unwrap_or(kernel), kernel, "{what}");
            let x = generate::dense::<f32>(a.cols(), features as usize, 5).unwrap();
            let y = plan.multiply(x.view()).unwrap();
            assert_right(a.view(), x.view(), &y, &plan);
            assert_eq!(plan.multiply(x.view()).unwrap(), y, "other bits: {what}");
        }
    }
}
