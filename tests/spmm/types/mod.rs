//! SpMM in every element type, with every reduction, alpha and beta, transposed and deterministic, on every device:
//! against the reference, and exactly where whole numbers allow it.

/// Runs a generic test in every type of elements.
macro_rules! in_every_type {
    ($test:ident($($argument:expr),*)) => {
        $test::<f32>($($argument),*);
        $test::<f64>($($argument),*);
        $test::<f16>($($argument),*);
        $test::<bf16>($($argument),*);
    };
}

mod any;
mod column_blocks;
mod instances;
mod kernels;
mod large;
mod plans;
mod reductions;
mod special_values;

use ndarray::{Array2, ArrayView2};
use sprs::CsMatI;
use warprow::reference::Operation;
use warprow::{
    CsrMatrix, Device, Reduction, Scalar, Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning,
    f16,
};

/// Tasks small enough to split most rows.
fn cut(reduction: Reduction) -> SpmmOptions {
    SpmmOptions::new()
        .reduction(reduction)
        .tuning(SpmmTuning::new().task_size(16))
}

/// As [`cut`], with each kernel that has the reduction in every type.
fn cut_by_each(reduction: Reduction) -> Vec<SpmmOptions> {
    kernels(reduction)
        .map(|kernel| cut(reduction).map_tuning(|tuning| tuning.kernel(kernel)))
        .collect()
}

/// These numbers, each with each device.
fn on_devices<const N: usize>(numbers: [usize; N]) -> impl Iterator<Item = (usize, Device)> {
    let devices = support::devices();
    numbers.into_iter().flat_map(move |number| {
        devices
            .clone()
            .into_iter()
            .map(move |device| (number, device))
    })
}

/// The kernels that have the reduction in every type.
fn kernels(reduction: Reduction) -> impl Iterator<Item = SpmmKernel> {
    let has_it = move |kernel: &SpmmKernel| kernel.capabilities().has::<f16>(reduction);
    SpmmKernel::ALL.iter().copied().filter(has_it)
}

/// `alpha R + beta y` by the plan.
fn run<E: SpmmElement>(
    plan: &Spmm<E>,
    x: ArrayView2<'_, E>,
    [alpha, beta]: [f64; 2],
    y: ArrayView2<'_, E>,
) -> Array2<E> {
    let device = plan.device();
    let x_device = device.upload(x.as_slice().unwrap()).unwrap();
    let mut y_device = device.upload(y.as_slice().unwrap()).unwrap();
    let [alpha, beta] = [alpha, beta].map(<E::Sum as Scalar>::from_f64);
    plan.run_scaled(alpha, &x_device, x.ncols(), beta, &mut y_device)
        .unwrap_or_else(|error| panic!("{plan}: {error}"));
    Array2::from_shape_vec(y.dim(), y_device.download().unwrap()).unwrap()
}

/// The plan's result is within the bound of the reference's.
#[track_caller]
pub fn assert_verified<V: Scalar, E: SpmmElement>(
    plan: &Spmm<E>,
    a: &CsrMatrix<V>,
    x: ArrayView2<'_, E>,
    [alpha, beta]: [f64; 2],
    y: ArrayView2<'_, E>,
) {
    let found = run(plan, x, [alpha, beta], y);
    let longest = a.outer_iterator().map(|row| row.nnz()).max();
    let operation = Operation::new()
        .reduction(plan.reduction())
        .alpha(alpha)
        .beta(beta)
        .y(y)
        .depth(plan.summation_depth(longest.unwrap_or(0), x.ncols()));
    let verification = operation.verify(a.view(), x, found.view());
    assert!(
        verification.ok(),
        "{plan}, {} features, alpha {alpha}, beta {beta}: {verification}",
        x.ncols()
    );
}

/// A matrix of small whole numbers with these rows' columns.
pub fn whole<E: Scalar>(rows: &[Vec<u32>], cols: usize) -> CsrMatrix<E> {
    let mut indptr = vec![0_u32];
    let mut indices = Vec::new();
    for row in rows {
        indices.extend(row);
        indptr.push(indices.len() as u32);
    }
    let values = (0..indices.len()).map(|k| E::from_f64((k % 7) as f64 - 3.0));
    CsMatI::new((rows.len(), cols), indptr, indices, values.collect())
}

pub fn whole_dense<E: Scalar>(rows: usize, cols: usize) -> Array2<E> {
    Array2::from_shape_fn((rows, cols), |(i, j)| {
        E::from_f64(((i * 31 + j * 17) % 11) as f64 - 5.0)
    })
}

/// The reference's result of whole numbers, which f32 sums hold, rounded once.
fn exact<E: Scalar>(operation: Operation<'_, E>, a: &CsrMatrix<E>, x: &Array2<E>) -> Array2<E> {
    operation.compute(a.view(), x.view()).mapv(E::from_f64)
}
