//! Teams of `in_step`: rows that several warps of a block compute, because they are long or to fill the device.

use super::types::{assert_verified, whole, whole_dense};
use sprs::CsMatI;
use std::iter;
use support::{cuda, devices};
use warprow::device::{Checks, Device, DeviceProfile, EmulatorOptions};
use warprow::reference::WholeProduct;
use warprow::spmm::RowOrder;
use warprow::{
    CsrMatrix, Reduction, Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning, bf16, f16,
};

/// Rows of 128 to 131 nonzeros, the first one empty, and the last but one of `long`.
fn structure(rows: usize, long: usize) -> CsMatI<(), u32, u32> {
    let cols = long.max(140);
    let (mut indptr, mut indices) = (vec![0], Vec::new());
    for row in 0..rows {
        let length = match row {
            0 => 0,
            _ if row + 2 == rows => long,
            _ => 128 + row % 4,
        };
        let first = row * 5 % (cols - length + 1);
        indices.extend((first..first + length).map(|col| col as u32));
        indptr.push(indices.len() as u32);
    }
    let data = vec![(); indices.len()];
    CsMatI::new((rows, cols), indptr, indices, data)
}

fn in_step() -> SpmmOptions {
    SpmmOptions::new().tuning(SpmmTuning::new().kernel(SpmmKernel::InStep))
}

fn h200() -> Device {
    Device::emulator_of(&DeviceProfile::h200(), EmulatorOptions::default())
}

/// Multiplies exactly, and returns what the plan says.
fn multiplies<E: SpmmElement>(
    device: &Device,
    a: &CsMatI<(), u32, u32>,
    features: usize,
    options: SpmmOptions,
) -> String {
    let product = WholeProduct::<E>::new(a.view(), features, 3);
    let plan = Spmm::plan(device, product.a(), options).unwrap();
    let checked = product.verify(plan.multiply(product.x().view()).unwrap().view());
    assert!(checked.ok(), "{checked}: {plan}");
    plan.to_string()
}

#[test]
fn rows_of_any_number_and_length_are_exact() {
    for device in devices() {
        for (rows, long) in [(2, 1), (3, 900), (5, 0), (8, 33), (131, 2_000)] {
            let a = structure(rows, long);
            for features in [3, 4, 12, 16, 28, 36, 64, 132] {
                multiplies::<f32>(&device, &a, features, in_step());
            }
            multiplies::<f64>(&device, &a, 16, in_step());
            multiplies::<f16>(&device, &a, 16, in_step());
            multiplies::<bf16>(&device, &a, 24, in_step());
        }
    }
}

#[test]
fn each_number_of_lanes_that_is_asked_for_is_exact() {
    for (number, device) in devices().into_iter().enumerate() {
        for (rows, long) in [(8, 33), (35, 900)] {
            let a = structure(rows, long);
            for features in [4, 20, 33, 36, 64, 132, 260] {
                let product = WholeProduct::<f32>::new(a.view(), features, 3);
                for (turn, lanes) in [0, 3, 4, 8, 16, 32, u32::MAX].into_iter().enumerate() {
                    let options = in_step().map_tuning(|tuning| tuning.lanes(lanes));
                    let known = options.features(features as u32);
                    // An emulator has one of the two plans, the other emulator the other one.
                    let which = (turn + number + features / 4) % 2;
                    let plans = match device.is_emulator() {
                        true => &[options, known][which..=which],
                        false => &[options, known],
                    };
                    for &options in plans {
                        let plan = Spmm::plan(&device, product.a(), options).unwrap();
                        let y = plan.multiply(product.x().view()).unwrap();
                        let checked = product.verify(y.view());
                        assert!(checked.ok(), "{checked}: {plan}");
                    }
                    let plan = Spmm::plan(&device, product.a(), known).unwrap();
                    let found = plan.entry_points(features as u32);
                    let has_instance = [4, 8, 16, 32].contains(&lanes) && features % 4 == 0;
                    if has_instance {
                        assert_eq!(found, [format!("spmm_in_step_f32_{lanes}_4_1")], "{plan}");
                    }
                }
            }
            let lanes = in_step().map_tuning(|tuning| tuning.lanes(32));
            multiplies::<f64>(&device, &a, 16, lanes);
            multiplies::<f16>(&device, &a, 16, lanes);
        }
    }
}

#[test]
fn rows_past_a_whole_wave_have_teams_if_the_plan_knows_the_features() {
    // An H200 runs 1056 blocks of four rows at the same time.
    let a = structure(4_300, 3_000);
    let knows = in_step().features(12);
    let text = multiplies::<f32>(&h200(), &a, 12, knows);
    assert!(
        text.contains("1 rows of more than 256 nonzeros with 4 each, 79 others with 4"),
        "{text}"
    );
    let text = multiplies::<f32>(&h200(), &a, 12, in_step());
    assert!(text.contains(", 1055 others with 4"), "{text}");
}

#[test]
fn all_rows_of_a_matrix_for_half_a_device_have_teams() {
    let text = multiplies::<f32>(&h200(), &structure(300, 200), 20, in_step().features(20));
    assert!(text.contains(", 300 others with 4"), "{text}");
}

/// An H200 of four multiprocessors: a wave has 60 to 180 rows.
fn small_h200() -> Device {
    let mut profile = DeviceProfile::h200();
    profile.hardware.multiprocessors = 4;
    Device::emulator_of(&profile, EmulatorOptions::default())
}

/// The short rows of a plan with teams of so many warps.
fn rows_with(warps: u32, plan: &str) -> usize {
    let end = format!(" others with {warps}");
    let rows = plan.split(&end).next().filter(|start| *start != plan);
    let rows = rows.and_then(|start| start.rsplit(", ").next());
    rows.map_or(0, |rows| rows.parse().unwrap_or_else(|_| panic!("{plan}")))
}

/// Checks that the plan gives some rows a warp each, and teams to more short rows than are left over by blocks of four.
fn assert_has_teams_for_the_last_wave(plan: &str, rows: usize) {
    let others = rows_with(2, plan) + rows_with(4, plan);
    assert!(others > 3 && others < rows / 2, "{plan}");
}

/// Checks that the plan gives two warps to all rows but those that are long or left over.
fn assert_has_pairs(plan: &str, rows: usize) {
    let pairs = rows_with(2, plan);
    assert!(pairs.is_multiple_of(2) && pairs + 3 >= rows, "{plan}");
}

#[test]
fn teams_of_the_last_wave_are_exact_in_several_tiles_of_features() {
    let device = small_h200();
    for (rows, features) in [(70, 128), (70, 200), (130, 65), (56, 260), (130, 129)] {
        let options = in_step().features(features as u32);
        let a = structure(rows, 700);
        let text = multiplies::<f32>(&device, &a, features, options);
        assert_has_teams_for_the_last_wave(&text, rows);
        let plan = Spmm::plan(
            &device,
            WholeProduct::<f32>::new(a.view(), 1, 3).a(),
            options,
        );
        let grid = plan.unwrap().launch_config(features).unwrap().unwrap().grid;
        assert!(grid.x > 8 && grid.y > 1, "{grid:?}");
    }
}

/// Checks that the plan gives one warp to most rows, and two to others, but no four if the plan knows the features.
fn assert_has_pairs_for_the_last_wave(plan: &str, rows: usize) {
    let (pairs, fours) = (rows_with(2, plan), rows_with(4, plan));
    assert!(pairs > 3 && pairs < rows / 2 && fours <= 1, "{plan}");
}

#[test]
fn pairs_of_a_last_wave_need_a_plan_that_knows_the_features() {
    let device = small_h200();
    let a = structure(180, 700);
    let knows = multiplies::<f32>(&device, &a, 16, in_step().features(16));
    assert_has_pairs_for_the_last_wave(&knows, 180);
    let does_not = multiplies::<f32>(&device, &a, 16, in_step());
    assert_eq!(rows_with(2, &does_not), 0, "{does_not}");
    assert!(rows_with(4, &does_not) > 3, "{does_not}");
}

/// `alpha R + beta Y` with teams, for sums and means, in the caller's and another order. `check` gets what a plan says,
/// and the number of rows.
fn teams_do_all<E: SpmmElement>(rows: usize, features: usize, check: fn(&str, usize)) {
    let device = small_h200();
    let structure = structure(rows, 700);
    let columns: Vec<_> = structure
        .outer_iterator()
        .map(|row| row.indices().to_vec())
        .collect();
    let a: CsrMatrix<E> = whole(&columns, structure.cols());
    let x = whole_dense::<E>(a.cols(), features);
    let y = whole_dense::<E>(rows, features);
    for reduction in [Reduction::Sum, Reduction::Mean] {
        for order in [RowOrder::Given, RowOrder::FirstColumn] {
            let options = in_step().features(features as u32).reduction(reduction);
            let options = options.map_tuning(|tuning| tuning.order(order));
            let plan = Spmm::plan(&device, a.view(), options).unwrap();
            check(&plan.to_string(), rows);
            for factors in [[1.0, 0.0], [1.0, 1.0], [2.0, -3.0], [0.0, 0.5]] {
                assert_verified(&plan, &a, x.view(), factors, y.view());
            }
        }
    }
}

#[test]
fn teams_of_the_last_wave_have_every_type_reduction_order_alpha_and_beta() {
    let check = assert_has_teams_for_the_last_wave;
    teams_do_all::<f32>(140, 16, check);
    teams_do_all::<f64>(70, 16, check);
    teams_do_all::<f64>(70, 64, check);
    teams_do_all::<f16>(180, 16, check);
    teams_do_all::<bf16>(180, 16, check);
    teams_do_all::<f16>(130, 72, check);
    teams_do_all::<bf16>(130, 72, check);
}

#[test]
fn teams_of_two_warps_have_every_type_reduction_order_alpha_and_beta() {
    teams_do_all::<f32>(180, 16, assert_has_pairs_for_the_last_wave);
    teams_do_all::<f32>(60, 16, assert_has_pairs);
    teams_do_all::<f32>(60, 33, assert_has_pairs);
    teams_do_all::<f32>(60, 64, assert_has_pairs);
    teams_do_all::<f32>(31, 200, assert_has_pairs);
    teams_do_all::<f64>(28, 16, assert_has_pairs);
    teams_do_all::<f16>(70, 16, assert_has_pairs);
    teams_do_all::<bf16>(26, 72, assert_has_pairs);
}

/// Tiles of 32 features, more of them than a grid has along y. With all checks of the emulator it takes a minute.
#[test]
fn rows_of_more_tiles_than_a_grid_has_are_exact() {
    let features = 65_535 * 32 + 4;
    let columns = [vec![0, 1, 2], vec![1], vec![], vec![0], vec![2]];
    let indptr = columns.iter().scan(0, |end, row| {
        *end += row.len() as u32;
        Some(*end)
    });
    let indptr: Vec<u32> = [0].into_iter().chain(indptr).collect();
    let indices = columns.concat();
    let a = CsMatI::new((5, 3), indptr, indices, vec![(); 6]);
    // Rows of more than one nonzero have teams.
    let options = in_step().map_tuning(|tuning| tuning.task_size(1));
    let emulator = Device::emulator(EmulatorOptions::new().checks(Checks::BoundsOnly));
    for device in iter::once(emulator).chain(cuda()) {
        let text = multiplies::<f16>(&device, &a, features, options);
        assert!(
            text.contains("1 rows of more than 1 nonzeros with 4 each"),
            "{text}"
        );
    }
}
