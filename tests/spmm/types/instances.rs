//! VectorInstances of the kernels: every product finds one, every one is found by a product, and all of them run.

use super::{cut, exact, kernels, run, whole, whole_dense};
use std::collections::BTreeSet;
use support::devices_in_turn;
use warprow::reference::Operation;
use warprow::spmm::RowOrder;
use warprow::{
    CsrMatrix, Device, Reduction, Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning, bf16, f16,
};
use warprow_kernels::spmm::product::{tasks, vector};
use warprow_kernels::spmm::{EpilogueKind, LaunchShape};

const EPILOGUES: [EpilogueKind; 4] = [
    EpilogueKind::Plain,
    EpilogueKind::AnyOrder,
    EpilogueKind::Added,
    EpilogueKind::Scaled,
];

const LANES: [u32; 4] = [4, 8, 16, 32];

fn shape(features: u32, lanes: u32) -> LaunchShape {
    LaunchShape {
        rows: 1000,
        items: 500,
        cols: 700,
        features,
        lanes,
        row_starts: 0,
        shared_x_blocks: 0,
    }
}

/// The entry points that `#[kernel]` registers for the general kernels, and for the rows that they leave in parts.
fn registered() -> BTreeSet<&'static str> {
    let ladder = ["spmm_combine_slices"];
    let general = [
        "spmm_vector",
        "spmm_in_step",
        "spmm_row_bins",
        "spmm_spmv",
        "spmm_combine",
    ];
    let is_one_of = |names: &[&str], name: &str| names.iter().any(|start| name.starts_with(start));
    cuda_std::kernel::instances()
        .map(|instance| instance.name())
        .filter(|name| is_one_of(&general, name) && !is_one_of(&ladder, name))
        .collect()
}

fn add_every_choice<E: SpmmElement>(chosen: &mut BTreeSet<&'static str>) {
    for &kernel in SpmmKernel::ALL {
        for &reduction in Reduction::ALL {
            if !kernel.capabilities().has::<E>(reduction) {
                continue;
            }
            for features in (1..300).chain([602, 1024, 4099]) {
                for (lanes, epilogue) in LANES
                    .into_iter()
                    .flat_map(|lanes| EPILOGUES.map(|epilogue| (lanes, epilogue)))
                {
                    // It panics where the kernel is not instantiated.
                    for shared_x_blocks in [0, 132] {
                        let shape = LaunchShape {
                            shared_x_blocks,
                            ..shape(features, lanes)
                        };
                        let handle = kernel.handle::<E>(shape, reduction, epilogue);
                        chosen.insert(handle.name());
                    }
                }
            }
        }
    }
    for &reduction in Reduction::ALL {
        chosen.insert(tasks::combine_handle::<E>(reduction).name());
    }
}

#[test]
fn every_product_finds_an_instance_and_every_instance_is_for_some_product() {
    let mut chosen = BTreeSet::new();
    in_every_type!(add_every_choice(&mut chosen));
    let unused: Vec<_> = registered().difference(&chosen).copied().collect();
    assert!(unused.is_empty(), "no product takes {unused:?}");
}

/// The kernel of the first block of columns has as many items a block of threads as that of the further ones, for
/// which split rows are listed.
fn blocks_of_columns_agree<E: SpmmElement>() {
    for reduction in [Reduction::Sum, Reduction::Mean] {
        for features in 1..300 {
            let loads = |epilogue| vector::loads::<E>(features, reduction, epilogue);
            for epilogue in EPILOGUES {
                let mut further = loads(EpilogueKind::Added).lane_counts().peekable();
                assert!(further.peek().is_some());
                for of_further in further {
                    let of_first = loads(epilogue).lanes_at_most(of_further).unwrap();
                    assert_eq!(
                        vector::items_of_block(of_first),
                        vector::items_of_block(of_further),
                        "{} with {features} features: {of_further} lanes, {epilogue:?} has {of_first}",
                        E::NAME
                    );
                }
            }
        }
    }
}

#[test]
fn the_kernel_of_the_first_block_of_columns_agrees_with_that_of_the_further_ones() {
    // Elements of 16 bits have no blocks of columns.
    blocks_of_columns_agree::<f32>();
    blocks_of_columns_agree::<f64>();
}

#[test]
fn a_lane_loads_as_many_vectors_as_make_few_tiles_and_few_loads_past_the_row() {
    // Features, lanes, loads of a lane: tiles of 32, 48, 64 and 128 features.
    let expected = [
        (7, 8, 2),
        (23, 16, 2),
        (41, 16, 3),
        (41, 32, 2),
        (65, 32, 4),
        (128, 32, 1),
        (101, 32, 4),
        // Three tiles of 64 instead of two of 128, of which the second one would be nearly empty.
        (155, 32, 2),
        (253, 32, 4),
        // Loads of two elements.
        (50, 32, 1),
        (66, 32, 2),
        (602, 32, 2),
    ];
    for (features, lanes, loads) in expected {
        let plain = vector::loads::<f32>(features, Reduction::Sum, EpilogueKind::Plain);
        let any_order = vector::loads::<f32>(features, Reduction::Sum, EpilogueKind::AnyOrder);
        assert_eq!(
            plain.passes(lanes),
            loads,
            "{features} features, {lanes} lanes"
        );
        if lanes == 32 {
            assert_eq!(
                any_order.passes(lanes),
                loads,
                "{features} features in any order"
            );
        }
    }
}

#[test]
fn only_kernels_that_store_sums_load_two_elements() {
    for features in [34, 50, 74, 602] {
        let width = |epilogue| vector::loads::<f32>(features, Reduction::Sum, epilogue).width();
        assert_eq!(width(EpilogueKind::Plain), 2);
        assert_eq!(width(EpilogueKind::AnyOrder), 2);
        assert_eq!(width(EpilogueKind::Scaled), 1);
        assert_eq!(width(EpilogueKind::Added), 1);
        let of_means = vector::loads::<f32>(features, Reduction::Mean, EpilogueKind::Scaled);
        assert_eq!(of_means.width(), 1);
    }
}

/// A row that 16-step tasks split into many parts, short rows and empty ones.
fn matrix<E: SpmmElement>() -> CsrMatrix<E> {
    let mut rows: Vec<Vec<u32>> = (0..24).map(|row| (0..(row * 7) % 13).collect()).collect();
    rows[11] = (0..150).collect();
    whole(&rows, 150)
}

/// A plan's product with each epilogue that it can have is exact; the entry points that ran are added to `ran`.
fn run_each_ending<E: SpmmElement>(
    device: &Device,
    features: usize,
    options: SpmmOptions,
    ran: &mut BTreeSet<&'static str>,
) {
    let a = matrix::<E>();
    let (x, y) = (
        whole_dense::<E>(a.cols(), features),
        whole_dense::<E>(a.rows(), features),
    );
    let plan = Spmm::plan(device, a.view(), options).unwrap();
    let width = features as u32;
    ran.extend(plan.entry_points(width));
    ran.insert(tasks::combine_handle::<E>(options.reduction).name());
    for (factors, epilogue) in [
        ([1.0, 0.0], None),
        ([1.0, 1.0], Some(EpilogueKind::Added)),
        ([2.0, -3.0], Some(EpilogueKind::Scaled)),
    ] {
        if let Some(epilogue) = epilogue {
            let shape = LaunchShape {
                shared_x_blocks: u32::from(options.tuning.shared_x == Some(true)),
                ..shape(width, options.tuning.lanes.unwrap_or(1))
            };
            let handle = (plan.kernel()).handle::<E>(shape, options.reduction, epilogue);
            ran.insert(handle.name());
        }
        let operation = Operation::new()
            .reduction(options.reduction)
            .alpha(factors[0])
            .beta(factors[1])
            .y(y.view());
        let found = run(&plan, x.view(), factors, y.view());
        assert_eq!(found, exact(operation, &a, &x), "{factors:?}, {plan}");
    }
}

fn run_every_choice<E: SpmmElement>(ran: &mut BTreeSet<&'static str>) {
    // Lanes load one, two and four elements.
    for (turn, features) in [7, 10, 12].into_iter().enumerate() {
        let shared = |tuning: SpmmTuning| tuning.kernel(SpmmKernel::RowBins).shared_x(true);
        for device in devices_in_turn(turn) {
            let options = cut(Reduction::Sum).map_tuning(shared);
            run_each_ending::<E>(&device, features, options, ran);
        }
    }
    for reduction in [Reduction::Sum, Reduction::Max] {
        for kernel in kernels(reduction) {
            // Only these have a choice of lanes.
            let lanes = match kernel {
                SpmmKernel::InStep => &LANES[..],
                SpmmKernel::Vector | SpmmKernel::RowGroups => &LANES[1..],
                _ => &LANES[1..2],
            };
            // Loads of one, two, four and eight elements, one to four of them for each lane; the most features are
            // whole cache lines and not.
            let widths = [7, 12, 23, 28, 36, 40, 41, 50, 74, 100, 101, 128];
            for (turn, features) in widths.into_iter().enumerate() {
                for &lanes in lanes {
                    let options =
                        cut(reduction).map_tuning(|tuning| tuning.kernel(kernel).lanes(lanes));
                    let orders = [RowOrder::Given, RowOrder::FirstColumn];
                    for (number, order) in orders.into_iter().enumerate() {
                        let options = options.map_tuning(|tuning| tuning.order(order));
                        // The emulators take turns with each order.
                        for device in devices_in_turn(turn + number) {
                            run_each_ending::<E>(&device, features, options, ran);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn all_instances_run_and_are_exact_where_rows_are_cut_and_in_another_order() {
    let mut ran = BTreeSet::new();
    in_every_type!(run_every_choice(&mut ran));
    let left: Vec<_> = registered().difference(&ran).copied().collect();
    assert!(left.is_empty(), "nothing ran {left:?}");
}
