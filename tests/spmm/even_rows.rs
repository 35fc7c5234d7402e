//! Tasks of whole rows: plans of an emulated H200 for matrices whose rows have nearly the same number of nonzeros.

use super::few_features::structure;
use ndarray::Array2;
use sprs::CsMatI;
use warprow::device::{Checks, Device, DeviceProfile, EmulatorOptions};
use warprow::reference::{Operation, WholeProduct};
use warprow::{Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning, f16, generate};

fn h200() -> Device {
    Device::emulator_of(&DeviceProfile::h200(), EmulatorOptions::default())
}

/// The same with fewer checks.
fn fast_h200() -> Device {
    let options = EmulatorOptions::new().checks(Checks::BoundsOnly);
    Device::emulator_of(&DeviceProfile::h200(), options)
}

/// Lengths of 3000 rows, one more and one less than `mean` among them.
fn lengths(mean: usize) -> Vec<usize> {
    (0..3_000).map(|row| mean + row % 3 - 1).collect()
}

/// The steps of a task of the plan for a matrix with rows of these lengths. Its products are exact.
fn steps_of_task<E: SpmmElement>(lengths: &[usize]) -> u32 {
    let structure = structure(lengths);
    let mut steps = 0;
    for features in [32, 33] {
        let whole = WholeProduct::<E>::new(structure.view(), features, 3);
        let tuning = SpmmTuning::new().kernel(SpmmKernel::Vector);
        let plan = Spmm::plan(&h200(), whole.a(), SpmmOptions::new().tuning(tuning)).unwrap();
        let checked = whole.verify(plan.multiply(whole.x().view()).unwrap().view());
        assert!(checked.is_exact(), "{checked}: {plan}");
        steps = planned_steps(&plan.to_string());
    }
    steps
}

fn planned_steps(plan: &str) -> u32 {
    let before = plan.split(" steps").next().unwrap();
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn tasks_of_an_even_matrix_have_whole_rows() {
    // A row has two steps more than nonzeros. Other tasks of so small a matrix have 64 steps.
    for (mean, rows) in [(17, 3), (20, 3), (32, 2), (50, 1), (80, 1)] {
        let steps = steps_of_task::<f32>(&lengths(mean));
        assert_eq!(steps, rows * (mean as u32 + 2), "{mean} nonzeros a row");
    }
    assert_eq!(steps_of_task::<f64>(&lengths(20)), 66);
    assert_eq!(steps_of_task::<f16>(&lengths(20)), 66);
    // So many rows that one more does not matter, and rows of very different lengths.
    assert_eq!(steps_of_task::<f32>(&lengths(14)), 64);
    let uneven: Vec<usize> = (0..3_000).map(|row| 10 + 40 * (row / 8 % 2)).collect();
    assert_eq!(steps_of_task::<f32>(&uneven), 64);
}

#[test]
fn one_long_row_among_even_ones_is_split_and_the_others_stay_whole() {
    // The last window of rows does not count for their variation. A row in another one may be shorter.
    for (row, length) in [(2_999, 1_000), (1_234, 270)] {
        let mut lengths = lengths(20);
        lengths[row] = length;
        assert_eq!(steps_of_task::<f32>(&lengths), 66, "row {row}");
    }
    let mut lengths = lengths(20);
    lengths[1_234] = 1_000;
    assert_eq!(steps_of_task::<f32>(&lengths), 64, "this row counts");
}

/// Windows of eight rows have the same number of nonzeros, so the plan takes the rows for even. But one row of each
/// window is long, and tasks split it.
#[test]
fn many_split_rows_among_rows_that_seem_even_are_summed_as_deep_as_the_plan_says() {
    // A block of eight tasks has a little fewer or more steps than a window, so the long rows lie anywhere in blocks.
    for long in [603, 1_900] {
        let lengths: Vec<usize> = (0..1_600)
            .map(|row| if row % 8 == 5 { long } else { 8 })
            .collect();
        let structure = structure(&lengths);
        // The longer ones take long with more features.
        let widths = if long < 1_000 {
            &[32, 33, 100][..]
        } else {
            &[33]
        };
        for &features in widths {
            let vector = SpmmTuning::new().kernel(SpmmKernel::Vector);
            let options = SpmmOptions::new().tuning(vector);
            let whole = WholeProduct::<f32>::new(structure.view(), features, 3);
            let plan = Spmm::plan(&fast_h200(), whole.a(), options).unwrap();
            let text = plan.to_string();
            // Smaller tasks than of a whole row, because so many rows are split.
            assert_eq!(planned_steps(&text), 64, "{text}");
            assert!(!text.contains(" 0 split rows"), "{text}");
            let checked = whole.verify(plan.multiply(whole.x().view()).unwrap().view());
            assert!(checked.is_exact(), "{checked}: {plan}");
            assert_as_deep(&structure, features, options, long);
        }
    }
}

/// Sums of terms of one sign, whose errors grow all the way.
fn assert_as_deep(
    structure: &CsMatI<(), u32, u32>,
    features: usize,
    options: SpmmOptions,
    longest: usize,
) {
    let nonzeros = structure.nnz();
    let values = generate::dense::<f32>(1, nonzeros, 5).unwrap();
    let values: Vec<f32> = values.iter().map(|value| value.abs()).collect();
    let (indptr, indices) = (structure.indptr(), structure.indices().to_vec());
    let a = CsMatI::new(
        structure.shape(),
        indptr.raw_storage().to_vec(),
        indices,
        values,
    );
    let x: Array2<f32> = generate::dense(structure.cols(), features, 6).unwrap();
    let x = x.mapv(f32::abs);
    let plan = Spmm::plan(&fast_h200(), a.view(), options).unwrap();
    let depth = plan.summation_depth(longest, features);
    assert!(depth < longest, "{depth} of {longest}: {plan}");
    let operation = Operation::new().depth(depth);
    let found = operation.verify(a.view(), x.view(), plan.multiply(x.view()).unwrap().view());
    assert!(found.ok(), "{plan}: {found}");
}
