//! The kernel `row_bins`: bins of each size, rows that are cut into parts, and what the sorting must not change.

use super::few_features::structure;
use super::plan::assert_scaled_right;
use super::row_groups::assert_last_products_stay_infinite;
use ndarray::Array2;
use support::devices;
use warprow::reference::WholeProduct;
use warprow::{
    Reduction, RowOrder, Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning, bf16, f16,
    generate,
};

fn bins() -> SpmmOptions {
    SpmmOptions::new().tuning(SpmmTuning::new().kernel(SpmmKernel::RowBins))
}

/// With rows of more than `longest` nonzeros cut.
fn cut_at(longest: u32) -> SpmmOptions {
    bins().map_tuning(|tuning| tuning.task_size(longest))
}

/// Row lengths: of every bin, in more rows than some blocks have; around the lengths of parts; one row of many parts
/// among short ones; all empty; one row; empty rows between long ones.
fn row_lengths() -> Vec<Vec<usize>> {
    vec![
        (0..401).map(|row| row * row % 67).collect(),
        vec![127, 128, 129, 255, 256, 257, 0, 1, 63, 64, 65, 1_000],
        (0..400)
            .map(|row| if row == 123 { 3_011 } else { row % 9 })
            .collect(),
        vec![0; 300],
        vec![777],
        (0..60)
            .map(|row| if row % 3 == 0 { 150 } else { 0 })
            .collect(),
    ]
}

fn is_exact<E: SpmmElement>(features: &[usize]) {
    for lengths in row_lengths() {
        for &features in features {
            let whole = WholeProduct::<E>::new(structure(&lengths).view(), features, 3);
            for device in devices() {
                for options in [bins(), cut_at(37), cut_at(u32::MAX)] {
                    let plan = Spmm::plan(&device, whole.a(), options).unwrap();
                    assert_eq!(plan.kernel(), SpmmKernel::RowBins);
                    let y = plan.multiply(whole.x().view()).unwrap();
                    let checked = whole.verify(y.view());
                    assert!(checked.is_exact(), "{plan}, {features} features: {checked}");
                    // The counters of parts are 0 again.
                    let again = plan.multiply(whole.x().view()).unwrap();
                    assert_eq!(again, y, "other bits: {plan}");
                }
            }
        }
    }
}

#[test]
fn products_are_exact_however_long_rows_and_parts_are_in_f32() {
    is_exact::<f32>(&[1, 2, 4, 6, 8, 31, 130]);
}

#[test]
fn products_are_exact_however_long_rows_and_parts_are_in_f64() {
    is_exact::<f64>(&[1, 2, 8, 33]);
}

#[test]
fn products_are_exact_however_long_rows_and_parts_are_in_16_bits() {
    is_exact::<f16>(&[3, 4, 33]);
    is_exact::<bf16>(&[8]);
}

/// The blocks of all bins: rows with 32 lanes, and so on. A nonzero has 1, 2, 4 or 8 lanes with 4, 8, 16 or 32
/// features, and 32 with 128.
#[test]
fn bins_have_whole_blocks_of_groups_that_suit_their_rows() {
    // 1000 rows of 1 nonzero, 500 of 6, 100 of 20, 10 of 64, and one of 1000 nonzeros.
    let lengths = [(1_000, 1), (500, 6), (100, 20), (10, 64), (1, 1_000)];
    let lengths = lengths
        .map(|(rows, nonzeros)| vec![nonzeros; rows])
        .concat();
    let whole = WholeProduct::<f32>::new(structure(&lengths).view(), 4, 3);
    for device in devices() {
        let plan = Spmm::<f32>::plan(&device, whole.a(), cut_at(256)).unwrap();
        assert!(
            plan.to_string().contains(
                "1614 rows and parts of rows, 1 rows of more than 256 nonzeros in 4 parts"
            ),
            "{plan}"
        );
        for (features, blocks) in [
            // 14 groups of 32 lanes, 100 of 8, 500 of 2, and 1000 of 1.
            (4, 4 + 7 + 8 + 8),
            // Twice as many lanes for each row.
            (8, 4 + 13 + 16 + 16),
            // 100 groups of 16 lanes, and 1500 of 4 or 8.
            (16, 4 + 13 + 47),
            (32, 4 + 13 + 94),
            // Of 32 lanes all.
            (128, 404),
        ] {
            let config = plan.launch_config(features).unwrap().unwrap();
            assert_eq!(config.block.x, 128);
            assert_eq!(config.grid.x, blocks, "{features} features");
        }
    }
}

/// One and a half waves of warps: with 16 lanes a row they are one. Shorter rows have no more lanes.
#[test]
fn long_rows_of_a_few_waves_have_fewer_lanes() {
    for device in devices() {
        let warps = 48 * device.properties().multiprocessors as usize;
        let lengths = [vec![150; warps + warps / 2], vec![100; 8]].concat();
        let whole = WholeProduct::<f32>::new(structure(&lengths).view(), 8, 3);
        let plan = Spmm::<f32>::plan(&device, whole.a(), cut_at(512)).unwrap();
        let config = plan.launch_config(8).unwrap().unwrap();
        // A block has 8 groups of 16 lanes.
        assert_eq!(config.grid.x as usize, lengths.len().div_ceil(8), "{plan}");
        let checked = whole.verify(plan.multiply(whole.x().view()).unwrap().view());
        assert!(checked.is_exact(), "{plan}: {checked}");
        // With 2 lanes a nonzero, 8 lanes have the features of a nonzero each.
        let depth = plan.summation_depth(150, 8);
        assert!((150_usize.div_ceil(8)..150).contains(&depth), "{depth}");
    }
}

/// One plan, wider and narrower X: the room for partial sums grows, and counters are shared.
#[test]
fn a_plan_with_parts_multiplies_x_of_any_width_in_turn() {
    let lengths: Vec<usize> = (0..300)
        .map(|row| if row % 50 == 7 { 700 } else { row % 9 })
        .collect();
    let structure = structure(&lengths);
    for device in devices() {
        let values = WholeProduct::<f32>::new(structure.view(), 1, 3);
        let plan = Spmm::<f32>::plan(&device, values.a(), cut_at(64)).unwrap();
        for features in [4, 64, 3, 130, 8, 1] {
            let whole = WholeProduct::<f32>::new(structure.view(), features, 3);
            assert_eq!(whole.a(), values.a());
            let checked = whole.verify(plan.multiply(whole.x().view()).unwrap().view());
            assert!(checked.is_exact(), "{plan}, {features} features: {checked}");
        }
    }
}

#[test]
fn reductions_orders_alpha_and_beta_are_right() {
    let a = generate::rmat::<f32>(700, 9_000, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
    for device in devices() {
        for (features, order, options) in [
            (1, RowOrder::Clustered, cut_at(64)),
            (2, RowOrder::Given, cut_at(16)),
            (6, RowOrder::Clustered, bins()),
            (32, RowOrder::FirstColumn, cut_at(100)),
        ] {
            for &reduction in Reduction::ALL {
                let options = options
                    .reduction(reduction)
                    .map_tuning(|tuning| tuning.order(order));
                let plan = Spmm::<f32>::plan(&device, a.view(), options).unwrap();
                assert_scaled_right(&plan, &a, reduction, features);
            }
        }
    }
}

/// Empty rows are zeros, also among rows whose greatest product is negative, and where the long ones are cut.
#[test]
fn maxima_of_negative_products_and_of_empty_rows_are_right() {
    let lengths: Vec<usize> = (0..200).map(|row| [0, 3, 40, 300][row % 4]).collect();
    let structure = structure(&lengths);
    let negative = structure.map(|()| -1.5_f64);
    for device in devices() {
        for features in [1, 5, 16] {
            let x = Array2::from_shape_fn((structure.cols(), features), |(row, _)| {
                1.0 + (row % 7) as f64
            });
            for options in [bins(), cut_at(32)] {
                let options = options.reduction(Reduction::Max);
                let plan = Spmm::<f64>::plan(&device, negative.view(), options).unwrap();
                let y = plan.multiply(x.view()).unwrap();
                for (row, y) in y.outer_iter().enumerate() {
                    let columns = negative.outer_view(row).unwrap();
                    let columns = columns.indices().iter();
                    let wanted = columns.map(|&col| -1.5 * x[[col as usize, 0]]);
                    let wanted = wanted.reduce(f64::max).unwrap_or(0.0);
                    assert!(y.iter().all(|&y| y == wanted), "row {row} of {plan}: {y}");
                }
            }
        }
    }
}

#[test]
fn an_infinite_last_product_of_a_row_stays_infinite() {
    assert_last_products_stay_infinite(&[bins(), cut_at(8)]);
}
