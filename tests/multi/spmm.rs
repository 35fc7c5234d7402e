//! SpMM over several devices against the reference, and bit by bit against one device.

use crate::device_sets;
use ndarray::{Array2, s};
use warprow::multi::{Distribution, DivisionOptions, MultiSpmmOptions, OperandRows, RowCuts, Spmm};
use warprow::reference::{Operation, WholeProduct, verify_spmm};
use warprow::{
    CsrMatrix, Reduction, RowOrder, SpmmElement, SpmmKernel, SpmmOptions, SpmmTuning, bf16, f16,
    generate,
};

/// Matrices of all kinds: with hubs, rectangular, with one enormous row, without a halo, with nothing but halo, and
/// empty in each way.
fn structures() -> Vec<(&'static str, CsrMatrix<f32>)> {
    let rmat = generate::rmat(150, 1500, [0.57, 0.19, 0.19, 0.05], 1).unwrap();
    let shift = |by: u32| {
        let columns = (0..40).map(|row| (row + by) % 40).collect();
        CsrMatrix::new((40, 40), (0..=40).collect(), columns, vec![1.0; 40])
    };
    let mut row_ptr = vec![0, 1, 901];
    row_ptr.extend(902..905);
    let columns = [5].into_iter().chain(0..900).chain(7..10).collect();
    let enormous = CsrMatrix::new((5, 900), row_ptr, columns, vec![1.0; 904]);
    vec![
        ("hubs", rmat),
        ("a band", band(203, 3)),
        ("wide", generate::uniform(30, 200, 700, 2).unwrap()),
        ("tall", generate::uniform(200, 30, 700, 3).unwrap()),
        (
            "fewer rows than parts",
            generate::uniform(2, 9, 10, 4).unwrap(),
        ),
        ("one enormous row", enormous),
        ("no halo", shift(0)),
        ("only halo", shift(20)),
        ("no nonzeros", CsrMatrix::zero((7, 7))),
        ("no rows", CsrMatrix::zero((0, 7))),
        ("no columns", CsrMatrix::zero((7, 0))),
    ]
}

/// Each row selects the rows of X around it, so most rows of a part need no halo.
fn band(rows: usize, width: usize) -> CsrMatrix<f32> {
    let of_row = |row: usize| row.saturating_sub(width)..(row + width + 1).min(rows);
    let mut row_ptr = vec![0];
    row_ptr.extend((0..rows).scan(0, |end, row| {
        *end += of_row(row).len() as u32;
        Some(*end)
    }));
    let columns: Vec<u32> = (0..rows)
        .flat_map(of_row)
        .map(|column| column as u32)
        .collect();
    let values = vec![1.0; columns.len()];
    CsrMatrix::new((rows, rows), row_ptr, columns, values)
}

fn divisions() -> [DivisionOptions; 5] {
    let default = DivisionOptions::new();
    [
        default,
        default.operand(OperandRows::Replicated),
        default.cuts(RowCuts::Never),
        default.distribution(Distribution::Cyclic),
        default.order(RowOrder::Clustered),
    ]
}

fn is_exact<E: SpmmElement>(divisions: &[DivisionOptions]) {
    for (name, a) in structures() {
        let product = WholeProduct::<E>::new(a.view(), 5, 1);
        for devices in device_sets() {
            for &division in divisions {
                let options = MultiSpmmOptions::new().division(division);
                let spmm = Spmm::plan(&devices, product.a(), options).unwrap();
                let y = spmm.multiply(product.x().view()).unwrap();
                let checked = product.verify(y.view());
                assert!(checked.ok(), "{name}: {checked}: {spmm}");
                // The halos travel from device to device.
                let mut x = spmm.upload(product.x().view()).unwrap();
                let mut y = spmm.result(5).unwrap();
                for _ in 0..2 {
                    spmm.run(&mut x, &mut y).unwrap();
                    let checked = product.verify(spmm.download(&y).unwrap().view());
                    assert!(checked.ok(), "{name}, exchanged: {checked}: {spmm}");
                }
            }
        }
    }
}

#[test]
fn products_of_whole_numbers_are_exact_in_f32() {
    is_exact::<f32>(&divisions());
}

#[test]
fn products_of_whole_numbers_are_exact_in_f64_f16_and_bf16() {
    is_exact::<f64>(&divisions()[..1]);
    is_exact::<f16>(&divisions()[..1]);
    is_exact::<bf16>(&divisions()[..1]);
}

#[test]
fn other_reductions_of_cut_rows_are_those_of_the_whole_row() {
    for (name, a) in structures() {
        // No minimum or maximum of a row is 0.
        let a = a.map(|value| value + 3.0);
        let x = generate::dense::<f32>(a.cols(), 3, 7).unwrap();
        for devices in device_sets() {
            for reduction in [
                Reduction::Sum,
                Reduction::Mean,
                Reduction::Max,
                Reduction::Min,
            ] {
                let options = MultiSpmmOptions::new().spmm(SpmmOptions::new().reduction(reduction));
                let spmm = Spmm::plan(&devices, a.view(), options).unwrap();
                let y = spmm.multiply(x.view()).unwrap();
                let operation = Operation::new().reduction(reduction);
                let checked = operation.verify(a.view(), x.view(), y.view());
                assert!(checked.ok(), "{name} {reduction:?}: {checked}: {spmm}");
            }
        }
    }
}

#[test]
fn with_a_kernel_that_sums_a_row_in_one_order_the_bits_are_those_of_one_device() {
    let tuning = SpmmTuning::new().kernel(SpmmKernel::WarpPerRow);
    let spmm = SpmmOptions::new().deterministic(true).tuning(tuning);
    let division = DivisionOptions::new()
        .cuts(RowCuts::Never)
        .order(RowOrder::Given);
    let options = MultiSpmmOptions::new().spmm(spmm).division(division);
    for (name, a) in structures() {
        let x = generate::dense::<f32>(a.cols(), 9, 7).unwrap();
        for devices in device_sets() {
            let one = warprow::Spmm::plan(devices.first(), a.view(), options.spmm).unwrap();
            let wanted = one.multiply(x.view()).unwrap();
            let spmm = Spmm::plan(&devices, a.view(), options).unwrap();
            let bits = |y: Array2<f32>| y.mapv(f32::to_bits);
            assert_eq!(
                bits(spmm.multiply(x.view()).unwrap()),
                bits(wanted),
                "{name}: {spmm}"
            );
        }
    }
}

#[test]
fn a_transposed_product_is_right() {
    let a = generate::uniform::<f32>(60, 90, 500, 2).unwrap();
    let x = generate::dense::<f32>(60, 4, 7).unwrap();
    for devices in device_sets() {
        let mut options = MultiSpmmOptions::default();
        options.spmm.transpose = true;
        let spmm = Spmm::plan(&devices, a.view(), options).unwrap();
        let y = spmm.multiply(x.view()).unwrap();
        let transposed = a.transpose_view().to_csr();
        let checked = verify_spmm(transposed.view(), x.view(), y.view());
        assert!(checked.ok(), "{checked}: {spmm}");
    }
}

#[test]
fn a_product_becomes_the_next_operand_where_it_is() {
    let a = generate::rmat::<f32>(120, 900, [0.57, 0.19, 0.19, 0.05], 5).unwrap();
    let a = a.map(|value| value.signum());
    let x = Array2::from_elem((120, 3), 1.0_f32);
    let wanted = Operation::default().compute(a.view(), x.view());
    let wanted = Operation::default().compute(a.view(), wanted.mapv(|y| y as f32).view());
    for devices in device_sets() {
        let spmm = Spmm::plan(&devices, a.view(), MultiSpmmOptions::default()).unwrap();
        let mut operand = spmm.upload(x.view()).unwrap();
        let mut y = spmm.result(3).unwrap();
        spmm.run(&mut operand, &mut y).unwrap();
        operand.copy_own_rows(&y).unwrap();
        spmm.run(&mut operand, &mut y).unwrap();
        assert_eq!(spmm.download(&y).unwrap().mapv(f64::from), wanted, "{spmm}");
    }
}

#[test]
fn an_operand_may_have_any_memory_layout_in_every_order_of_rows() {
    let a = generate::rmat::<f32>(120, 900, [0.57, 0.19, 0.19, 0.05], 5).unwrap();
    let whole = WholeProduct::<f32>::new(a.view(), 5, 7);
    let by_columns = whole.x().reversed_axes().as_standard_layout().into_owned();
    let mut spread = Array2::zeros((120, 9));
    spread.slice_mut(s![.., 2..7]).assign(&whole.x());
    let views = [by_columns.t(), spread.slice(s![.., 2..7])];
    for devices in device_sets() {
        for order in [RowOrder::Given, RowOrder::FirstColumn] {
            let division = DivisionOptions::new().order(order);
            let options = MultiSpmmOptions::new().division(division);
            let spmm = Spmm::plan(&devices, whole.a(), options).unwrap();
            for x in views {
                let mut operand = spmm.upload(x).unwrap();
                let mut y = spmm.result(5).unwrap();
                spmm.run(&mut operand, &mut y).unwrap();
                for y in [spmm.download(&y).unwrap(), spmm.multiply(x).unwrap()] {
                    assert!(whole.verify(y.view()).is_exact(), "{order:?}: {spmm}");
                }
            }
        }
    }
}

#[test]
fn wrong_shapes_and_matrices_of_other_plans_are_refused() {
    let a = generate::uniform::<f32>(20, 30, 100, 2).unwrap();
    for devices in device_sets() {
        let spmm = Spmm::plan(&devices, a.view(), MultiSpmmOptions::default()).unwrap();
        let short = generate::dense::<f32>(29, 4, 1).unwrap();
        let message = spmm.multiply(short.view()).unwrap_err().to_string();
        assert!(
            message.contains("x is 29 x 4, wanted are 30 rows"),
            "{message}"
        );
        assert!(spmm.upload(short.view()).is_err());
        let zeros = Array2::zeros((30, 4));
        let mut x = spmm.upload(zeros.view()).unwrap();
        let mut y = spmm.result(3).unwrap();
        assert!(spmm.run(&mut x, &mut y).is_err(), "other features");
        let mut y = spmm.operand(4).unwrap();
        let message = spmm.run(&mut x, &mut y).unwrap_err().to_string();
        assert!(message.contains("other parts: y"), "{message}");
        assert!(y.copy_own_rows(&spmm.result(4).unwrap()).is_err());
    }
    let [one, other] = [2, 2].map(|count| {
        let count = std::num::NonZeroUsize::new(count).unwrap();
        let devices = warprow::multi::Devices::emulators(count, Default::default()).unwrap();
        Spmm::plan(&devices, a.view(), MultiSpmmOptions::default()).unwrap()
    });
    let mut x = one.operand(4).unwrap();
    let message = other.exchange(&mut x).unwrap_err().to_string();
    assert!(message.contains("x is on another device"), "{message}");
}

#[test]
fn matrices_of_a_plan_with_another_order_are_refused_and_those_of_an_equal_plan_are_not() {
    // Every row has two nonzeros, so that parts have as many rows in each order.
    let columns = (0..40).flat_map(|row| [row / 2, row / 2 + 20]).collect();
    let row_ptr = (0..=40).map(|row| 2 * row).collect();
    let a = CsrMatrix::new((40, 40), row_ptr, columns, vec![1.0_f32; 80]);
    let replicated = DivisionOptions::new().operand(OperandRows::Replicated);
    let given = replicated.order(RowOrder::Given);
    let cyclic = replicated.distribution(Distribution::Cyclic);
    let whole = WholeProduct::<f32>::new(a.view(), 3, 7);
    for devices in device_sets() {
        let plan = |division| {
            let options = MultiSpmmOptions::new().division(division);
            Spmm::plan(&devices, whole.a(), options).unwrap()
        };
        let [one, equal, other] = [given, given, cyclic].map(plan);
        let mut x = one.upload(whole.x().view()).unwrap();
        let mut y = equal.result(3).unwrap();
        equal.run(&mut x, &mut y).unwrap();
        assert!(whole.verify(one.download(&y).unwrap().view()).is_exact());
        x.copy_own_rows(&y).unwrap();
        if devices.count().get() == 1 {
            // The only part has all rows in the caller's order.
            other.run(&mut x, &mut y).unwrap();
            continue;
        }
        let (mut other_x, mut other_y) = (other.operand(3).unwrap(), other.result(3).unwrap());
        let errors = [
            other.run(&mut x, &mut other_y),
            other.run(&mut other_x, &mut y),
            other.exchange(&mut x),
            other.compute(&x, &mut other_y),
            other.download(&y).map(drop),
            other_x.copy_own_rows(&y).map_err(Into::into),
        ];
        for (number, error) in errors.into_iter().enumerate() {
            let message = error.expect_err(&format!("call {number}")).to_string();
            assert!(message.contains("other parts"), "call {number}: {message}");
        }
    }
}

#[test]
fn an_operand_whose_parts_have_other_rows_of_their_neighbours_is_refused() {
    let shift = |by: u32| {
        let columns = (0..40).map(|row| (row + by) % 40).collect();
        CsrMatrix::new((40, 40), (0..=40).collect(), columns, vec![1.0_f32; 40])
    };
    let given = DivisionOptions::new().order(RowOrder::Given);
    let options = MultiSpmmOptions::new().division(given);
    for devices in device_sets() {
        // Each part of both plans receives one row, the first behind its own or the last before them.
        let [next, previous] =
            [1, 39].map(|by| Spmm::plan(&devices, shift(by).view(), options).unwrap());
        let of_next = next.upload(Array2::ones((40, 3)).view()).unwrap();
        // Results have the same rows.
        let mut y = next.result(3).unwrap();
        let is_refused = previous.compute(&of_next, &mut y).is_err();
        assert_eq!(is_refused, devices.count().get() > 1, "{previous}");
        let mut x = previous.operand(3).unwrap();
        x.copy_own_rows(&of_next).unwrap();
        previous.run(&mut x, &mut y).unwrap();
    }
}

#[test]
fn a_part_of_a_band_has_rows_that_run_during_the_exchange() {
    let a = band(203, 3);
    for devices in device_sets() {
        let options =
            MultiSpmmOptions::new().division(DivisionOptions::new().order(RowOrder::Given));
        let spmm = Spmm::plan(&devices, a.view(), options).unwrap();
        let parts = spmm.to_string().matches("during the exchange").count();
        let wanted = if devices.count().get() == 1 {
            0
        } else {
            devices.count().get()
        };
        assert_eq!(parts, wanted, "{spmm}");
    }
}

#[test]
fn nonzeros_of_own_columns_are_multiplied_during_the_exchange_unless_rows_stay_whole() {
    // A GPU's part has thousands of rows, so that the kernels run many blocks, and odd features.
    let a = generate::uniform::<f32>(4001, 4001, 60_000, 5).unwrap();
    for devices in device_sets() {
        let parts = devices.count().get();
        if parts == 1 || parts > 4 {
            continue;
        }
        let share = |options: MultiSpmmOptions| {
            let spmm = Spmm::plan(&devices, a.view(), options).unwrap();
            let product = WholeProduct::<f32>::new(a.view(), 13, 6);
            let whole = Spmm::plan(&devices, product.a(), options).unwrap();
            if options.spmm.reduction == Reduction::Sum {
                let y = whole.multiply(product.x().view()).unwrap();
                assert!(product.verify(y.view()).ok(), "{whole}");
                // The same with an exchange.
                let mut x = whole.upload(product.x().view()).unwrap();
                let mut y = whole.result(13).unwrap();
                whole.run(&mut x, &mut y).unwrap();
                let y = whole.download(&y).unwrap();
                assert!(product.verify(y.view()).ok(), "{whole}");
            }
            spmm.share_during_exchange()
        };
        let given = DivisionOptions::new().order(RowOrder::Given);
        let options = MultiSpmmOptions::new().division(given);
        let found = share(options);
        let wanted = 1.0 / parts as f64;
        assert!((found - wanted).abs() < 0.1, "{found} in {parts} parts");
        assert_eq!(share(options.division(given.cuts(RowCuts::Never))), 0.0);
        let max = SpmmOptions::new().reduction(Reduction::Max);
        assert_eq!(share(options.spmm(max)), 0.0);
    }
}

#[test]
fn one_device_launches_what_a_plan_of_one_device_does() {
    for (name, a) in structures() {
        for devices in device_sets()
            .into_iter()
            .filter(|devices| devices.count().get() == 1)
        {
            let device = devices.first();
            let x = generate::dense::<f32>(a.cols(), 5, 1).unwrap();
            let alone = warprow::Spmm::plan(device, a.view(), SpmmOptions::default()).unwrap();
            let options =
                MultiSpmmOptions::new().division(DivisionOptions::new().order(RowOrder::Given));
            let several = Spmm::plan(&devices, a.view(), options).unwrap();

            let device_x = device.upload(x.as_slice().unwrap()).unwrap();
            let mut device_y = device.zeros(a.rows() * 5).unwrap();
            let log = device.log_launches();
            alone.run(&device_x, 5, &mut device_y).unwrap();
            let wanted = log.launches();

            let mut x = several.upload(x.view()).unwrap();
            let mut y = several.result(5).unwrap();
            // The first run allocates the plan's scratch memory.
            several.run(&mut x, &mut y).unwrap();
            let log = device.log_launches();
            let before = device.allocated_bytes();
            several.run(&mut x, &mut y).unwrap();
            assert_eq!(log.launches(), wanted, "{name}");
            assert_eq!(
                device.allocated_bytes(),
                before,
                "{name}: no copy of X or Y"
            );
            let y = several.download(&y).unwrap();
            assert_eq!(
                y.as_slice().unwrap(),
                device_y.download().unwrap(),
                "{name}"
            );
        }
    }
}
