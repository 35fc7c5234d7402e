//! SpMM and SpMV: every kernel of the product, type, reduction and order, in whole numbers, so that results are exact.

use super::{LAYOUTS, Layout, Wide, layout};
use ndarray::Array2;
use sprs::CsMatI;
use warprow::device::Device;
use warprow::reference::WholeProduct;
use warprow::spmm::{SpmmError, SpmmOptions, SpmmTuning, Spmv};
use warprow::{CsrMatrix, Reduction, RowOrder, Scalar, Spmm, SpmmElement, SpmmKernel, bf16, f16};

/// 45 x 83, with a row that has all columns, empty rows, and rows of a few nonzeros.
fn structure() -> CsrMatrix<f32> {
    let mut indptr = vec![0_u32];
    let mut indices = Vec::new();
    for row in 0..45_u32 {
        match row {
            7 => indices.extend(0..83),
            _ if row % 5 == 3 => {}
            _ => indices.extend((0..83).filter(|col| (col * 7 + row * 3) % 19 == row % 4)),
        }
        indptr.push(indices.len() as u32);
    }
    let values = vec![1.0; indices.len()];
    CsMatI::new((45, 83), indptr, indices, values)
}

fn product<E: SpmmElement>(
    spmm: &Spmm<E>,
    x: &Array2<E>,
    [of_x, of_y]: [Layout; 2],
    y: Option<&Array2<E>>,
) -> Array2<E> {
    let device = spmm.device();
    let old = Array2::from_elem((spmm.rows(), x.ncols()), E::from_f64(7.0));
    let x = Wide::new(device, x.view(), of_x);
    let features = x.cols;
    let mut result = Wide::new(device, y.unwrap_or(&old).view(), of_y);
    let (alpha, beta) = match y {
        Some(_) => (2.0, -3.0),
        None => (1.0, 0.0),
    };
    let [alpha, beta] = [alpha, beta].map(<E::Sum as Scalar>::from_f64);
    spmm.run_scaled(alpha, x.view(), features, beta, result.view_mut())
        .unwrap_or_else(|error| panic!("{spmm}: {error}"));
    result
        .download()
        .unwrap_or_else(|error| panic!("{spmm}, {features} features, {of_x:?} {of_y:?}: {error}"))
}

fn every_kernel_is_exact<E: SpmmElement>() {
    let structure = structure();
    for (number, device) in support::devices().into_iter().enumerate() {
        for (place, features) in [1, 2, 3, 8, 16, 33, 64, 66].into_iter().enumerate() {
            let whole = WholeProduct::<E>::new(structure.view(), features, 5);
            for kernel in [
                SpmmKernel::Vector,
                SpmmKernel::InStep,
                SpmmKernel::RowBins,
                SpmmKernel::RowGroups,
                SpmmKernel::Spmv,
            ] {
                // Small tasks split the long row between blocks.
                let tuning = SpmmTuning::new().kernel(kernel).task_size(16);
                let options = SpmmOptions::new().tuning(tuning);
                let spmm = Spmm::plan(&device, whole.a(), options).unwrap();
                for (k, of_x) in LAYOUTS.into_iter().enumerate() {
                    if !support::is_in_turn(&device, number, place + k) {
                        continue;
                    }
                    let of_y = LAYOUTS[(k * 3 + features) % LAYOUTS.len()];
                    let y = product(&spmm, &whole.x(), [of_x, of_y], None);
                    let checked = whole.verify(y.view());
                    assert!(
                        checked.is_exact(),
                        "{spmm}, {features} features, {of_x:?}, {of_y:?}: {checked}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_kernel_multiplies_columns_of_wider_buffers_exactly() {
    every_kernel_is_exact::<f32>();
    every_kernel_is_exact::<f64>();
    every_kernel_is_exact::<f16>();
    every_kernel_is_exact::<bf16>();
}

/// Every choice of a plan that changes how rows are read or written.
fn choices() -> Vec<SpmmOptions> {
    let tuned = |tuning: SpmmTuning| SpmmOptions::new().tuning(tuning.task_size(16));
    let vector = SpmmTuning::new().kernel(SpmmKernel::Vector);
    let mut choices = vec![
        SpmmOptions::default(),
        tuned(vector.order(RowOrder::Clustered)),
        tuned(vector.column_blocks(3)),
        tuned(
            SpmmTuning::new()
                .kernel(SpmmKernel::InStep)
                .order(RowOrder::FirstColumn),
        ),
    ];
    choices.extend([8, 16, 32].map(|lanes| tuned(vector.lanes(lanes))));
    let bins = SpmmTuning::new().kernel(SpmmKernel::RowBins);
    choices.push(tuned(bins.shared_x(true)));
    let joined = SpmmTuning::new().kernel(SpmmKernel::Vector).lanes(32);
    choices.push(SpmmOptions::new().tuning(joined.join_tasks(true)));
    for reduction in [Reduction::Mean, Reduction::Max, Reduction::Min] {
        choices.push(SpmmOptions::new().reduction(reduction));
        choices.push(tuned(vector).reduction(reduction));
    }
    choices
}

fn every_choice_agrees<E: SpmmElement>(device: &Device) {
    let structure = structure();
    for features in [5, 32, 66] {
        let whole = WholeProduct::<E>::new(structure.view(), features, 9);
        let y = Array2::from_shape_fn((45, features), |(i, j)| {
            E::from_f64(((i + 3 * j) % 5) as f64 - 2.0)
        });
        for options in choices() {
            let spmm = Spmm::plan(device, whole.a(), options).unwrap();
            for old in [None, Some(&y)] {
                let packed = product(&spmm, &whole.x(), [layout(0, 0); 2], old);
                for layouts in [
                    [layout(0, 3), layout(0, 8)],
                    [layout(0, 8), layout(0, 2)],
                    [layout(6, 2), layout(4, 4)],
                ] {
                    let found = product(&spmm, &whole.x(), layouts, old);
                    assert_eq!(found, packed, "{spmm}, {features} features, {layouts:?}");
                }
            }
        }
    }
}

#[test]
fn reductions_orders_blocks_alpha_and_beta_give_the_bits_of_packed_operands() {
    for device in support::devices() {
        every_choice_agrees::<f32>(&device);
        every_choice_agrees::<f16>(&device);
    }
}

#[test]
fn spmv_takes_a_column_of_a_matrix_and_writes_another() {
    let whole = WholeProduct::<f32>::new(structure().view(), 1, 3);
    for device in support::devices() {
        let spmv = Spmv::plan(&device, whole.a(), SpmmOptions::default()).unwrap();
        let x = Wide::new(&device, whole.x().view(), layout(3, 10));
        let mut y = Wide::new(&device, Array2::zeros((45, 1)).view(), layout(1, 6));
        spmv.run(x.view(), y.view_mut()).unwrap();
        let checked = whole.verify(y.download().unwrap().view());
        assert!(checked.is_exact(), "{spmv}: {checked}");
    }
}

#[test]
fn a_rung_of_the_ladder_takes_packed_operands_only() {
    let whole = WholeProduct::<f32>::new(structure().view(), 8, 3);
    let device = Device::emulator(Default::default());
    for &kernel in SpmmKernel::ALL {
        let options = SpmmOptions::new().tuning(SpmmTuning::new().kernel(kernel));
        let spmm = Spmm::plan(&device, whole.a(), options).unwrap();
        let x = Wide::new(&device, whole.x().view(), layout(0, 4));
        let mut y = device.zeros::<f32>(45 * 8).unwrap();
        let done = spmm.run(x.view(), 8, &mut y);
        match kernel.capabilities().general {
            true => done.unwrap(),
            false => assert!(
                matches!(&done, Err(SpmmError::Kernel { kernel: of, reason })
                    if *of == kernel.name() && reason.contains("gaps")),
                "{done:?}"
            ),
        }
    }
}
