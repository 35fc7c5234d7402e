//! Matrices in blocks of columns, whose products are added up block by block.

use super::{exact, run, whole, whole_dense};
use support::devices_in_turn;
use warprow::reference::Operation;
use warprow::spmm::RowOrder;
use warprow::{Reduction, Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning, bf16, f16};

/// A long row, rows in one block or between two, and every third one empty.
fn rows() -> Vec<Vec<u32>> {
    let mut rows: Vec<Vec<u32>> = (0..90)
        .map(|row| {
            let length = if row % 3 == 0 { 0 } else { row % 19 };
            (0..length).map(|k| row + 7 * k).collect()
        })
        .collect();
    rows[31] = (0..300).collect();
    rows[89] = (100..180).collect();
    rows
}

fn blocks_are_exact<E: SpmmElement>() {
    let a = whole::<E>(&rows(), 300);
    // 400 blocks are more than columns: a plan has one for each column then, which takes long.
    let wide = size_of::<E>() == size_of::<E::Sum>();
    let cases = [(5, 8, 400), (33, 16, 7), (64, 16, 7), (130, 32, 7)];
    // 16-bit elements have one block, whatever is asked for.
    for (features, lanes, most) in cases.into_iter().skip(if wide { 0 } else { 2 }) {
        let (x, y) = (
            whole_dense::<E>(300, features),
            whole_dense::<E>(90, features),
        );
        for (turn, factors) in [[1.0, 0.0], [1.0, 1.0], [2.0, -3.0]]
            .into_iter()
            .enumerate()
        {
            let operation = Operation::new()
                .reduction(Reduction::Sum)
                .alpha(factors[0])
                .beta(factors[1])
                .y(y.view());
            let expected = exact(operation, &a, &x);
            for (number, (column_blocks, task_size, order)) in [
                (1, 24, RowOrder::Given),
                (2, 9, RowOrder::FirstColumn),
                (3, 1000, RowOrder::Given),
                (most, 24, RowOrder::Given),
            ]
            .into_iter()
            .enumerate()
            {
                let options = SpmmOptions::new().tuning(
                    SpmmTuning::new()
                        .kernel(SpmmKernel::Vector)
                        .column_blocks(column_blocks)
                        .task_size(task_size)
                        .order(order)
                        .lanes(lanes),
                );
                for device in devices_in_turn(turn + number) {
                    let plan = Spmm::plan(&device, a.view(), options).unwrap();
                    let blocks = if wide { column_blocks.min(300) } else { 1 };
                    assert_eq!(plan.column_blocks(), blocks, "{plan}");
                    let found = run(&plan, x.view(), factors, y.view());
                    assert_eq!(found, expected, "{factors:?}, {plan}");
                }
            }
        }
    }
}

#[test]
fn products_in_blocks_of_columns_are_exact_with_any_factors_and_order() {
    in_every_type!(blocks_are_exact());
}
