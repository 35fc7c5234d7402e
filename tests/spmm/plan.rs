//! The SpMM plan: shapes, storages and lengths, against the reference on every device and with every kernel.

use ndarray::{Array2, ArrayView2, s};
use sprs::{CsMatI, CsMatViewI};
use support::devices;
use warprow::device::{Device, EmulatorOptions};
use warprow::operand::OperandError;
use warprow::reference::Operation;
use warprow::spmm::{Reduction, SpmmError};
use warprow::{
    CsrMatrix, Spmm, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning, generate, reference,
};

/// All kernels, and the plan's own choice.
fn choices() -> impl Iterator<Item = SpmmOptions> {
    let kernels = SpmmKernel::ALL.iter().copied().map(Some);
    kernels
        .chain([None])
        .map(|kernel| SpmmOptions::new().tuning(SpmmTuning::new().kernel(kernel)))
}

pub fn assert_right<T: SpmmElement>(
    a: CsMatViewI<'_, T, u32, u32>,
    x: ArrayView2<'_, T>,
    y: &Array2<T>,
    plan: &Spmm<T>,
) {
    assert_eq!(y.dim(), (a.rows(), x.ncols()), "{plan}");
    let verification = reference::verify_spmm(a, x, y.view());
    assert!(verification.ok(), "{plan}: {verification}");
}

fn every_kernel_multiplies<T: SpmmElement>(rows: u32, cols: u32, nnz: u32, features: usize) {
    let a = generate::uniform::<T>(rows, cols, nnz, 7).unwrap();
    let x = generate::dense::<T>(cols as usize, features, 8).unwrap();
    let has_type = |options: &SpmmOptions| {
        (options.tuning.kernel).is_none_or(|kernel| kernel.capabilities().has::<T>(Reduction::Sum))
    };
    for device in devices() {
        for options in choices().filter(has_type) {
            let plan = Spmm::plan(&device, a.view(), options).unwrap();
            let y = plan.multiply(x.view()).unwrap();
            assert_right(a.view(), x.view(), &y, &plan);
        }
    }
}

/// Checks that `plan`, of A or its transpose, whose rows are those of `of`, computes `alpha A X + beta Y`.
#[track_caller]
pub fn assert_scaled_right(
    plan: &Spmm<f32>,
    of: &CsrMatrix<f32>,
    reduction: Reduction,
    features: usize,
) {
    let x = generate::dense::<f32>(of.cols(), features, 7).unwrap();
    let before = generate::dense::<f32>(of.rows(), features, 8).unwrap();
    let on_device = plan.device().upload(x.as_slice().unwrap()).unwrap();
    let mut y = plan.device().upload(before.as_slice().unwrap()).unwrap();
    plan.run_scaled(1.5, &on_device, features, -0.5, &mut y)
        .unwrap();
    let y = Array2::from_shape_vec(before.dim(), y.download().unwrap()).unwrap();
    let operation = Operation::new()
        .reduction(reduction)
        .alpha(1.5)
        .beta(-0.5)
        .y(before.view());
    let checked = operation.verify(of.view(), x.view(), y.view());
    assert!(
        checked.ok(),
        "{reduction:?}, {features} features, {plan}: {checked}"
    );
}

/// The same matrix, but for a row that has a nonzero in each column.
pub fn with_long_row(a: &CsrMatrix<f32>) -> CsrMatrix<f32> {
    const LONG: usize = 123;
    let (mut indptr, mut indices, mut data) = (vec![0], vec![], vec![]);
    for (row, found) in a.outer_iterator().enumerate() {
        if row == LONG {
            indices.extend(0..a.cols() as u32);
            data.resize(indices.len(), 0.5);
        } else {
            indices.extend(found.indices());
            data.extend(found.data());
        }
        indptr.push(indices.len() as u32);
    }
    CsrMatrix::new(a.shape(), indptr, indices, data)
}

#[test]
fn every_kernel_multiplies_odd_and_rectangular_shapes() {
    for (rows, cols, nnz, features) in [
        (1, 1, 1, 1),
        (5, 4, 6, 3),
        (33, 65, 300, 31),
        (257, 31, 999, 65),
    ] {
        every_kernel_multiplies::<f32>(rows, cols, nnz, features);
        every_kernel_multiplies::<f64>(rows, cols, nnz, features);
    }
}

#[test]
fn a_plan_for_one_number_of_features_multiplies_with_any_other() {
    let a = generate::uniform::<f32>(70, 40, 500, 1).unwrap();
    for device in devices() {
        for planned in [0, 5, 1000] {
            let options = SpmmOptions::new().features(planned);
            let plan = Spmm::plan(&device, a.view(), options).unwrap();
            for features in [1, 5, 33] {
                let x = generate::dense::<f32>(40, features, 2).unwrap();
                assert_right(a.view(), x.view(), &plan.multiply(x.view()).unwrap(), &plan);
            }
        }
    }
}

#[test]
fn a_plan_that_knows_the_features_gives_a_gpu_tasks_that_all_run_at_once() {
    for device in devices() {
        let rows = 1_200 * device.properties().multiprocessors;
        let a = generate::uniform::<f32>(rows, 900, 8 * rows, 1).unwrap();
        for features in [32, 33] {
            let options = SpmmOptions::new().features(features);
            let plan = Spmm::plan(&device, a.view(), options).unwrap();
            let least = plan.to_string().contains(" tasks of 64 steps");
            assert_eq!(least, device.is_emulator(), "{plan}");
            let x = generate::dense::<f32>(900, features as usize, 2).unwrap();
            assert_right(a.view(), x.view(), &plan.multiply(x.view()).unwrap(), &plan);
        }
    }
}

#[test]
fn a_matrix_without_nonzeros_gives_zeros() {
    every_kernel_multiplies::<f32>(35, 4, 0, 5);
    every_kernel_multiplies::<f64>(1, 1, 0, 1);
}

#[test]
fn no_rows_no_columns_and_no_features_give_what_there_is() {
    for device in devices() {
        for (rows, cols, features) in [(0, 4, 3), (4, 0, 3), (4, 5, 0), (0, 0, 0), (0, 5, 0)] {
            let a = CsMatI::<f32, u32, u32>::zero((rows, cols));
            let x = Array2::from_elem((cols, features), 1.0);
            for options in choices() {
                let plan = Spmm::plan(&device, a.view(), options).unwrap();
                let y = plan.multiply(x.view()).unwrap();
                assert_eq!(y, Array2::<f32>::zeros((rows, features)), "{plan}");
            }
        }
    }
}

#[test]
fn a_matrix_by_columns_is_converted_and_a_view_of_some_rows_is_those() {
    let a = generate::uniform::<f64>(40, 23, 200, 1).unwrap();
    // For few features, the order in which a row is summed depends on the rows before it.
    let x = generate::dense::<f64>(23, 20, 2).unwrap();
    let by_columns = a.to_csc();
    let rows = 7..31;
    let some_rows = a.slice_outer(rows.clone());
    for device in devices() {
        let plan = Spmm::plan(&device, by_columns.view(), SpmmOptions::default()).unwrap();
        let whole = plan.multiply(x.view()).unwrap();
        assert_right(a.view(), x.view(), &whole, &plan);
        let plan = Spmm::plan(&device, some_rows.view(), SpmmOptions::default()).unwrap();
        let part = plan.multiply(x.view()).unwrap();
        assert_eq!(part, whole.slice(s![rows.clone(), ..]), "{plan}");
    }
}

#[test]
fn x_may_have_any_memory_layout() {
    let a = generate::uniform::<f32>(9, 12, 40, 3).unwrap();
    let wide = generate::dense::<f32>(24, 14, 4).unwrap();
    let view = wide.slice(s![..;2, ..;-2]);
    let columns = view.to_owned().reversed_axes();
    for device in devices() {
        let plan = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        assert_eq!(
            plan.multiply(view).unwrap(),
            plan.multiply(columns.t()).unwrap()
        );
        assert_right(a.view(), view, &plan.multiply(view).unwrap(), &plan);
    }
}

#[test]
fn a_plan_runs_many_times_with_any_number_of_features() {
    let a = generate::uniform::<f32>(50, 30, 170, 5).unwrap();
    for device in devices() {
        let plan = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        for features in [1, 32, 7] {
            let host = generate::dense::<f32>(30, features, 6).unwrap();
            let x = device.upload(host.as_slice().unwrap()).unwrap();
            let mut y = device.uninitialized(50 * features).unwrap();
            for _ in 0..3 {
                plan.run(&x, features, &mut y).unwrap();
            }
            let y = Array2::from_shape_vec((50, features), y.download().unwrap());
            assert_right(a.view(), host.view(), &y.unwrap(), &plan);
        }
    }
}

#[test]
fn a_length_that_does_not_fit_is_an_error_with_both_lengths() {
    let a = generate::uniform::<f32>(5, 4, 6, 1).unwrap();
    for device in devices() {
        let plan = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        let x = |len| device.zeros::<f32>(len).unwrap();
        let (right_x, mut right_y) = (x(12), x(15));
        let error = plan.run(&x(13), 3, &mut right_y).unwrap_err();
        assert!(
            matches!(
                error,
                SpmmError::Operand(OperandError::Length {
                    what: "x",
                    wanted: 12,
                    found: 13
                })
            ),
            "{error}"
        );
        let error = plan.run(&right_x, 3, &mut x(14)).unwrap_err();
        assert!(
            matches!(
                error,
                SpmmError::Operand(OperandError::Length {
                    what: "y",
                    wanted: 15,
                    found: 14
                })
            ),
            "{error}"
        );
        let error = plan.multiply(Array2::zeros((5, 3)).view()).unwrap_err();
        assert!(
            matches!(
                error,
                SpmmError::Operand(OperandError::Rows {
                    rows: 4,
                    found: (5, 3),
                    ..
                })
            ),
            "{error}"
        );
        if let Ok(features) = usize::try_from(1_u64 << 32) {
            let error = plan.run(&right_x, features, &mut right_y).unwrap_err();
            assert!(
                matches!(error, SpmmError::Operand(OperandError::TooLarge { .. })),
                "{error}"
            );
        }
    }
}

#[test]
fn a_buffer_of_another_device_is_an_error() {
    let a = generate::uniform::<f32>(2, 2, 2, 1).unwrap();
    let elsewhere = Device::emulator(EmulatorOptions::default());
    for device in devices() {
        let plan = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        let here = |device: &Device| device.zeros::<f32>(2).unwrap();
        for (x, y, what) in [(&elsewhere, &device, "x"), (&device, &elsewhere, "y")] {
            let error = plan.run(&here(x), 1, &mut here(y)).unwrap_err();
            assert!(
                matches!(error, SpmmError::Operand(OperandError::OtherDevice { what: found, .. }) if found == what),
                "{error}"
            );
        }
    }
}

#[test]
fn a_plan_says_what_it_is_and_whose_choice_the_kernel_was() {
    let a = generate::uniform::<f32>(5, 4, 6, 1).unwrap();
    let device = Device::emulator(EmulatorOptions::default());
    for options in choices() {
        let plan = Spmm::plan(&device, a.view(), options).unwrap();
        assert_eq!((plan.rows(), plan.cols(), plan.nnz()), (5, 4, 6));
        let text = plan.to_string();
        let why = if options.tuning.kernel.is_some() {
            "as asked for"
        } else {
            "the default"
        };
        for part in [
            "f32",
            "5 x 4",
            "6 nonzeros",
            "emulator",
            plan.kernel().name(),
            why,
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(
            options
                .tuning
                .kernel
                .is_none_or(|kernel| kernel == plan.kernel())
        );
    }
}
