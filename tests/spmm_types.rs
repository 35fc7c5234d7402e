//! SpMM in every element type, with every reduction, alpha and beta, transposed and deterministic, on every device: against
//! the reference, and exactly where whole numbers allow it.

mod support;

use ndarray::{Array2, ArrayView2, s};
use proptest::prelude::*;
use sprs::CsMatI;
use support::devices;
use warprow::reference::Operation;
use warprow::spmm::Shape;
use warprow::{
    CsrMatrix, Device, Error, Reduction, Scalar, Spmm, SpmmElement, SpmmKernel, SpmmOptions, bf16,
    f16, generate,
};

/// Runs a generic test in every type of elements.
macro_rules! in_every_type {
    ($test:ident($($argument:expr),*)) => {
        $test::<f32>($($argument),*);
        $test::<f64>($($argument),*);
        $test::<f16>($($argument),*);
        $test::<bf16>($($argument),*);
    };
}

/// Tasks small enough to cut most rows.
fn cut(reduction: Reduction) -> SpmmOptions {
    SpmmOptions {
        reduction,
        task_size: Some(16),
        ..SpmmOptions::default()
    }
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
fn assert_verified<V: Scalar, E: SpmmElement>(
    plan: &Spmm<E>,
    a: &CsrMatrix<V>,
    x: ArrayView2<'_, E>,
    [alpha, beta]: [f64; 2],
    y: ArrayView2<'_, E>,
) {
    let found = run(plan, x, [alpha, beta], y);
    let operation = Operation {
        reduction: plan.reduction(),
        alpha,
        beta,
        y: Some(y),
    };
    let verification = operation.verify(a.view(), x, found.view());
    assert!(
        verification.ok(),
        "{plan}, {} features, alpha {alpha}, beta {beta}: {verification}",
        x.ncols()
    );
}

/// A matrix of small whole numbers with these rows' columns.
fn whole<E: Scalar>(rows: &[Vec<u32>], cols: usize) -> CsrMatrix<E> {
    let mut indptr = vec![0_u32];
    let mut indices = Vec::new();
    for row in rows {
        indices.extend(row);
        indptr.push(indices.len() as u32);
    }
    let values = (0..indices.len()).map(|k| E::from_f64((k % 7) as f64 - 3.0));
    CsMatI::new((rows.len(), cols), indptr, indices, values.collect())
}

fn whole_dense<E: Scalar>(rows: usize, cols: usize) -> Array2<E> {
    Array2::from_shape_fn((rows, cols), |(i, j)| {
        E::from_f64(((i * 31 + j * 17) % 11) as f64 - 5.0)
    })
}

/// The reference's result of whole numbers, which f32 sums hold, rounded once.
fn exact<E: Scalar>(operation: Operation<'_, E>, a: &CsrMatrix<E>, x: &Array2<E>) -> Array2<E> {
    operation.compute(a.view(), x.view()).mapv(E::from_f64)
}

const FACTORS: [[f64; 2]; 6] = [
    [1.0, 0.0],
    [2.5, 0.0],
    [-1.0, 1.0],
    [0.75, -0.3125],
    [0.0, 2.0],
    [0.0, 0.0],
];

fn reductions_verify_at_odd_widths<E: SpmmElement>() {
    let a = generate::uniform::<E>(37, 53, 400, 1).unwrap();
    let wide = generate::uniform::<E::Sum>(37, 53, 400, 2).unwrap();
    for device in devices() {
        for reduction in Reduction::ALL {
            let plan = Spmm::<E>::plan(&device, a.view(), cut(reduction)).unwrap();
            let plan_wide = Spmm::<E>::plan_wide(&device, wide.view(), cut(reduction)).unwrap();
            for (k, features) in [1, 2, 3, 7, 8, 31, 33, 36, 64, 100, 136]
                .into_iter()
                .enumerate()
            {
                let x = generate::dense::<E>(53, features, 3);
                let y = generate::dense::<E>(37, features, 4);
                for factors in [FACTORS[k % 6], FACTORS[(k + 3) % 6]] {
                    assert_verified(&plan, &a, x.view(), factors, y.view());
                    assert_verified(&plan_wide, &wide, x.view(), factors, y.view());
                }
            }
        }
    }
}

#[test]
fn every_reduction_of_either_type_of_values_verifies_at_odd_widths() {
    in_every_type!(reductions_verify_at_odd_widths());
}

fn cut_rows_are_exact<E: SpmmElement>() {
    let mut rows: Vec<Vec<u32>> = (0..60).map(|i| (0..(i * 7) % 23).collect()).collect();
    rows[3] = (0..1500).collect();
    rows[4] = (0..64).collect();
    rows[59] = (5..400).collect();
    let a = whole::<E>(&rows, 1500);
    for features in [5, 32, 72] {
        let (x, y) = (
            whole_dense::<E>(1500, features),
            whole_dense::<E>(60, features),
        );
        for device in devices() {
            for reduction in [Reduction::Sum, Reduction::Max, Reduction::Min] {
                let operation = Operation {
                    reduction,
                    alpha: 2.0,
                    beta: -3.0,
                    y: Some(y.view()),
                };
                let expected = exact(operation, &a, &x);
                for size in [1, 7, 64, 1 << 20] {
                    let options = SpmmOptions {
                        reduction,
                        task_size: Some(size),
                        ..SpmmOptions::default()
                    };
                    let plan = Spmm::plan(&device, a.view(), options).unwrap();
                    let found = run(&plan, x.view(), [2.0, -3.0], y.view());
                    assert_eq!(found, expected, "{plan}");
                }
            }
        }
    }
}

#[test]
fn alpha_and_beta_count_once_in_rows_cut_over_any_number_of_tasks() {
    in_every_type!(cut_rows_are_exact());
}

fn empty_rows_are_zero<E: SpmmElement>() {
    let a = whole::<E>(&[vec![], vec![0, 2], vec![], vec![]], 3);
    let none = CsrMatrix::<E>::zero((4, 3));
    let nan = Array2::from_elem((4, 6), E::from_f64(f64::NAN));
    let y = whole_dense::<E>(4, 6);
    let x = whole_dense::<E>(3, 6);
    for device in devices() {
        for reduction in Reduction::ALL {
            let plan = Spmm::plan(&device, a.view(), cut(reduction)).unwrap();
            let found = run(&plan, x.view(), [2.0, 0.0], nan.view());
            for row in [0, 2, 3] {
                let row = found.row(row);
                assert!(
                    row.iter().all(|v| v.to_f64().to_bits() == 0),
                    "{plan}: {row:?}"
                );
            }
            let plan = Spmm::plan(&device, none.view(), cut(reduction)).unwrap();
            let found = run(&plan, x.view(), [2.0, 3.0], y.view());
            let expected = y.mapv(|v| E::from_f64(3.0 * v.to_f64()));
            assert_eq!(found, expected, "{plan}");
        }
    }
}

#[test]
fn a_row_without_nonzeros_is_zero_or_beta_y_with_every_reduction() {
    in_every_type!(empty_rows_are_zero());
}

#[test]
fn no_rows_no_columns_and_no_features_give_what_there_is() {
    for device in devices() {
        for (rows, cols, features) in [(0, 4, 3), (4, 0, 3), (4, 5, 0), (0, 0, 0)] {
            let a = CsrMatrix::<f16>::zero((rows, cols));
            let x = whole_dense::<f16>(cols, features);
            let y = whole_dense::<f16>(rows, features);
            for reduction in Reduction::ALL {
                let plan = Spmm::plan(&device, a.view(), cut(reduction)).unwrap();
                let found = run(&plan, x.view(), [1.0, -1.0], y.view());
                assert_eq!(found, y.mapv(|v| f16::from_f32(-v.to_f32())), "{plan}");
            }
        }
    }
}

fn nans_and_infinities_go_where_they_are_read<E: SpmmElement>() {
    // Rows of 40 nonzeros are cut into three or four parts.
    let rows: Vec<Vec<u32>> = (0..6).map(|i| (i..i + 40).collect()).collect();
    let ones = whole::<E>(&rows, 50).map(|_| E::ONE);
    for special in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut x = whole_dense::<E>(50, 9);
        // Column 41 is read by the rows from 2 on, column 3 by those to 3.
        x[(41, 4)] = E::from_f64(special);
        x[(3, 7)] = E::from_f64(special);
        let y = Array2::from_elem((6, 9), E::from_f64(f64::NAN));
        for device in devices() {
            for reduction in Reduction::ALL {
                let plan = Spmm::plan(&device, ones.view(), cut(reduction)).unwrap();
                assert_verified(&plan, &ones, x.view(), [1.0, 0.0], y.view());
                assert_verified(&plan, &ones, x.view(), [-2.0, 0.0], y.view());
                let found = run(&plan, x.view(), [0.0, 0.0], y.view());
                assert!(found.iter().all(|v| v.to_f64() == 0.0), "alpha 0: {plan}");
            }
        }
    }
}

#[test]
fn nans_and_infinities_propagate_in_every_reduction_and_not_through_zero_factors() {
    in_every_type!(nans_and_infinities_go_where_they_are_read());
}

#[test]
fn y_need_not_be_written_before_if_beta_is_zero() {
    // The emulator reports the read of what nobody has written.
    let a = generate::uniform::<f16>(30, 20, 90, 1).unwrap();
    let x = generate::dense::<f16>(20, 16, 2);
    for device in devices() {
        for reduction in Reduction::ALL {
            let plan = Spmm::plan(&device, a.view(), cut(reduction)).unwrap();
            let x = device.upload(x.as_slice().unwrap()).unwrap();
            let mut y = device.uninitialized(30 * 16).unwrap();
            plan.run_scaled(0.5, &x, 16, 0.0, &mut y).unwrap();
            assert_eq!(y.download().unwrap().len(), 30 * 16);
        }
    }
}

#[test]
fn sums_that_cancel_and_overflow_are_those_of_f32_rounded_once() {
    // 60000 + 60000 - 60000 is beyond f16 on its way only; 60000 + 60000 at its end.
    let a = CsMatI::<f16, u32, u32>::new(
        (2, 3),
        vec![0, 3, 5],
        vec![0, 1, 2, 0, 1],
        vec![f16::ONE; 5],
    );
    let big = f16::from_f32(60000.0);
    let x = Array2::from_shape_vec((3, 1), vec![big, big, -big]).unwrap();
    for device in devices() {
        let plan = Spmm::plan(&device, a.view(), SpmmOptions::default()).unwrap();
        let y = plan.multiply(x.view()).unwrap();
        assert_eq!(y.as_slice().unwrap(), [big, f16::INFINITY], "{plan}");
        let zeros = Array2::zeros((2, 1)).mapv(f16::from_f32);
        assert_verified(&plan, &a, x.view(), [1.0, 0.0], zeros.view());
    }
}

fn transposes_are_those_of_the_reference<E: SpmmElement>() {
    let a = generate::uniform::<E>(41, 29, 300, 5).unwrap();
    let x = generate::dense::<E>(41, 12, 6);
    let transpose = a.transpose_view().to_csr();
    let part = a.slice_outer(7..30);
    let part_transpose = part.transpose_view().to_csr();
    let zeros = Array2::from_elem((29, 12), E::from_f64(0.0));
    for device in devices() {
        for reduction in [Reduction::Sum, Reduction::Mean] {
            let options = SpmmOptions {
                transpose: true,
                ..cut(reduction)
            };
            for stored in [a.clone(), a.to_csc()] {
                let plan = Spmm::plan(&device, stored.view(), options).unwrap();
                assert_eq!((plan.rows(), plan.cols()), (29, 41));
                assert!(plan.to_string().contains("the transpose"), "{plan}");
                assert_verified(&plan, &transpose, x.view(), [1.0, 0.0], zeros.view());
            }
            let plan = Spmm::plan(&device, part.view(), options).unwrap();
            let x = x.slice(s![7..30, ..]);
            assert_verified(&plan, &part_transpose, x, [1.0, 0.0], zeros.view());
        }
    }
}

#[test]
fn a_plan_for_the_transpose_multiplies_with_it_however_a_is_stored() {
    in_every_type!(transposes_are_those_of_the_reference());
}

fn bits<E: SpmmElement>(y: &Array2<E>) -> Vec<u64> {
    y.iter().map(|v| v.to_f64().to_bits()).collect()
}

fn two_runs_have_the_same_bits<E: SpmmElement>() {
    let a = generate::rmat::<E>(200, 3000, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
    let x = generate::dense::<E>(200, 24, 4);
    for device in devices() {
        for reduction in Reduction::ALL {
            let options = SpmmOptions {
                deterministic: true,
                ..cut(reduction)
            };
            let product = || {
                let plan = Spmm::plan(&device, a.view(), options).unwrap();
                let once = plan.multiply(x.view()).unwrap();
                [once, plan.multiply(x.view()).unwrap()]
            };
            let [one, two] = product();
            let [three, _] = product();
            assert_eq!(bits(&one), bits(&two), "{reduction:?} on {device}");
            assert_eq!(
                bits(&one),
                bits(&three),
                "another plan: {reduction:?} on {device}"
            );
        }
    }
}

#[test]
fn deterministic_plans_give_the_same_bits_in_every_run() {
    in_every_type!(two_runs_have_the_same_bits());
}

fn every_shape_has_an_instance<E: SpmmElement>() {
    for &kernel in SpmmKernel::ALL {
        for reduction in Reduction::ALL {
            if !kernel.capabilities().has::<E>(reduction) {
                continue;
            }
            for features in (1..300).chain([602, 1024, 4099]) {
                for lanes in [8, 16, 32] {
                    let shape = Shape {
                        rows: 1000,
                        items: 500,
                        cols: 700,
                        features,
                        lanes,
                    };
                    // It panics where the kernel is not instantiated.
                    let _ = kernel.handle::<E>(shape, reduction, lanes == 8);
                }
            }
        }
    }
}

#[test]
fn every_variant_that_a_launch_may_choose_is_instantiated() {
    in_every_type!(every_shape_has_an_instance());
}

#[test]
fn a_kernel_that_cannot_do_what_is_asked_for_is_an_error_that_says_what_it_can() {
    let device = Device::emulator(Default::default());
    let a = generate::uniform::<f32>(5, 4, 6, 1).unwrap();
    let narrow = generate::uniform::<f16>(5, 4, 6, 1).unwrap();
    for &kernel in SpmmKernel::ALL {
        let capabilities = kernel.capabilities();
        let options = SpmmOptions {
            kernel: Some(kernel),
            ..SpmmOptions::default()
        };
        let refusal = |error: Option<Error>, wanted: &str| match error {
            Some(error @ Error::Kernel { .. }) => {
                let text = error.to_string();
                assert!(
                    text.contains(kernel.name()) && text.contains(wanted),
                    "{text}"
                );
                assert!(text.contains(&capabilities.to_string()), "{text}");
                true
            }
            Some(error) => panic!("{error}"),
            None => false,
        };
        let max = SpmmOptions {
            reduction: Reduction::Max,
            ..options
        };
        let error = Spmm::plan(&device, a.view(), max).err();
        assert_eq!(refusal(error, "max in f32"), !capabilities.general);
        let error = Spmm::plan(&device, narrow.view(), options).err();
        assert_eq!(refusal(error, "sum in f16"), !capabilities.general);
        let deterministic = SpmmOptions {
            deterministic: true,
            ..options
        };
        let error = Spmm::plan(&device, a.view(), deterministic).err();
        assert_eq!(refusal(error, "the same bits"), !capabilities.deterministic);

        let plan = Spmm::plan(&device, a.view(), options).unwrap();
        let x = device.zeros::<f32>(8).unwrap();
        let mut y = device.zeros::<f32>(10).unwrap();
        let error = plan.run_scaled(2.0, &x, 2, 0.0, &mut y).err();
        assert_eq!(
            refusal(error, "alpha 2.0 and beta 0.0"),
            !capabilities.general
        );
        plan.run_scaled(1.0, &x, 2, 0.0, &mut y).unwrap();
    }
    let general = SpmmKernel::ALL.iter().filter(|k| k.capabilities().general);
    let atomic = SpmmKernel::ALL
        .iter()
        .filter(|k| !k.capabilities().deterministic);
    assert!(general.count() >= 1 && atomic.count() >= 1);
}

#[test]
fn x_and_y_of_more_than_2_to_the_32_elements_are_reached_to_their_ends() {
    let wanted: u64 = 12 << 30;
    let device = match support::cuda() {
        Some(device) => device,
        None => return println!("skipped: X of 8.6 GB wants a GPU"),
    };
    let free = device.memory().unwrap().map_or(0, |memory| memory.free);
    if free < wanted {
        return println!("skipped: {wanted} bytes wanted on {device}, {free} are free");
    }
    // The first product writes N x 64 elements, all of its rows but five zero; the second one reads those five.
    let (n, features) = ((1_usize << 26) + 1000, 64);
    let rows = [0, 5, n / 2, n - 600, n - 1];
    let mut indptr = vec![0_u32; n + 1];
    for (k, row) in rows.into_iter().enumerate() {
        indptr[row + 1..].fill(k as u32 + 1);
    }
    let scatter = CsMatI::<f16, u32, u32>::new(
        (n, 5),
        indptr,
        vec![0, 1, 2, 3, 4],
        vec![f16::from_f32(3.0); 5],
    );
    let gather = CsMatI::<f16, u32, u32>::new(
        (3, n),
        vec![0, 2, 3, 6],
        [0, n - 1, n - 600, 5, n / 2, n - 2]
            .map(|col| col as u32)
            .to_vec(),
        [1.0, -2.0, 1.0, 1.0, 2.0, 1.0].map(f16::from_f32).to_vec(),
    );
    let x = whole_dense::<f16>(5, features);
    let x_device = device.upload(x.as_slice().unwrap()).unwrap();
    let mut between = device.uninitialized::<f16>(n * features).unwrap();
    let mut y_device = device.uninitialized::<f16>(3 * features).unwrap();
    let plan = Spmm::plan(&device, scatter.view(), SpmmOptions::default()).unwrap();
    plan.run(&x_device, features, &mut between).unwrap();
    let plan = Spmm::plan(&device, gather.view(), SpmmOptions::default()).unwrap();
    plan.run(&between, features, &mut y_device).unwrap();
    let y = y_device.download().unwrap();
    let of = |row: usize, j: usize| 3.0 * x[(row, j)].to_f32();
    for j in 0..features {
        let expected = [
            of(0, j) - 2.0 * of(4, j),
            of(3, j),
            of(1, j) + 2.0 * of(2, j),
        ];
        for (row, expected) in expected.into_iter().enumerate() {
            assert_eq!(
                y[row * features + j].to_f32(),
                expected,
                "row {row}, feature {j}"
            );
        }
    }
}

/// Rows of any length over up to 40 columns, some of them empty.
fn any_rows() -> impl Strategy<Value = (Vec<Vec<u32>>, usize)> {
    (1_u32..40).prop_flat_map(|cols| {
        let row = proptest::collection::btree_set(0..cols, 0..=cols as usize);
        let row = row.prop_map(|row| row.into_iter().collect());
        (proptest::collection::vec(row, 0..30), Just(cols as usize))
    })
}

fn any_product_is_exact<E: SpmmElement>(
    (rows, cols): &(Vec<Vec<u32>>, usize),
    features: usize,
    options: SpmmOptions,
    [alpha, beta]: [f64; 2],
) {
    let a = whole::<E>(rows, *cols);
    let (x, y) = (
        whole_dense::<E>(*cols, features),
        whole_dense::<E>(rows.len(), features),
    );
    let operation = Operation {
        reduction: options.reduction,
        alpha,
        beta,
        y: Some(y.view()),
    };
    for device in devices() {
        let plan = Spmm::plan(&device, a.view(), options).unwrap();
        let found = run(&plan, x.view(), [alpha, beta], y.view());
        assert_eq!(found, exact(operation, &a, &x), "{plan}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_matrix_any_width_and_any_whole_factors_are_exact(
        matrix in any_rows(),
        features in 1_usize..80,
        task_size in 1_u32..50,
        reduction in proptest::sample::select(vec![Reduction::Sum, Reduction::Max, Reduction::Min]),
        alpha in -3_i32..4,
        beta in -3_i32..4,
    ) {
        let options = SpmmOptions { reduction, task_size: Some(task_size), ..SpmmOptions::default() };
        in_every_type!(any_product_is_exact(&matrix, features, options, [alpha.into(), beta.into()]));
    }
}
