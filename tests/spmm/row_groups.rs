//! The kernel `row_groups`: groups of each size, rows of all lengths, and what its repeated loads must not change.

use super::few_features::structure;
use super::plan::assert_scaled_right;
use ndarray::Array2;
use sprs::CsMatI;
use support::{devices, devices_in_turn};
use warprow::device::{Device, DeviceProfile, EmulatorOptions};
use warprow::reference::WholeProduct;
use warprow::{
    Reduction, RowOrder, Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning, bf16, f16,
    generate,
};

/// The lanes that a group may have.
const GROUPS: [u32; 5] = [2, 4, 8, 16, 32];

fn groups_of(lanes: u32) -> SpmmOptions {
    let tuning = SpmmTuning::new().kernel(SpmmKernel::RowGroups);
    SpmmOptions::new().tuning(tuning.lanes(lanes))
}

/// Row lengths: around each number of nonzeros that a group loads at a time, in more rows than some blocks have; all
/// empty; one row; empty rows between long ones.
fn row_lengths() -> Vec<Vec<usize>> {
    vec![
        (0..201).map(|row| row % 37).collect(),
        vec![127, 128, 129, 255, 256, 257, 0, 1, 63, 64, 65, 1_000],
        vec![0; 100],
        vec![77],
        (0..60)
            .map(|row| if row % 3 == 0 { 130 } else { 0 })
            .collect(),
    ]
}

fn is_exact<E: SpmmElement>(widths: &[usize]) {
    for (number, lengths) in row_lengths().into_iter().enumerate() {
        for (turn, &features) in widths.iter().enumerate() {
            let whole = WholeProduct::<E>::new(structure(&lengths).view(), features, 3);
            for device in devices_in_turn(number + turn) {
                let mut groups = vec![];
                for lanes in GROUPS {
                    let plan = Spmm::plan(&device, whole.a(), groups_of(lanes)).unwrap();
                    // A group has at least the lanes of a row of X.
                    let group = plan.lanes(features as u32);
                    if groups.contains(&group) {
                        continue;
                    }
                    groups.push(group);
                    let y = plan.multiply(whole.x().view()).unwrap();
                    let checked = whole.verify(y.view());
                    assert!(checked.is_exact(), "{plan}, {features} features: {checked}");
                    assert_eq!(
                        plan.multiply(whole.x().view()).unwrap(),
                        y,
                        "other bits: {plan}"
                    );
                }
                assert_eq!(groups.last(), Some(&Some(32)), "{features} features");
            }
        }
    }
}

#[test]
fn products_are_exact_however_long_rows_are_in_groups_of_each_size_and_in_every_type() {
    is_exact::<f32>(&[1, 2, 3, 4, 6, 8, 12, 16, 24, 31, 32, 33, 64, 130, 200]);
    is_exact::<f64>(&[1, 2, 4, 12, 31, 64, 130]);
    is_exact::<f16>(&[1, 2, 4, 6, 8, 24, 33, 64, 200]);
    is_exact::<bf16>(&[3, 8, 12, 16, 31, 32, 130]);
}

#[test]
fn groups_have_the_lanes_that_are_asked_for_or_those_of_a_row_of_x() {
    let a = generate::uniform::<f32>(1_000, 500, 9_000, 1).unwrap();
    for device in devices() {
        for (features, lanes, threads) in [
            (4, 1, (2, 64)),
            (4, 2, (2, 64)),
            (4, 4, (4, 32)),
            (4, 8, (8, 16)),
            (4, 12, (8, 16)),
            (4, 16, (16, 8)),
            (4, 32, (32, 4)),
            (8, 2, (2, 64)),
            (16, 2, (4, 32)),
            (32, 8, (8, 16)),
            (64, 8, (16, 8)),
            (200, 8, (32, 4)),
            (7, 8, (8, 16)),
            (31, 16, (32, 4)),
        ] {
            let plan = Spmm::<f32>::plan(&device, a.view(), groups_of(lanes)).unwrap();
            let config = plan.launch_config(features).unwrap().unwrap();
            assert_eq!(
                (config.block.x, config.block.y),
                threads,
                "{features} features"
            );
            assert_eq!(
                config.grid.count(),
                u128::from(1_000_u32.div_ceil(threads.1))
            );
            assert_eq!(plan.lanes(features as u32), Some(threads.0));
        }
    }
}

#[test]
fn means_orders_alpha_and_beta_are_right() {
    let a = generate::rmat::<f32>(700, 9_000, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
    for device in devices() {
        for (features, order) in [
            (2, RowOrder::Given),
            (6, RowOrder::Clustered),
            (32, RowOrder::FirstColumn),
        ] {
            for reduction in [Reduction::Sum, Reduction::Mean] {
                let options = groups_of(16)
                    .reduction(reduction)
                    .map_tuning(|tuning| tuning.order(order));
                let plan = Spmm::<f32>::plan(&device, a.view(), options).unwrap();
                assert_scaled_right(&plan, &a, reduction, features);
            }
        }
    }
}

/// Past a row's end, lanes load its last nonzero again. If its infinite product were multiplied by 0 there, it would be
/// NaN.
#[test]
fn an_infinite_last_product_of_a_row_stays_infinite() {
    assert_last_products_stay_infinite(&GROUPS.map(groups_of));
}

/// Plans with these options, on rows whose last product is infinite.
pub fn assert_last_products_stay_infinite(all_options: &[SpmmOptions]) {
    let lengths = [1, 3, 9, 33, 50];
    let (mut indptr, mut indices) = (vec![0_u32], vec![]);
    for length in lengths {
        indices.extend((0..length - 1).chain([50]));
        indptr.push(indices.len() as u32);
    }
    let values = vec![1.0_f32; indices.len()];
    let a = CsMatI::new((lengths.len(), 51), indptr, indices, values);
    for device in devices() {
        for features in [1, 2, 4, 8, 32] {
            let mut x = Array2::<f32>::ones((51, features));
            x.row_mut(50).fill(f32::INFINITY);
            for &options in all_options {
                let plan = Spmm::<f32>::plan(&device, a.view(), options).unwrap();
                let y = plan.multiply(x.view()).unwrap();
                assert!(y.iter().all(|&y| y == f32::INFINITY), "{plan}: {y}");
            }
        }
    }
}

/// The cost model has no times of `row_groups` for one feature, for more than 128, and in f32 for several tiles.
#[test]
fn the_kernel_has_no_prediction_for_many_features_but_is_right_if_it_is_asked_for() {
    let device = Device::emulator_of(&DeviceProfile::h200(), EmulatorOptions::default());
    for (features, is_predicted) in [(8, true), (64, true), (1, false), (33, false), (200, false)] {
        let whole = WholeProduct::<f32>::new(structure(&[9; 300]).view(), features, 3);
        let tuning = SpmmTuning::new().kernel(SpmmKernel::RowGroups);
        let options = SpmmOptions::new().tuning(tuning).features(features as u32);
        let plan = Spmm::plan(&device, whole.a(), options).unwrap();
        assert_eq!(plan.kernel(), SpmmKernel::RowGroups);
        assert_eq!(
            plan.prediction(features as u32).is_some(),
            is_predicted,
            "{plan}"
        );
        assert_eq!(
            plan.to_string().contains("predicted"),
            is_predicted,
            "{plan}"
        );
        let checked = whole.verify(plan.multiply(whole.x().view()).unwrap().view());
        assert!(checked.is_exact(), "{plan}: {checked}");
    }
}
