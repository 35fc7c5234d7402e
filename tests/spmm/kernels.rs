//! Every SpMM kernel of the table, on every device, on the matrices that kernels get wrong: a very long row, empty
//! rows and columns, sums that cancel, infinities, more features than a grid has tiles; and on any matrix at all.

use crate::has_sized_items;
use ndarray::{Array2, ArrayView2};
use proptest::prelude::*;
use sprs::CsMatI;
use warprow::device::{Checks, Device, EmulatorOptions};
use warprow::reference::{self, verify_spmm};
use warprow::spmm::Reduction;
use warprow::{CsrMatrix, Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning, generate};
use warprow_kernels::spmm::ItemKind;

/// The product by each kernel that has the type, on each device, and where it was made.
fn products<T: SpmmElement>(a: &CsrMatrix<T>, x: ArrayView2<'_, T>) -> Vec<(Array2<T>, String)> {
    products_on(|_| support::devices(), a, x)
}

/// As [`products`], but each kernel on one emulator, which the next turn changes; and on the GPU.
fn products_in_turn<T: SpmmElement>(
    turn: usize,
    a: &CsrMatrix<T>,
    x: ArrayView2<'_, T>,
) -> Vec<(Array2<T>, String)> {
    products_on(|kernel| support::devices_in_turn(turn + kernel), a, x)
}

/// As [`products`], on these devices for the kernel of a number.
fn products_on<T: SpmmElement>(
    devices: impl Fn(usize) -> Vec<Device>,
    a: &CsrMatrix<T>,
    x: ArrayView2<'_, T>,
) -> Vec<(Array2<T>, String)> {
    let has_type = |kernel: &&SpmmKernel| kernel.capabilities().has::<T>(Reduction::Sum);
    let mut products = Vec::new();
    for (number, &kernel) in SpmmKernel::ALL.iter().filter(has_type).enumerate() {
        for device in devices(number) {
            products.push((
                product(&device, kernel, a, x),
                format!("{} on {device}", kernel.name()),
            ));
        }
    }
    products
}

fn product<T: SpmmElement>(
    device: &Device,
    kernel: SpmmKernel,
    a: &CsrMatrix<T>,
    x: ArrayView2<'_, T>,
) -> Array2<T> {
    let options = SpmmOptions::new().tuning(SpmmTuning::new().kernel(kernel));
    Spmm::plan(device, a.view(), options)
        .and_then(|spmm| spmm.multiply(x))
        .unwrap_or_else(|error| panic!("{} on {device}: {error}", kernel.name()))
}

/// A matrix of small whole numbers: its products are exact in f32, in whatever order they are added up.
fn whole(rows: &[Vec<u32>], cols: u32) -> CsrMatrix<f32> {
    let mut indptr = vec![0_u32];
    let mut indices = Vec::new();
    for row in rows {
        indices.extend(row);
        indptr.push(indices.len() as u32);
    }
    let values = (0..indices.len()).map(|k| (k % 7) as f32 - 3.0).collect();
    CsMatI::new((rows.len(), cols as usize), indptr, indices, values)
}

fn whole_dense(rows: usize, cols: usize) -> Array2<f32> {
    Array2::from_shape_fn((rows, cols), |(i, j)| ((i * 31 + j * 17) % 11) as f32 - 5.0)
}

#[test]
fn one_very_long_row_among_empty_and_short_ones_is_exact() {
    let cols = 5_000;
    let mut rows: Vec<Vec<u32>> = (0..300)
        .map(|i| (0..i % 4).map(|k| 16 * i + k).collect())
        .collect();
    rows[137] = (0..cols).collect();
    rows[299] = Vec::new();
    let a = whole(&rows, cols);
    let x = whole_dense(cols as usize, 33);
    let expected = reference::spmm(a.view(), x.view());
    for (y, made) in products(&a, x.view()) {
        assert_eq!(y.mapv(f64::from), expected, "{made}");
    }
}

#[test]
fn every_number_of_features_around_a_tile_is_exact() {
    let rows: Vec<Vec<u32>> = (0..70)
        .map(|i| (0..(i * i) % 45).map(|k| (k * 2 + i % 2) % 90).collect())
        .map(|mut row: Vec<u32>| {
            row.sort_unstable();
            row.dedup();
            row
        })
        .collect();
    let a = whole(&rows, 90);
    let widths = [
        1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 130, 257,
    ];
    for (turn, features) in widths.into_iter().enumerate() {
        let x = whole_dense(90, features);
        let expected = reference::spmm(a.view(), x.view());
        for (y, made) in products_in_turn(turn, &a, x.view()) {
            assert_eq!(y.mapv(f64::from), expected, "{features} features, {made}");
        }
    }
}

#[test]
fn tasks_and_slices_of_every_size_give_exact_sums_however_rows_are_cut() {
    let mut rows: Vec<Vec<u32>> = (0..60).map(|i| (0..(i * 7) % 23).collect()).collect();
    rows[3] = (0..300).collect();
    rows[4] = (0..64).collect();
    rows[59] = (5..150).collect();
    let short = whole(&rows, 300);
    // Many short rows among some long ones, and long rows throughout.
    let dense: Vec<Vec<u32>> = (0..13).map(|i| (0..(i * 37) % 191).collect()).collect();
    let long = whole(&dense, 300);
    assert!(short.nnz() < 32 * short.rows() && long.nnz() > 32 * long.rows());
    for (a, features) in [
        (&short, 4),
        (&short, 33),
        (&long, 4),
        (&long, 32),
        (&long, 7),
    ] {
        let x = whole_dense(300, features);
        let expected = reference::spmm(a.view(), x.view());
        for device in support::devices() {
            for &kernel in SpmmKernel::ALL {
                if !has_sized_items(kernel) {
                    continue;
                }
                for size in [1, 2, 7, 63, 64, 65, 1 << 20, u32::MAX] {
                    let options =
                        SpmmOptions::new().tuning(SpmmTuning::new().kernel(kernel).task_size(size));
                    let plan = Spmm::plan(&device, a.view(), options).unwrap();
                    let y = plan.multiply(x.view()).unwrap();
                    assert_eq!(y.mapv(f64::from), expected, "{plan}");
                    // Every row is cut, a few are, and none is.
                    if ![1, 64, u32::MAX].contains(&size) {
                        continue;
                    }
                    assert_eq!(plan.multiply(x.view()).unwrap(), y, "a second run: {plan}");
                    if kernel.items() != ItemKind::Tasks {
                        continue;
                    }
                    for lanes in [8, 16, 32] {
                        let options =
                            options.map_tuning(|tuning| tuning.join_tasks(true).lanes(lanes));
                        let plan = Spmm::plan(&device, a.view(), options).unwrap();
                        let y = plan.multiply(x.view()).unwrap();
                        assert_eq!(y.mapv(f64::from), expected, "joined, {lanes} lanes: {plan}");
                    }
                }
            }
        }
    }
}

#[test]
fn items_of_two_four_and_eight_tasks_give_exact_sums() {
    // Every row is split, whatever the size; there are many tasks, so that each size of items is chosen somewhere on
    // every device.
    let dense: Vec<Vec<u32>> = (0..128)
        .map(|i| (i..i + 100).map(|col| col * 7 % 300).collect())
        .collect();
    let sorted = dense.into_iter().map(|mut row| {
        row.sort_unstable();
        row
    });
    let a = whole(&sorted.collect::<Vec<_>>(), 300);
    for device in support::devices() {
        let mut seen = [false; 3];
        for (lanes, features, size) in [
            (32, 640, 1),
            (32, 640, 4),
            (32, 256, 1),
            (32, 128, 1),
            (32, 4, 4),
            (32, 4, 16),
            (32, 4, 64),
            (16, 4, 64),
        ] {
            let x = whole_dense(300, features);
            let expected = reference::spmm(a.view(), x.view());
            let plan = |joined| {
                let options = SpmmOptions::new().tuning(
                    SpmmTuning::new()
                        .kernel(SpmmKernel::Vector)
                        .task_size(size)
                        .join_tasks(joined)
                        .lanes(lanes),
                );
                Spmm::plan(&device, a.view(), options).unwrap()
            };
            let (single, joined) = (plan(false), plan(true));
            // Single tasks of several tiles of features take long, and are those of the other sizes.
            let multiplied = match features {
                640 => &[&joined][..],
                _ => &[&single, &joined],
            };
            for plan in multiplied {
                let y = plan.multiply(x.view()).unwrap();
                assert_eq!(y.mapv(f64::from), expected, "{lanes}, {features}: {plan}");
            }
            let blocks = |plan: &Spmm<f32>| plan.launch_config(features).unwrap().unwrap().grid.x;
            // A row has two steps for its end; a block has four items.
            let tasks = (128_u32 * 102).div_ceil(size);
            assert_eq!(blocks(&single), tasks.div_ceil(4));
            let way = [(5, 1), (5, 2), (6, 3)]
                .into_iter()
                .position(|(eighths, shift)| {
                    let large = (tasks * eighths / 8) >> shift;
                    blocks(&joined) == (large + tasks - (large << shift)).div_ceil(4)
                });
            seen[way.expect("one of the ways to join tasks")] = true;
        }
        if device.properties().multiprocessors <= 150 {
            assert_eq!(seen, [true; 3], "{device}");
        }
    }
}

#[test]
fn more_features_than_a_grid_has_tiles_are_all_computed() {
    // A grid has at most 65,535 blocks along y.
    let features = 65_535 * 32 + 45;
    let a = whole(&[vec![0, 1], vec![], vec![1]], 2);
    let x = whole_dense(2, features);
    let expected = reference::spmm(a.view(), x.view());
    // The emulator takes longer with all checks.
    let fast = || Device::emulator(EmulatorOptions::new().checks(Checks::BoundsOnly));
    let device = support::cuda().unwrap_or_else(fast);
    let plans = SpmmKernel::ALL.iter().map(|&kernel| {
        // The fewest lanes have the narrowest tiles.
        let tuning = SpmmTuning::new().kernel(kernel).lanes(8);
        Spmm::plan(&device, a.view(), SpmmOptions::new().tuning(tuning)).unwrap()
    });
    let has_full_grid = |plan: &Spmm<f32>| {
        let config = plan.launch_config(features).unwrap().unwrap();
        config.grid.y == 65_535
    };
    let (full, others): (Vec<_>, Vec<_>) = plans.partition(has_full_grid);
    let kernels: Vec<_> = full.iter().map(Spmm::kernel).collect();
    assert!(kernels.contains(&SpmmKernel::Vector), "{kernels:?}");
    assert!(kernels.len() >= 8, "{kernels:?}");
    // The others have wider tiles, or no block for each tile: the emulator would take minutes for them.
    let others = others.into_iter().filter(|_| !device.is_emulator());
    for plan in full.into_iter().chain(others) {
        let y = plan.multiply(x.view()).unwrap();
        assert!(y.mapv(f64::from) == expected, "{plan}");
    }
}

#[test]
fn sums_that_cancel_keep_their_bound() {
    // Each row holds v and -v, v ten orders of magnitude above what is left.
    fn one<T: SpmmElement<Sum = T>>() {
        let n = 500_u32;
        let mut indptr = vec![0];
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for i in 0..n {
            let big = 1e10 * f64::from(i + 1);
            indices.extend([i, n + i, 2 * n]);
            values.extend([big, -big, 1.0].map(T::from_f64));
            indptr.push(indices.len() as u32);
        }
        let a = CsMatI::new((n as usize, 2 * n as usize + 1), indptr, indices, values);
        let x = Array2::from_elem((2 * n as usize + 1, 40), T::from_f64(1.0));
        for (y, made) in products(&a, x.view()) {
            let checked = verify_spmm(a.view(), x.view(), y.view());
            assert!(checked.ok(), "{}, {made}: {checked}", T::NAME);
        }
    }
    one::<f32>();
    one::<f64>();
}

#[test]
fn infinities_and_nans_stay_in_the_rows_that_read_them() {
    let a = whole(&[vec![0, 1], vec![1, 2], vec![2], vec![], vec![0, 2]], 3);
    let mut x = whole_dense(3, 37);
    x.row_mut(0).fill(f32::INFINITY);
    x[[1, 5]] = f32::NAN;
    for (y, made) in products(&a, x.view()) {
        let checked = verify_spmm(a.view(), x.view(), y.view());
        assert!(checked.ok(), "{made}: {checked}");
        assert!(y.row(2).iter().all(|value| value.is_finite()), "{made}");
        assert!(y.row(3).iter().all(|&value| value == 0.0), "{made}");
    }
}

#[test]
fn a_skewed_graph_verifies_in_both_types() {
    let a = generate::rmat::<f64>(1000, 9000, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
    let x = generate::dense::<f64>(1000, 47, 4).unwrap();
    for (y, made) in products(&a, x.view()) {
        let checked = verify_spmm(a.view(), x.view(), y.view());
        assert!(checked.ok(), "f64, {made}: {checked}");
    }
    let a = generate::rmat::<f32>(1000, 9000, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
    let x = generate::dense::<f32>(1000, 47, 4).unwrap();
    for (y, made) in products(&a, x.view()) {
        let checked = verify_spmm(a.view(), x.view(), y.view());
        assert!(checked.ok(), "f32, {made}: {checked}");
    }
}

/// Rows of any length over up to 60 columns, some of them empty.
fn any_matrix() -> impl Strategy<Value = CsrMatrix<f32>> {
    (1_u32..60)
        .prop_flat_map(|cols| {
            let row = proptest::collection::btree_set(0..cols, 0..=cols as usize);
            (Just(cols), proptest::collection::vec(row, 0..60))
        })
        .prop_map(|(cols, rows)| {
            let rows: Vec<Vec<u32>> = rows
                .into_iter()
                .map(|row| row.into_iter().collect())
                .collect();
            whole(&rows, cols)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_matrix_times_any_width_is_exact(a in any_matrix(), features in 0_usize..70) {
        let x = whole_dense(a.cols(), features);
        let expected = reference::spmm(a.view(), x.view());
        for (y, made) in products_in_turn(features, &a, x.view()) {
            prop_assert_eq!(y.mapv(f64::from), expected.clone(), "{}", made);
        }
    }
}

#[test]
fn no_kernel_has_a_fault_under_100_random_schedules() {
    let mut rows: Vec<Vec<u32>> = (0..32)
        .map(|i| (0..i % 4).map(|k| 5 * i + k).collect())
        .collect();
    rows[17] = (0..150).collect();
    let (a, x) = (whole(&rows, 160), whole_dense(160, 9));
    let wanted = reference::spmm(a.view(), x.view());
    for device in support::schedules() {
        for &kernel in SpmmKernel::ALL {
            let y = product(&device, kernel, &a, x.view());
            assert_eq!(y.mapv(f64::from), wanted, "{} on {device}", kernel.name());
        }
    }
}
