//! XW by every kernel of the table, on every device, in every type: odd and rectangular shapes, empty
//! ones, columns from 1 to 1024, bias and ReLU, sums that cancel, infinities and NaN; and what a plan refuses.

mod bounds;
mod f32;
mod instances;
mod launch;
mod plan;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, s};
use proptest::prelude::*;
use warprow::device::Device;
use warprow::reference::{Arithmetic, DenseEpilogue, gemm, verify_gemm};
use warprow::{Gemm, GemmElement, GemmKernel, GemmOptions, GemmTuning, bf16, f16, generate};

/// The kernels that a type, a number of columns of X, and a device have; f32 as tf32 too.
pub fn choices<T: GemmElement>(device: &Device, depth: usize) -> Vec<GemmOptions> {
    let capability = device.properties().compute_capability;
    let runs = |kernel: GemmKernel| {
        kernel
            .required_arch()
            .includes((capability.major, capability.minor))
    };
    let kernels = GemmKernel::ALL
        .iter()
        .filter(|kernel| kernel.refusal::<T>(depth as u32).is_none() && runs(**kernel));
    let options = |&kernel| {
        GemmOptions::new()
            .tf32(true)
            .tuning(GemmTuning::new().kernel(kernel))
    };
    kernels.map(options).collect()
}

/// How a kernel computes in a type.
fn arithmetic<T: GemmElement>(kernel: GemmKernel) -> Arithmetic {
    match (kernel.rounds_f32(), T::NAME) {
        (true, "f32") => Arithmetic::tf32(),
        (_, "f16" | "bf16") => Arithmetic::tensor_cores(),
        _ => Arithmetic::of::<T>(),
    }
}

pub fn multiply<T: GemmElement>(
    device: &Device,
    x: ArrayView2<'_, T>,
    w: ArrayView2<'_, T>,
    bias: Option<ArrayView1<'_, T>>,
    options: GemmOptions,
) -> Array2<T> {
    Gemm::plan(device, w, bias, options)
        .and_then(|gemm| gemm.multiply(x))
        .unwrap_or_else(|error| panic!("{options:?} on {device}: {error}"))
}

fn every_choice_verifies<T: GemmElement>(
    x: ArrayView2<'_, T>,
    w: ArrayView2<'_, T>,
    bias: Option<ArrayView1<'_, T>>,
    relu: bool,
) {
    for (number, device) in support::devices().into_iter().enumerate() {
        for (turn, options) in choices::<T>(&device, x.ncols()).into_iter().enumerate() {
            // The emulators change places with the next shape.
            let turn = turn + x.nrows() + x.ncols() + w.ncols() + usize::from(relu);
            if !support::is_in_turn(&device, number, turn) {
                continue;
            }
            let options = options.relu(relu);
            let y = multiply(&device, x, w, bias, options);
            let arithmetic = arithmetic::<T>(options.tuning.kernel.unwrap());
            let epilogue = DenseEpilogue::new().bias(bias).relu(relu);
            let checked = verify_gemm(x, w, epilogue, arithmetic, y.view());
            let (m, k, n) = (x.nrows(), x.ncols(), w.ncols());
            assert!(
                checked.ok() && y.dim() == (m, n),
                "{} {m} x {k} by {k} x {n}, {options:?} on {device}: {checked}",
                T::NAME
            );
        }
    }
}

fn in_every_type(m: usize, k: usize, n: usize, with_bias: bool, relu: bool) {
    fn one<T: GemmElement>(m: usize, k: usize, n: usize, with_bias: bool, relu: bool) {
        let (x, w) = (
            generate::dense::<T>(m, k, 1).unwrap(),
            generate::dense::<T>(k, n, 2).unwrap(),
        );
        let bias = generate::dense::<T>(1, n, 3).unwrap().row(0).to_owned();
        every_choice_verifies(x.view(), w.view(), with_bias.then(|| bias.view()), relu);
    }
    one::<f32>(m, k, n, with_bias, relu);
    one::<f64>(m, k, n, with_bias, relu);
    one::<f16>(m, k, n, with_bias, relu);
    one::<bf16>(m, k, n, with_bias, relu);
}

#[test]
fn odd_and_rectangular_shapes_verify_in_every_type() {
    for (m, k, n) in [
        (1, 1, 1),
        (3, 2, 5),
        (130, 1, 16),
        (257, 33, 7),
        (100, 128, 16),
        (65, 47, 31),
        (300, 18, 33),
        // Rows of 16 bits that begin at any multiple of 4 bytes, in tiles of 48 columns, and end within a piece of 16.
        (70, 134, 41),
        // And at any multiple of 2 bytes, with one column of W and in several tiles of columns.
        (131, 129, 1),
        // Rows that are shorter than a vector, the last one alone.
        (129, 3, 1),
        (197, 63, 50),
        (75, 31, 97),
        (600, 9, 300),
    ] {
        in_every_type(m, k, n, false, false);
    }
}

#[test]
fn bias_and_relu_are_applied_once_also_where_w_is_taken_in_slices() {
    for (m, k, n) in [(70, 20, 10), (40, 300, 17), (5, 1, 49)] {
        in_every_type(m, k, n, true, false);
        in_every_type(m, k, n, true, true);
        in_every_type(m, k, n, false, true);
    }
}

#[test]
fn wide_and_deep_products_verify() {
    in_every_type(5, 1024, 3, true, false);
    in_every_type(5, 3, 1024, true, true);
    in_every_type(3, 602, 129, false, false);
}

#[test]
fn warps_that_stream_many_tiles_verify_with_w_in_shared_memory_and_without() {
    fn one<T: GemmElement>(m: usize, k: usize, n: usize) {
        let (x, w) = (
            generate::dense::<T>(m, k, 1).unwrap(),
            generate::dense::<T>(k, n, 2).unwrap(),
        );
        for (number, device) in support::devices().into_iter().enumerate() {
            for (turn, options) in choices::<T>(&device, k).into_iter().enumerate() {
                if !support::is_in_turn(&device, number, turn + n) {
                    continue;
                }
                let kernel = options.tuning.kernel.unwrap();
                if !kernel.name().ends_with("fragments") && kernel != GemmKernel::WarpgroupSplit {
                    continue;
                }
                let y = multiply(&device, x.view(), w.view(), None, options);
                let (epilogue, arithmetic) = (DenseEpilogue::default(), arithmetic::<T>(kernel));
                let checked = verify_gemm(x.view(), w.view(), epilogue, arithmetic, y.view());
                assert!(checked.ok(), "{options:?} on {device}: {checked}");
            }
        }
    }
    // More rows than the warps of two multiprocessors take at once.
    one::<f32>(1100, 20, 16);
    one::<f64>(1100, 20, 16);
    one::<f16>(1100, 20, 47);
    one::<f32>(900, 20, 70);
    one::<bf16>(900, 18, 70);
    // W is larger than shared memory.
    one::<f32>(150, 1300, 17);
    one::<f32>(70, 1302, 17);
    one::<f32>(70, 1302, 47);
    // W has room there, but not with columns that fill up its tile.
    one::<f32>(150, 602, 41);
    one::<f32>(70, 604, 46);
    one::<f64>(150, 602, 41);
    one::<f64>(20, 520, 44);
    one::<f64>(400, 300, 130);
}

#[test]
fn any_depth_around_a_step_verifies() {
    for k in [2, 4, 8, 15, 16, 17, 31, 32, 63, 64, 65] {
        in_every_type(20, k, 9, false, false);
    }
}

#[test]
fn no_rows_no_columns_and_no_depth_give_what_there_is() {
    fn one<T: GemmElement>() {
        for device in support::devices() {
            for (m, k, n) in [(0, 3, 4), (3, 4, 0), (0, 0, 0)] {
                let (x, w) = (
                    generate::dense::<T>(m, k, 1).unwrap(),
                    generate::dense(k, n, 2).unwrap(),
                );
                for options in choices::<T>(&device, k) {
                    let y = multiply(&device, x.view(), w.view(), None, options);
                    assert_eq!(y.dim(), (m, n), "{options:?}");
                }
            }
            for options in choices::<T>(&device, 0) {
                let (x, w) = (
                    Array2::from_elem((5, 0), T::ONE),
                    Array2::from_elem((0, 3), T::ONE),
                );
                let bias = Array1::from_vec([1.0, -2.0, 0.5].map(T::from_f64).to_vec());
                let y = multiply(&device, x.view(), w.view(), Some(bias.view()), options);
                assert!(y.rows().into_iter().all(|row| row == bias), "{options:?}");
            }
        }
    }
    one::<f32>();
    one::<f64>();
    one::<f16>();
    one::<bf16>();
}

#[test]
fn whole_numbers_multiply_exactly_in_every_type_by_every_kernel() {
    fn one<T: GemmElement>() {
        let whole = |seed: usize| {
            move |(i, j): (usize, usize)| T::from_f64(((i * 31 + j * 17 + seed) % 7) as f64 - 3.0)
        };
        for (m, k, n) in [(150, 20, 16), (33, 19, 50), (40, 8, 100)] {
            let (x, w) = (
                Array2::from_shape_fn((m, k), whole(1)),
                Array2::from_shape_fn((k, n), whole(5)),
            );
            let wanted = gemm(x.view(), w.view(), DenseEpilogue::default());
            for device in support::devices() {
                for options in choices::<T>(&device, k) {
                    let y = multiply(&device, x.view(), w.view(), None, options);
                    assert_eq!(
                        y.mapv(T::to_f64),
                        wanted,
                        "{}, {options:?} on {device}",
                        T::NAME
                    );
                }
            }
        }
    }
    one::<f32>();
    one::<f64>();
    one::<f16>();
    one::<bf16>();
}

#[test]
fn terms_that_cancel_keep_their_bound() {
    fn one<T: GemmElement>(big: f64) {
        let x = Array2::from_shape_fn((50, 41), |(i, k)| {
            let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
            T::from_f64(if k == 40 {
                0.5
            } else {
                sign * (big + (i + k / 2) as f64)
            })
        });
        let w = Array2::from_elem((41, 18), T::ONE);
        every_choice_verifies(x.view(), w.view(), None, false);
    }
    one::<f32>(1e6);
    one::<f64>(1e12);
    one::<f16>(500.0);
    one::<bf16>(1e6);
}

#[test]
fn infinities_and_nans_reach_their_row_and_column_and_no_other() {
    fn one<T: GemmElement>() {
        let (inf, nan) = (T::from_f64(f64::INFINITY), T::from_f64(f64::NAN));
        let mut x = generate::dense::<T>(140, 21, 1).unwrap();
        let mut w = generate::dense::<T>(21, 19, 2).unwrap();
        x[[3, 20]] = inf;
        x[[70, 0]] = nan;
        x[[139, 0]] = nan;
        w[[20, 18]] = inf;
        every_choice_verifies(x.view(), w.view(), None, false);
        every_choice_verifies(x.view(), w.view(), None, true);
        let mut finite_x = x.clone();
        for row in [3, 70, 139] {
            finite_x.row_mut(row).fill(T::ONE);
        }
        let finite = |y: &Array2<T>| y.iter().all(|y| y.to_f64().is_finite());
        for device in support::devices() {
            for options in choices::<T>(&device, x.ncols()) {
                let others = |x: &Array2<T>| {
                    let y = multiply(&device, x.view(), w.view(), None, options);
                    [s![4..70, ..18], s![71..139, ..18]].map(|rows| y.slice(rows).to_owned())
                };
                let y = others(&x);
                assert!(y.iter().all(finite), "{options:?}");
                assert_eq!(y, others(&finite_x), "{options:?}");
            }
        }
    }
    one::<f32>();
    one::<f64>();
    one::<f16>();
    one::<bf16>();
}

#[test]
fn a_sixteen_bit_result_beyond_the_range_is_infinite() {
    let (x, w) = (
        Array2::from_elem((3, 4), f16::from_f32(300.0)),
        Array2::from_elem((4, 2), f16::from_f32(300.0)),
    );
    every_choice_verifies(x.view(), w.view(), None, false);
}

#[test]
fn x_and_w_may_have_any_memory_layout_and_a_plan_runs_many_times() {
    let wide = generate::dense::<f32>(60, 44, 4).unwrap();
    let (x, w) = (wide.slice(s![..;2, ..;-2]), wide.t());
    let w = w.slice(s![..22, 3..9]);
    for device in support::devices() {
        let gemm = Gemm::plan(&device, w, None, GemmOptions::default()).unwrap();
        for rows in [30, 7, 0] {
            let x = x.slice(s![..rows, ..]);
            let y = gemm.multiply(x).unwrap();
            let checked = verify_gemm(
                x,
                w,
                DenseEpilogue::default(),
                Arithmetic::of::<f32>(),
                y.view(),
            );
            assert!(checked.ok(), "{gemm}: {checked}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_product_of_whole_numbers_is_exact(m in 0_usize..150, k in 0_usize..70, n in 0_usize..70) {
        let number = |(i, j): (usize, usize)| ((i * 13 + j * 7) % 9) as f32 - 4.0;
        let (x, w) = (Array2::from_shape_fn((m, k), number), Array2::from_shape_fn((k, n), number));
        let wanted = gemm(x.view(), w.view(), DenseEpilogue::default());
        let device = Device::emulator(Default::default());
        for options in choices::<f32>(&device, k) {
            let y = multiply(&device, x.view(), w.view(), None, options);
            prop_assert_eq!(y.mapv(f64::from), wanted.clone(), "{:?}", options);
        }
    }
}
