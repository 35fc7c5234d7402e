//! The orders of a plan's rows, on every device: permutations, what they sort by, right products by every kernel, and
//! how far they bring together the rows that share columns.

use super::plan::assert_scaled_right;
use ndarray::Array2;
use proptest::prelude::*;
use sprs::CsMatI;
use std::collections::{BTreeSet, HashSet};
use support::{devices, devices_in_turn, matrix_of_rows};
use warprow::device::{Device, EmulatorOptions};
use warprow::reference::{self, verify_spmm};
use warprow::{
    CsrMatrix, Reduction, RowOrder, Spmm, SpmmKernel, SpmmOptions, SpmmTuning, generate,
};

fn ordered(order: RowOrder, kernel: Option<SpmmKernel>) -> SpmmOptions {
    SpmmOptions::new().tuning(SpmmTuning::new().kernel(kernel).order(order))
}

/// The plan's rows by their numbers in the caller's order.
fn permutation(device: &Device, a: &CsrMatrix<f32>, order: RowOrder) -> Vec<u32> {
    let plan = Spmm::plan(device, a.view(), ordered(order, None)).unwrap();
    assert_eq!(plan.order(), order);
    let given = || (0..a.rows() as u32).collect();
    plan.row_permutation().unwrap().unwrap_or_else(given)
}

/// Odd, rectangular, empty, and with one very long row among short and empty ones.
fn matrices() -> Vec<CsrMatrix<f32>> {
    let short = generate::uniform::<f32>(60, 900, 70, 4).unwrap();
    let long = generate::uniform::<f32>(1, 900, 800, 3).unwrap();
    vec![
        generate::uniform(1, 1, 1, 1).unwrap(),
        generate::uniform(37, 11, 150, 1).unwrap(),
        generate::uniform(11, 201, 99, 2).unwrap(),
        generate::uniform(101, 101, 400, 5).unwrap(),
        sprs::vstack(&[short.view(), long.view(), short.view()]),
        CsMatI::zero((0, 4)),
        CsMatI::zero((4, 0)),
        CsMatI::zero((9, 9)),
    ]
}

#[test]
fn every_kernel_on_every_order_gives_the_right_product() {
    for a in matrices() {
        let x = generate::dense::<f32>(a.cols(), 33, 7).unwrap();
        for (number, &kernel) in SpmmKernel::ALL.iter().enumerate() {
            for (turn, &order) in RowOrder::ALL.iter().enumerate() {
                let options = ordered(order, Some(kernel));
                for device in devices_in_turn(number + turn) {
                    let plan = Spmm::plan(&device, a.view(), options).unwrap();
                    let y = plan.multiply(x.view()).unwrap();
                    let checked = verify_spmm(a.view(), x.view(), y.view());
                    assert!(checked.ok(), "{plan}: {checked}");
                }
            }
        }
    }
}

#[test]
fn tasks_and_slices_that_cut_rows_write_them_where_the_caller_has_them() {
    let a = &matrices()[4];
    let x = generate::dense::<f32>(a.cols(), 8, 7).unwrap();
    for device in devices() {
        for &kernel in SpmmKernel::ALL {
            for task_size in [3, 16, 33] {
                let options = ordered(RowOrder::FirstColumn, Some(kernel))
                    .map_tuning(|tuning| tuning.task_size(task_size));
                let plan = Spmm::plan(&device, a.view(), options).unwrap();
                let checked =
                    verify_spmm(a.view(), x.view(), plan.multiply(x.view()).unwrap().view());
                assert!(checked.ok(), "{plan}: {checked}");
            }
        }
    }
}

#[test]
fn every_reduction_alpha_beta_and_transpose_is_right_on_every_order() {
    let features = 9;
    for device in devices() {
        for a in matrices() {
            for (&order, transpose) in RowOrder::ALL.iter().zip([false, true, false, true]) {
                let of = if transpose {
                    a.transpose_view().to_csr()
                } else {
                    a.clone()
                };
                for &reduction in Reduction::ALL {
                    // Rows of more than 40 steps are split.
                    let options = ordered(order, None)
                        .reduction(reduction)
                        .transpose(transpose)
                        .map_tuning(|tuning| tuning.task_size(40));
                    let plan = Spmm::plan(&device, a.view(), options).unwrap();
                    assert_scaled_right(&plan, &of, reduction, features);
                }
            }
        }
    }
}

#[test]
fn every_order_is_a_permutation() {
    for device in devices() {
        for a in matrices() {
            for &order in RowOrder::ALL {
                let mut rows = permutation(&device, &a, order);
                rows.sort_unstable();
                assert!(rows.into_iter().eq(0..a.rows() as u32), "{order:?}");
            }
        }
    }
}

#[test]
fn rows_by_their_first_column_are_those_of_a_stable_sort_empty_ones_last() {
    for device in devices() {
        for a in matrices() {
            let first = |row: u32| {
                a.outer_view(row as usize)
                    .unwrap()
                    .indices()
                    .first()
                    .copied()
            };
            let mut wanted: Vec<u32> = (0..a.rows() as u32).collect();
            wanted.sort_by_key(|&row| first(row).unwrap_or(u32::MAX));
            assert_eq!(permutation(&device, &a, RowOrder::FirstColumn), wanted);
        }
    }
}

#[test]
fn rows_by_their_most_frequent_column_are_those_of_the_host() {
    for device in devices() {
        for a in matrices() {
            let mut columns: Vec<u32> = (0..a.cols() as u32).collect();
            let mut count = vec![0_u32; a.cols()];
            a.indices().iter().for_each(|&col| count[col as usize] += 1);
            columns.sort_by_key(|&col| std::cmp::Reverse(count[col as usize]));
            let mut rank = vec![0; a.cols()];
            (columns.iter().zip(0..)).for_each(|(&col, place)| rank[col as usize] = place);
            let least = |row: u32| {
                let row = a.outer_view(row as usize).unwrap();
                let ranks = row.indices().iter().map(|&col| rank[col as usize]);
                ranks.min().unwrap_or(u32::MAX)
            };
            let mut wanted: Vec<u32> = (0..a.rows() as u32).collect();
            wanted.sort_by_key(|&row| least(row));
            assert_eq!(permutation(&device, &a, RowOrder::FrequentColumn), wanted);
        }
    }
}

/// A shuffled matrix of communities, and its rows by them.
struct Planted {
    a: CsrMatrix<f32>,
    by_community: Vec<u32>,
}

/// `a_row` nonzeros a row, some of them in the same place, `inside` in a hundred of them in the row's community.
fn planted(rows: u32, cols: u32, communities: u32, a_row: u32, inside: u32) -> Planted {
    let mut state = 88_172_645_463_325_252_u64;
    let mut draw = |below: u32| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (((state >> 32) * u64::from(below)) >> 32) as u32
    };
    let mut shuffled = |len: u32| {
        let mut numbers: Vec<u32> = (0..len).collect();
        (1..len).for_each(|i| numbers.swap(i as usize, draw(i + 1) as usize));
        numbers
    };
    let row_number = shuffled(rows);
    // The rows and columns of a square matrix are the same things.
    let col_number = if rows == cols {
        row_number.clone()
    } else {
        shuffled(cols)
    };
    let mut entries = vec![BTreeSet::new(); rows as usize];
    for row in 0..rows {
        let community = row * communities / rows;
        let [start, end] = [community, community + 1].map(|c| c * cols / communities);
        for _ in 0..a_row {
            let col = if draw(100) < inside {
                start + draw(end - start)
            } else {
                draw(cols)
            };
            entries[row_number[row as usize] as usize].insert(col_number[col as usize]);
        }
    }
    Planted {
        a: matrix_of_rows(&entries, cols),
        by_community: row_number,
    }
}

/// The distinct columns of each 64 neighbouring rows, as a part of their nonzeros: 1 where nothing is shared.
fn spread(a: &CsrMatrix<f32>, order: &[u32]) -> f64 {
    let distinct = order.chunks(64).map(|rows| {
        let of_row = |&row: &u32| a.outer_view(row as usize).unwrap().indices().to_vec();
        rows.iter().flat_map(of_row).collect::<HashSet<u32>>().len()
    });
    distinct.sum::<usize>() as f64 / a.nnz() as f64
}

#[test]
fn clustered_rows_are_nearly_as_close_as_the_communities_planted() {
    let device = Device::emulator(EmulatorOptions::default());
    for (rows, cols, communities, a_row, inside) in [
        (3000, 3000, 30, 12, 85),
        (2001, 2001, 5, 40, 80),
        (1500, 2500, 15, 15, 90),
    ] {
        let Planted { a, by_community } = planted(rows, cols, communities, a_row, inside);
        let by = |order| spread(&a, &permutation(&device, &a, order));
        let [given, first, clustered] =
            [RowOrder::Given, RowOrder::FirstColumn, RowOrder::Clustered].map(by);
        let best = spread(&a, &by_community);
        let found = format!(
            "given {given:.3}, first {first:.3}, clustered {clustered:.3}, planted {best:.3}"
        );
        println!("{rows} x {cols}: {found}");
        assert!(first < given && best < first, "{found}");
        assert!(clustered < 1.05 * best, "{found}");
    }
}

#[test]
fn columns_of_empty_rows_are_no_reason_to_put_rows_together() {
    // Each row has the other columns of its community, and those of the first four empty rows.
    let communities = [[0_u32, 3, 4, 7], [1, 2, 5, 6]];
    for nodes in [12_u32, 16] {
        let mut rows = vec![BTreeSet::new(); nodes as usize];
        for community in communities {
            for row in community {
                let others = community.into_iter().filter(|&column| column != row);
                rows[row as usize] = others.chain(8..12).collect();
            }
        }
        let a = matrix_of_rows(&rows, nodes);
        for device in devices() {
            let with_empty_rows = |rows: [u32; 8]| Vec::from_iter(rows.into_iter().chain(8..nodes));
            // In a community by the first column; empty rows last.
            let wanted = with_empty_rows([3, 4, 7, 0, 2, 5, 6, 1]);
            let order = permutation(&device, &a, RowOrder::Clustered);
            assert_eq!(order, wanted, "{device}");
            // By the first column alone, 0 and 1 are apart from their communities.
            let wanted = with_empty_rows([3, 4, 7, 2, 5, 6, 1, 0]);
            let order = permutation(&device, &a, RowOrder::FirstColumn);
            assert_eq!(order, wanted, "{device}");
        }
    }
}

#[test]
fn rows_of_a_cluster_are_sorted_by_the_first_column() {
    // The other columns make all rows one cluster; row 4 is empty.
    let firsts = [5_u32, 4, 9, 2];
    let of_first = |first| BTreeSet::from_iter((60_000..60_010).chain([first]));
    let mut rows = Vec::from(firsts.map(of_first));
    rows.push(BTreeSet::new());
    let a = matrix_of_rows(&rows, 70_001);
    for device in devices() {
        for order in [RowOrder::Clustered, RowOrder::FirstColumn] {
            let rows = permutation(&device, &a, order);
            assert_eq!(rows, [3, 1, 0, 2, 4], "{order:?} on {device}");
        }
    }
}

#[test]
fn an_order_is_the_same_every_time_and_on_every_device() {
    let Planted { a, .. } = planted(700, 700, 6, 9, 85);
    for &order in RowOrder::ALL {
        let emulator = Device::emulator(EmulatorOptions::default());
        let wanted = permutation(&emulator, &a, order);
        for device in devices() {
            assert_eq!(
                permutation(&device, &a, order),
                wanted,
                "{order:?} on {device}"
            );
        }
    }
}

#[test]
fn kernels_without_atomics_give_the_same_bits_every_time() {
    let a = generate::rmat::<f32>(200, 1500, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
    let x = generate::dense::<f32>(200, 20, 4).unwrap();
    for device in devices() {
        for &kernel in SpmmKernel::ALL {
            if !kernel.capabilities().deterministic {
                continue;
            }
            for &order in RowOrder::ALL {
                let product = || {
                    let plan = Spmm::plan(&device, a.view(), ordered(order, Some(kernel)));
                    plan.and_then(|plan| plan.multiply(x.view())).unwrap()
                };
                let bits = |y: &Array2<f32>| y.mapv(f32::to_bits);
                assert_eq!(bits(&product()), bits(&product()), "{}", kernel.name());
            }
        }
    }
}

#[test]
fn a_plan_names_an_order_that_is_not_the_given_one() {
    let a = generate::uniform::<f32>(9, 9, 20, 1).unwrap();
    let device = Device::emulator(EmulatorOptions::default());
    for &order in RowOrder::ALL {
        let text = Spmm::plan(&device, a.view(), ordered(order, None))
            .unwrap()
            .to_string();
        let named = text.contains(&format!("rows in the order {}", order.name()));
        assert_eq!(named, order != RowOrder::Given, "{text}");
    }
    let reordered = SpmmOptions::new().tuning(SpmmTuning::new().kernel(SpmmKernel::Reordered));
    let plan = Spmm::plan(&device, a.view(), reordered).unwrap();
    assert_eq!(plan.order(), RowOrder::FirstColumn);
    let plan = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
    assert_eq!(
        (plan.order(), plan.row_permutation().unwrap()),
        (RowOrder::Given, None)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_matrix_in_any_order_gives_the_exact_product(
        rows in 1_u32..90, cols in 1_u32..90, part in 0_u32..=100, features in 1_usize..40, seed in any::<u64>(),
    ) {
        let nonzeros = (rows * cols).min(1000) * part / 100;
        // Small whole numbers, so that sums are exact in whatever order.
        let a = generate::uniform::<f32>(rows, cols, nonzeros, seed).unwrap().map(|value| (4.0 * value).round());
        let x = generate::dense::<f32>(cols as usize, features, seed).unwrap().mapv(|value| (9.0 * value).round());
        let expected = reference::spmm(a.view(), x.view());
        let kernels = [SpmmKernel::Vector, SpmmKernel::Sliced, SpmmKernel::SlicedTwoPass, SpmmKernel::ColumnMajor];
        for (number, kernel) in kernels.into_iter().enumerate() {
            for (turn, &order) in RowOrder::ALL.iter().enumerate() {
                for device in devices_in_turn(number + turn) {
                    let plan = Spmm::plan(&device, a.view(), ordered(order, Some(kernel))).unwrap();
                    let y = plan.multiply(x.view()).unwrap();
                    prop_assert_eq!(y.mapv(f64::from), expected.clone(), "{}", plan);
                }
            }
        }
    }
}
