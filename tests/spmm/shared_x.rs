//! The kernel `row_bins` with X in shared memory: exact products, the same bits in every run, and when a plan has it.

use super::few_features::structure;
use super::plan::{assert_right, assert_scaled_right};
use support::devices;
use warprow::device::{Checks, Device, DeviceProfile, EmulatorOptions};
use warprow::reference::WholeProduct;
use warprow::{
    CsrMatrix, Reduction, Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning, bf16, f16,
    generate,
};

fn bins(shared: bool) -> SpmmOptions {
    let tuning = SpmmTuning::new().kernel(SpmmKernel::RowBins);
    SpmmOptions::new().tuning(tuning.shared_x(shared))
}

fn has_shared_x<E: SpmmElement>(plan: &Spmm<E>, features: u32) -> bool {
    let entry_points = plan.entry_points(features);
    entry_points.iter().any(|name| name.contains("shared_x"))
}

/// Row lengths: of every bin, in more blocks than are resident; one row of many parts; all empty; one row.
fn row_lengths() -> Vec<Vec<usize>> {
    vec![
        (0..1_201).map(|row| row * row % 67).collect(),
        (0..400)
            .map(|row| if row == 123 { 1_011 } else { row % 150 })
            .collect(),
        vec![0; 300],
        vec![777],
    ]
}

fn is_exact<E: SpmmElement>(features: &[u32]) {
    for lengths in row_lengths() {
        for &features in features {
            let whole = WholeProduct::<E>::new(structure(&lengths).view(), features as usize, 3);
            for device in devices() {
                for longest in [37, 512] {
                    let plan = |shared| {
                        let options = bins(shared).map_tuning(|tuning| tuning.task_size(longest));
                        Spmm::<E>::plan(&device, whole.a(), options).unwrap()
                    };
                    let (shared, global) = (plan(true), plan(false));
                    assert!(has_shared_x(&shared, features), "{shared}");
                    assert!(!has_shared_x(&global, features), "{global}");
                    let y = shared.multiply(whole.x().view()).unwrap();
                    let checked = whole.verify(y.view());
                    assert!(
                        checked.is_exact(),
                        "{shared}, {features} features: {checked}"
                    );
                    // The counters of parts are 0 again.
                    let again = shared.multiply(whole.x().view()).unwrap();
                    assert_eq!(again, y, "other bits: {shared}");
                }
            }
        }
    }
}

/// Lanes load one, two and four elements. The bytes of X are not always a multiple of 16.
#[test]
fn products_are_exact_in_f32() {
    is_exact::<f32>(&[1, 2, 3, 4, 8, 14]);
}

#[test]
fn products_are_exact_in_f64() {
    is_exact::<f64>(&[1, 3, 4]);
}

#[test]
fn products_are_exact_in_16_bits() {
    is_exact::<f16>(&[1, 4, 7]);
    is_exact::<bf16>(&[3, 8]);
}

fn long_rows() -> CsrMatrix<f32> {
    generate::uniform(500, 300, 40_000, 5).unwrap()
}

#[test]
fn means_and_any_alpha_and_beta_are_right() {
    let a = long_rows();
    for device in devices() {
        for reduction in [Reduction::Sum, Reduction::Mean] {
            let plan = Spmm::plan(&device, a.view(), bins(true).reduction(reduction)).unwrap();
            assert!(has_shared_x(&plan, 6), "{plan}");
            assert_scaled_right(&plan, &a, reduction, 6);
        }
    }
}

/// Maxima have no kernel with X in shared memory, and an X that does not fit stays where it is.
#[test]
fn what_cannot_have_x_in_shared_memory_runs_without() {
    let a = long_rows();
    for device in devices() {
        let plan = Spmm::plan(&device, a.view(), bins(true).reduction(Reduction::Max)).unwrap();
        assert!(!has_shared_x(&plan, 4), "{plan}");
        let wide = generate::uniform::<f32>(500, 2_000, 40_000, 5).unwrap();
        let plan = Spmm::plan(&device, wide.view(), bins(true)).unwrap();
        let most = device.properties().max_shared_bytes_per_block / (2_000 * 4);
        assert!(has_shared_x(&plan, most), "{plan}");
        assert!(!has_shared_x(&plan, most + 1), "{plan}");
        let x = generate::dense::<f32>(2_000, most as usize + 1, 4).unwrap();
        assert_right(
            wide.view(),
            x.view(),
            &plan.multiply(x.view()).unwrap(),
            &plan,
        );
    }
}

/// On an H200: long rows and few columns. Short rows, or few nonzeros, do not repay the copy.
#[test]
fn plans_have_x_in_shared_memory_where_it_pays() {
    let options = EmulatorOptions::new().checks(Checks::BoundsOnly);
    let h200 = Device::emulator_of(&DeviceProfile::h200(), options);
    let plan = |a: &CsrMatrix<f32>, features| {
        let options = SpmmOptions::new().features(features);
        Spmm::plan(&h200, a.view(), options).unwrap()
    };
    let long = generate::uniform::<f32>(8_000, 12_000, 1_600_000, 5).unwrap();
    let found = plan(&long, 4);
    assert!(has_shared_x(&found, 4), "{found}");
    assert!(found.to_string().contains("X in shared memory"), "{found}");
    // One block for each multiprocessor.
    let launch = found.launch_config(4).unwrap().unwrap();
    assert_eq!((launch.grid.x, launch.block.x), (132, 1024));
    assert_eq!(launch.shared_bytes, 12_000 * 4 * 4);
    let x = generate::dense::<f32>(12_000, 4, 4).unwrap();
    assert_right(
        long.view(),
        x.view(),
        &found.multiply(x.view()).unwrap(),
        &found,
    );
    let short = generate::uniform::<f32>(30_000, 2_000, 600_000, 5).unwrap();
    let found = plan(&short, 4);
    assert!(!has_shared_x(&found, 4), "{found}");
    let few = generate::uniform::<f32>(500, 2_000, 60_000, 5).unwrap();
    let found = plan(&few, 16);
    assert!(!has_shared_x(&found, 16), "{found}");
}
