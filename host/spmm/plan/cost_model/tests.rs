//! Tests of the cost model: on profiles of GPUs, for matrices that are described by their statistics.

mod few_rows;
mod in_phase;
mod random_accesses;
mod rows_in_step;
mod short_rows;
mod types;

use super::candidate::FeatureRow;
use super::*;
use crate::device::{DeviceProfile, EmulatorOptions};
use crate::spmm::plan::columns::Columns;
use crate::spmm::plan::length_bins::LengthBins;
use crate::spmm::plan::locality::Localities;
use cuda_std::kernel::{Kernel, KernelArgs};
use cuda_std::launch::LaunchConfig;
use std::collections::BTreeSet;
use warprow_kernels::spmm::product::{in_step, vector};
use warprow_kernels::spmm::{EpilogueKind, LaunchShape, Reduction};

fn model(profile: &DeviceProfile) -> CostModel {
    let device = Device::emulator_of(profile, EmulatorOptions::default());
    CostModel::of(&device).unwrap()
}

/// A square matrix whose rows and columns have `mean_row` nonzeros each.
fn even(rows: u32, mean_row: u32) -> Statistics {
    Statistics {
        rows,
        cols: rows,
        nonzeros: rows * mean_row,
        longest_row: 2 * mean_row,
        lengths: LengthBins::even(rows, rows * mean_row),
        columns: Columns::even(rows, rows * mean_row),
        locality: Localities::NONE,
        distinct_share: 1.0,
        variation: Some(0.3),
        is_ordered: false,
        are_assumed: false,
    }
}

fn row(features: u32) -> FeatureRow {
    FeatureRow::new::<f32>(features, Reduction::Sum, EpilogueKind::Plain)
}

/// All candidates for so many features.
fn candidates(features: u32) -> Vec<Candidate> {
    let row = row(features);
    let mut all: Vec<Candidate> = row.in_step(None).collect();
    all.extend(row.spmv());
    all.extend(row.row_bins());
    all.extend(row.row_groups());
    for blocks in [1, 2, 8] {
        let lanes = row.loads(blocks).lane_counts();
        all.extend(lanes.map(|lanes| row.vector(lanes, blocks)));
    }
    all
}

#[test]
fn times_are_positive_and_finite_for_all_candidates_gpus_and_shapes() {
    for profile in DeviceProfile::all() {
        let model = model(&profile);
        for a in [
            even(0, 0),
            even(1, 1),
            even(9, 0),
            even(1000, 30),
            even(3_000_000, 100),
        ] {
            for candidate in [1, 16, 33, 64, 100, 512].into_iter().flat_map(candidates) {
                let seconds = model.predict(&a, &candidate).seconds;
                assert!(
                    seconds > 0.0 && seconds.is_finite(),
                    "{candidate:?}: {seconds}"
                );
            }
        }
    }
}

#[test]
fn more_nonzeros_and_more_features_never_take_less_time() {
    let model = model(&DeviceProfile::h200());
    let time = |a: &Statistics, features: u32, lanes| {
        model.predict(a, &row(features).vector(lanes, 1)).seconds
    };
    for lanes in [8, 16, 32] {
        let mut before = 0.0;
        for mean_row in [1, 3, 10, 40, 160] {
            let now = time(&even(200_000, mean_row), 64, lanes);
            assert!(now >= before, "{mean_row} nonzeros a row, {lanes} lanes");
            before = now;
        }
        before = 0.0;
        for features in [32, 64, 128, 256, 512] {
            let now = time(&even(200_000, 20), features, lanes);
            assert!(now >= before, "{features} features, {lanes} lanes");
            before = now;
        }
    }
}

#[test]
fn tasks_that_all_run_at_the_same_time_take_longer_the_more_steps_they_have() {
    let model = model(&DeviceProfile::h200());
    let seconds = |rows| {
        let vector = row(51).vector(32, 1);
        model.predict(&even(rows, 3), &vector).seconds
    };
    let of_128_steps = STEPS * FITTED.cycles_per_step / model.gpu.clock;
    assert!(seconds(2_000) < model.gpu.launch_seconds + 0.7 * of_128_steps);
    assert!(seconds(90_000) > seconds(20_000));
    // At 122,000 rows there are more tasks than run at the same time. The time does not jump there.
    let mut before = seconds(1_000);
    for rows in (2_000..200_000).step_by(1_000) {
        let now = seconds(rows);
        assert!(
            now >= before && now < 1.1 * before,
            "{rows} rows: {now}, {before} before"
        );
        before = now;
    }
}

#[test]
fn resident_tasks_take_the_cycles_of_their_steps_in_all_tiles_and_of_16_at_least() {
    let model = model(&DeviceProfile::h200());
    let vector = row(256).vector(8, 1);
    let tiles = f64::from(256_u32.div_ceil(vector.tile));
    assert!(tiles > 1.0);
    let slots = model.gpu.multiprocessors * vector.resident_warps() * 4.0;
    let of_128_steps = STEPS * FITTED.cycles_per_step / model.gpu.clock;
    for (steps, wanted) in [
        (1.0, 0.51),
        (16.0, 0.51),
        (64.0, 0.72),
        (127.0, 0.996),
        (129.0, 1.008),
        (256.0, 2.0),
    ] {
        // A row of 6 nonzeros has 8 steps.
        let a = even((steps * slots / tiles / 8.0) as u32, 6);
        let found = Product::new(&model, &a, &vector).latency_seconds() / of_128_steps;
        assert!((found - wanted).abs() < 0.01, "{steps} steps: {found}");
    }
}

#[test]
fn a_faster_memory_never_takes_more_time() {
    let (slow, fast) = (model(&DeviceProfile::h100()), model(&DeviceProfile::h200()));
    for candidate in [16, 64, 100, 256].into_iter().flat_map(candidates) {
        for a in [even(1000, 30), even(1_000_000, 20)] {
            assert!(
                fast.predict(&a, &candidate).seconds <= slow.predict(&a, &candidate).seconds,
                "{candidate:?}"
            );
        }
    }
}

#[test]
fn an_l2_cache_in_two_partitions_never_takes_less_time() {
    let mut undivided = DeviceProfile::h200();
    undivided.rates.l2_partitions = 1;
    let (one, two) = (model(&undivided), model(&DeviceProfile::h200()));
    let mut differ = 0;
    for candidate in [16, 64, 100, 256].into_iter().flat_map(candidates) {
        for a in [even(1000, 30), even(1_000_000, 20)] {
            let [one, two] = [&one, &two].map(|model| model.predict(&a, &candidate).seconds);
            assert!(one <= two, "{candidate:?}: {one}, {two}");
            differ += u32::from(one < two);
        }
    }
    assert!(differ > 20, "{differ}");
}

#[test]
fn rows_that_share_columns_never_take_more_time() {
    let model = model(&DeviceProfile::h100());
    let a = even(1_000_000, 20);
    let local = Statistics {
        locality: Localities {
            near: 0.6,
            middle: 0.4,
            far: 0.2,
        },
        ..a.clone()
    };
    for candidate in [16, 64, 100, 256].into_iter().flat_map(candidates) {
        assert!(
            model.predict(&local, &candidate).seconds <= model.predict(&a, &candidate).seconds,
            "{candidate:?}"
        );
    }
}

#[test]
fn the_bound_is_that_of_the_resource_which_a_matrix_needs_most() {
    let bound = |profile: &DeviceProfile, a: &Statistics| {
        model(profile).predict(a, &row(256).vector(32, 1)).bound
    };
    let h200 = DeviceProfile::h200();
    assert_eq!(bound(&h200, &even(4_000_000, 10)), Bound::Memory);
    // The tasks of `vector` take longer than a launch, however few there are.
    let in_step = row(256).in_step(Some(32)).next().unwrap();
    let of_few = model(&h200).predict(&even(2, 1), &in_step);
    assert_eq!(of_few.bound, Bound::Launches);
    // The L2 cache holds all of X, the L1 cache a small part.
    let far_apart = even(20_000, 200);
    assert_eq!(bound(&h200, &far_apart), Bound::L2);
    let near = Localities {
        near: 0.2,
        middle: 0.1,
        far: 0.1,
    };
    let sharing = Statistics {
        locality: near,
        ..far_apart
    };
    assert_eq!(bound(&h200, &sharing), Bound::L1);
    let mut slow = h200;
    slow.rates.l2_bytes_per_second = slow.rates.l2_bytes_per_second.map(|rate| rate / 4);
    assert_eq!(bound(&slow, &sharing), Bound::L2);
}

#[test]
fn row_groups_takes_no_less_time_for_a_longer_row_or_rows_that_vary_more() {
    let model = model(&DeviceProfile::h200());
    for a in [even(1000, 30), even(200_000, 6), even(1_000_000, 20)] {
        for candidate in [2, 8, 16, 32, 50, 64]
            .into_iter()
            .flat_map(|wide| row(wide).row_groups())
        {
            let time = |a: &Statistics| model.predict(a, &candidate).seconds;
            let of_longest = [50, 100, 1_000, 10_000, 1_000_000].map(|longest_row| {
                time(&Statistics {
                    longest_row,
                    ..a.clone()
                })
            });
            let of_variation = [0.0, 0.1, 0.5, 1.0, 3.0].map(|variation| {
                time(&Statistics {
                    variation: Some(variation),
                    ..a.clone()
                })
            });
            for times in [of_longest, of_variation] {
                assert!(times.is_sorted(), "{candidate:?}: {times:?}");
            }
            assert!(
                of_longest[4] > 2.0 * of_longest[0],
                "{candidate:?}: {of_longest:?}"
            );
            // Only where rows share a warp do they wait for one another.
            let longest_of_warp = |variation| {
                let a = Statistics {
                    variation: Some(variation),
                    ..a.clone()
                };
                Product::new(&model, &a, &candidate).longest_of_warp()
            };
            assert_eq!(
                longest_of_warp(3.0) > longest_of_warp(0.0),
                candidate.group < 32,
                "{candidate:?}"
            );
        }
    }
}

#[test]
fn an_h200_has_the_l2_rate_that_the_constants_were_fitted_with() {
    let relative = model(&DeviceProfile::h200()).gpu.relative_l2_rate;
    assert!((relative - 1.0).abs() < 1e-3, "{relative}");
    let mut slow = DeviceProfile::h200();
    slow.rates.l2_bytes_per_second = slow.rates.l2_bytes_per_second.map(|rate| rate / 2);
    slow.rates.launch_nanoseconds = Some(9_000);
    let seconds = |profile: &DeviceProfile, a: &Statistics| {
        model(profile).predict(a, &row(256).vector(32, 1)).seconds
    };
    for a in [even(2, 1), even(20_000, 200)] {
        assert!(seconds(&slow, &a) > seconds(&DeviceProfile::h200(), &a));
    }
}

#[test]
fn measuring_costs_more_for_more_candidates_and_longer_runs() {
    assert!(CostModel::measuring_seconds(3, 1e-3) > CostModel::measuring_seconds(2, 1e-3));
    assert!(CostModel::measuring_seconds(2, 2e-3) > CostModel::measuring_seconds(2, 1e-3));
}

#[test]
fn the_resident_warps_of_vector_and_in_step_are_those_that_the_registers_of_their_kernels_allow() {
    let device = Device::emulator_of(&DeviceProfile::h200(), EmulatorOptions::default());
    let mut compared = BTreeSet::new();
    for features in 1..=300 {
        let row = row(features);
        let shape = |lanes| LaunchShape {
            rows: 1,
            items: 1,
            cols: 1,
            features,
            lanes,
            row_starts: 0,
            shared_x_blocks: 0,
        };
        for (blocks, epilogue) in [
            (1, EpilogueKind::Plain),
            (1, EpilogueKind::AnyOrder),
            (1, EpilogueKind::Scaled),
            (2, EpilogueKind::Added),
        ] {
            let row = FeatureRow::new::<f32>(features, Reduction::Sum, epilogue);
            for lanes in row.loads(blocks).lane_counts() {
                let kernel = vector::handle::<f32>(shape(lanes), Reduction::Sum, epilogue);
                let config = vector::launch::<f32>(shape(lanes), Reduction::Sum, epilogue);
                let warps = resident_warps(&device, &kernel, &config);
                let candidate = row.vector(lanes, blocks);
                let tiles = features.div_ceil(candidate.tile);
                assert_eq!(
                    tiles,
                    config.grid.y,
                    "{}, {features} features",
                    kernel.name()
                );
                assert_eq!(candidate.resident_warps(), warps, "{}", kernel.name());
                compared.insert(kernel.name());
            }
        }
        for candidate in row.in_step(None) {
            let shape = shape(candidate.lanes);
            let kernel = in_step::handle::<f32>(shape, Reduction::Sum, EpilogueKind::Plain);
            let config = in_step::launch::<f32>(shape, Reduction::Sum, EpilogueKind::Plain);
            let warps = resident_warps(&device, &kernel, &config);
            assert_eq!(candidate.resident_warps(), warps, "{}", kernel.name());
            compared.insert(kernel.name());
        }
    }
    let starts = [
        "spmm_vector_f32_",
        "spmm_vector_added_f32_",
        "spmm_vector_any_order_f32_",
        "spmm_vector_scaled_f32_",
        "spmm_in_step_f32_",
    ];
    let all = cuda_std::kernel::instances().map(|instance| instance.name());
    let all: BTreeSet<_> = all
        .filter(|name| starts.iter().any(|start| name.starts_with(start)))
        .collect();
    assert_eq!(compared, all);
}

/// The warps of a kernel that a multiprocessor of an emulated GPU runs at the same time.
fn resident_warps<A: KernelArgs>(
    device: &Device,
    kernel: &Kernel<A>,
    config: &LaunchConfig,
) -> f64 {
    let blocks = device.resident_blocks(kernel, config).unwrap().unwrap();
    let warps = blocks * u64::from(config.block.x / 32);
    warps as f64 / f64::from(device.properties().multiprocessors)
}
