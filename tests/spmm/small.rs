//! Products of small matrices are one launch: the blocks of `vector` join the rows that are split between them.

use sprs::CsMatI;
use support::devices;
use warprow::device::{Device, DeviceProfile, EmulatorOptions};
use warprow::reference::WholeProduct;
use warprow::{
    Reduction, Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning, bf16, f16, generate,
};

/// Short rows and empty ones, with a row of `long` nonzeros at every 97th place.
fn structure(rows: usize, long: usize) -> CsMatI<(), u32, u32> {
    let cols = long + 31;
    let (mut indptr, mut indices) = (vec![0], Vec::new());
    for row in 0..rows {
        let length = if row % 97 == 5 { long } else { row * 7 % 9 };
        let first = row * 5 % (cols - length + 1);
        indices.extend((first..first + length).map(|col| col as u32));
        indptr.push(indices.len() as u32);
    }
    let data = vec![(); indices.len()];
    CsMatI::new((rows, cols), indptr, indices, data)
}

fn h200() -> Device {
    Device::emulator_of(&DeviceProfile::h200(), EmulatorOptions::default())
}

fn tasks_of(size: u32) -> SpmmOptions {
    let tuning = SpmmTuning::new().kernel(SpmmKernel::Vector);
    SpmmOptions::new().tuning(tuning.lanes(8).task_size(size))
}

/// Whether two products are exact and the same, and whether a second kernel has run.
fn combines<E: SpmmElement>(
    device: &Device,
    a: &CsMatI<(), u32, u32>,
    features: usize,
    options: SpmmOptions,
) -> bool {
    let whole = WholeProduct::<E>::new(a.view(), features, 3);
    let plan = Spmm::plan(device, whole.a(), options).unwrap();
    let text = plan.to_string();
    assert!(!text.contains(" 0 split rows"), "{text}");
    let log = device.log_launches();
    for run in 0..2 {
        let y = plan.multiply(whole.x().view()).unwrap();
        let checked = whole.verify(y.view());
        assert!(checked.ok(), "run {run}: {checked}: {plan}");
    }
    let launches = log.launches();
    launches.keys().any(|name| name.starts_with("spmm_combine"))
}

fn rows_are_joined_in_the_launch<E: SpmmElement>(features: usize) {
    for (long, size) in [(600, 5), (300, 16), (129, 33)] {
        let a = structure(400, long);
        for device in devices() {
            combines::<E>(&device, &a, features, tasks_of(size));
        }
        let combines = combines::<E>(&h200(), &a, features, tasks_of(size));
        assert!(!combines, "{features} features, tasks of {size}");
    }
}

#[test]
fn split_rows_of_a_small_matrix_are_joined_in_the_launch_that_multiplies() {
    rows_are_joined_in_the_launch::<f32>(32);
    rows_are_joined_in_the_launch::<f32>(7);
    rows_are_joined_in_the_launch::<f64>(32);
    rows_are_joined_in_the_launch::<f16>(64);
    rows_are_joined_in_the_launch::<bf16>(20);
}

#[test]
fn a_second_kernel_joins_rows_of_many_parts_wide_rows_and_means() {
    let device = h200();
    let (a, long) = (structure(200, 600), structure(200, 5_000));
    assert!(
        combines::<f32>(&device, &long, 32, tasks_of(16)),
        "40 parts"
    );
    assert!(combines::<f32>(&device, &a, 64, tasks_of(16)), "two tiles");
    let means = tasks_of(16).reduction(Reduction::Mean);
    let plan = Spmm::plan(
        &device,
        generate::rmat::<f32>(300, 9_000, [0.57, 0.19, 0.19, 0.05], 3)
            .unwrap()
            .view(),
        means,
    );
    let log = device.log_launches();
    plan.unwrap()
        .multiply(ndarray::Array2::ones((300, 32)).view())
        .unwrap();
    assert!(
        log.launches()
            .keys()
            .any(|name| name.starts_with("spmm_combine"))
    );
}

#[test]
fn a_plan_that_knows_the_features_of_a_small_matrix_multiplies_in_one_launch() {
    let skewed = generate::rmat::<f32>(3_000, 40_000, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
    let even = generate::uniform::<f32>(3_000, 3_000, 40_000, 3).unwrap();
    let long_row = super::plan::with_long_row(&even);
    let device = h200();
    for (a, features, kernel) in [
        (&skewed, 2, SpmmKernel::RowBins),
        (&long_row, 2, SpmmKernel::RowBins),
        (&long_row, 8, SpmmKernel::RowBins),
        (&skewed, 8, SpmmKernel::RowBins),
        (&skewed, 16, SpmmKernel::RowBins),
        (&skewed, 32, SpmmKernel::RowBins),
        (&skewed, 64, SpmmKernel::RowBins),
        (&even, 8, SpmmKernel::RowGroups),
        (&even, 16, SpmmKernel::RowGroups),
        (&even, 32, SpmmKernel::RowGroups),
    ] {
        let options = SpmmOptions::new().features(features);
        let plan = Spmm::plan(&device, a.view(), options).unwrap();
        assert_eq!(plan.kernel(), kernel, "{features} features: {plan}");
        let log = device.log_launches();
        let x = generate::dense::<f32>(3_000, features as usize, 5).unwrap();
        let y = plan.multiply(x.view()).unwrap();
        super::plan::assert_right(a.view(), x.view(), &y, &plan);
        let launches = log.launches();
        let products = launches
            .iter()
            .filter(|(name, _)| name.starts_with("spmm_"));
        let times: Vec<u64> = products.map(|(_, times)| *times).collect();
        assert_eq!(times, [1], "{features} features: {launches:?}");
    }
}
