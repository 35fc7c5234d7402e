//! The kernels of the product, in every type, and those that prepare its tasks and teams.

use crate::assert_all_run;
use crate::operands::{COLS, ROWS, skewed};
use ndarray::Array2;
use warprow::device::{Device, LaunchLog};
use warprow::reference::{Operation, WholeProduct};
use warprow::{
    Reduction, RowOrder, Scalar, Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning, bf16, f16,
};
use warprow_kernels::spmm::{EpilogueKind, LaunchShape};

/// Loads of one, two, four and eight elements, one to four of them for each lane; the most features are whole cache
/// lines and not.
const FEATURES: [usize; 12] = [7, 12, 23, 28, 36, 40, 41, 50, 74, 100, 101, 128];

/// Small enough that the long row, and a few others, are split.
const TASK_SIZE: u32 = 16;

#[test]
fn every_entry_point_runs() {
    assert_all_run("spmm", |device| {
        let log = device.log_launches();
        every_instance::<f32>(device, &log);
        every_instance::<f64>(device, &log);
        every_instance::<f16>(device, &log);
        every_instance::<bf16>(device, &log);
        with_shared_x::<f32>(device);
        with_shared_x::<f64>(device);
        with_shared_x::<f16>(device);
        with_shared_x::<bf16>(device);
        means_and_blocks_of_columns::<f32>(device);
        means_and_blocks_of_columns::<f64>(device);
    });
}

/// Runs the general kernels with each choice that leads to an instance which has not run.
fn every_instance<E: SpmmElement>(device: &Device, log: &LaunchLog) {
    let kernels = [
        SpmmKernel::Vector,
        SpmmKernel::InStep,
        SpmmKernel::RowBins,
        SpmmKernel::RowGroups,
        SpmmKernel::Spmv,
    ];
    for (kernel, reduction) in kernels
        .map(|kernel| (kernel, Reduction::Sum))
        .into_iter()
        .chain([SpmmKernel::Vector, SpmmKernel::RowBins].map(|kernel| (kernel, Reduction::Max)))
    {
        for features in FEATURES {
            for (lanes, order) in [4, 8, 16, 32].into_iter().flat_map(|lanes| {
                [RowOrder::Given, RowOrder::FirstColumn].map(|order| (lanes, order))
            }) {
                let options = split(reduction)
                    .map_tuning(|tuning| tuning.kernel(kernel).lanes(lanes).order(order));
                let new = new_factors::<E>(log, features, options);
                if !new.is_empty() {
                    run_exactly::<E>(device, features, options, &new);
                }
            }
        }
    }
}

/// `row_bins` with X in shared memory, whose lanes load one, two and four elements.
fn with_shared_x<E: SpmmElement>(device: &Device) {
    let tuning = |tuning: SpmmTuning| tuning.kernel(SpmmKernel::RowBins).shared_x(true);
    for features in [7, 10, 12] {
        let options = split(Reduction::Sum).map_tuning(tuning);
        run_exactly::<E>(device, features, options, &[[1.0, 0.0], [2.0, -3.0]]);
    }
}

/// The alphas and betas with which a run takes an instance that has not run.
fn new_factors<E: SpmmElement>(
    log: &LaunchLog,
    features: usize,
    options: SpmmOptions,
) -> Vec<[f64; 2]> {
    let stored = match options.tuning.order {
        Some(RowOrder::Given) => EpilogueKind::Plain,
        _ => EpilogueKind::AnyOrder,
    };
    let shape = LaunchShape {
        rows: ROWS as u32,
        items: 1,
        cols: COLS as u32,
        features: features as u32,
        lanes: options.tuning.lanes.unwrap(),
        row_starts: 0,
        shared_x_blocks: 0,
    };
    let ran = log.launches();
    let is_new = |epilogue| {
        let handle =
            (options.tuning.kernel.unwrap()).handle::<E>(shape, options.reduction, epilogue);
        !ran.contains_key(handle.name())
    };
    let factors = [
        (stored, [1.0, 0.0]),
        (EpilogueKind::Added, [1.0, 1.0]),
        (EpilogueKind::Scaled, [2.0, -3.0]),
    ];
    let new = factors
        .into_iter()
        .filter(|(epilogue, _)| is_new(*epilogue));
    new.map(|(_, factors)| factors).collect()
}

/// Both kernels of blocks of columns, and the reciprocals of the rows' lengths.
fn means_and_blocks_of_columns<E: SpmmElement>(device: &Device) {
    let blocks = split(Reduction::Sum)
        .map_tuning(|tuning| tuning.kernel(SpmmKernel::Vector).column_blocks(3));
    run_exactly::<E>(device, 33, blocks, &[[1.0, 0.0]]);
    let product = WholeProduct::<E>::new(skewed().view(), 33, 1);
    let (a, x) = (product.a(), product.x());
    let plan = Spmm::plan(device, a, split(Reduction::Mean)).unwrap();
    let operation = Operation::new().reduction(Reduction::Mean);
    let checked = operation.verify(a, x.view(), plan.multiply(x.view()).unwrap().view());
    assert!(checked.ok(), "{plan}: {checked}");
}

fn split(reduction: Reduction) -> SpmmOptions {
    SpmmOptions::new()
        .reduction(reduction)
        .tuning(SpmmTuning::new().task_size(TASK_SIZE).column_blocks(1))
}

/// A plan's runs with these alphas and betas are exactly the reference's.
fn run_exactly<E: SpmmElement>(
    device: &Device,
    features: usize,
    options: SpmmOptions,
    factors: &[[f64; 2]],
) {
    let product = WholeProduct::<E>::new(skewed().view(), features, 1);
    let (a, x) = (product.a(), product.x());
    let y = Array2::from_shape_fn((ROWS, features), |(i, j)| {
        E::from_f64(((i * 31 + j * 17) % 11) as f64 - 5.0)
    });
    let plan = Spmm::plan(device, a, options).unwrap();
    let x_there = device.upload(x.as_slice().unwrap()).unwrap();
    for &[alpha, beta] in factors {
        let mut y_there = device.upload(y.as_slice().unwrap()).unwrap();
        let [alpha_sum, beta_sum] = [alpha, beta].map(<E::Sum as Scalar>::from_f64);
        plan.run_scaled(alpha_sum, &x_there, features, beta_sum, &mut y_there)
            .unwrap_or_else(|error| panic!("{plan}: {error}"));
        let operation = Operation::new()
            .reduction(options.reduction)
            .alpha(alpha)
            .beta(beta)
            .y(y.view());
        let wanted = operation.compute(a, x.view()).mapv(E::from_f64);
        let found = Array2::from_shape_vec(y.dim(), y_there.download().unwrap()).unwrap();
        assert_eq!(
            found, wanted,
            "{features} features, {alpha}, {beta}: {plan}"
        );
    }
}
