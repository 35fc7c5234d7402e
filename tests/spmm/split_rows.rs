//! Rows that tasks split: some into few parts, which a warp adds up, and some into many, for a block.

use crate::types::{whole, whole_dense};
use warprow::reference;
use warprow::spmm::{Spmm, SpmmKernel, SpmmOptions, SpmmTuning};

#[test]
fn rows_of_few_and_of_many_parts_side_by_side_are_exact() {
    // Tasks have two steps and blocks eight tasks: a row has a part for each 16 nonzeros. A warp of the kernel that
    // lists the split rows has 32 blocks, and finds rows of up to 32 parts, of more, and none.
    const COLS: u32 = 900;
    let lengths = [
        30, 0, 900, 40, 3, 3, 3, 30, 520, 1, 100, 880, 7, 31, 2, 2, 45,
    ];
    let rows: Vec<Vec<u32>> = (0..68)
        .map(|row| (0..lengths[row % lengths.len()]).collect())
        .collect();
    let a = whole::<f32>(&rows, COLS as usize);
    let tuning = SpmmTuning::new().kernel(SpmmKernel::Vector).task_size(2);
    for features in [4, 33] {
        let x = whole_dense::<f32>(COLS as usize, features);
        let wanted = reference::spmm(a.view(), x.view());
        for device in support::devices() {
            let plan = Spmm::plan(&device, a.view(), SpmmOptions::new().tuning(tuning)).unwrap();
            let text = plan.to_string();
            assert!(!text.contains(" 0 split rows"), "{text}");
            let y = plan.multiply(x.view()).unwrap();
            assert_eq!(y.mapv(f64::from), wanted, "{plan}");
        }
    }
}
