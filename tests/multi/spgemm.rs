//! SpGEMM over several devices against the reference, and bit by bit against one device.

use crate::device_sets;
use std::num::NonZeroUsize;
use warprow::device::EmulatorOptions;
use warprow::multi::{
    Devices, Distribution, DivisionOptions, MultiSpgemmOptions, OperandRows, RowCuts, Spgemm,
};
use warprow::reference::verify_spgemm;
use warprow::spgemm::spgemm;
use warprow::{CsrMatrix, RowOrder, SpgemmOptions, generate};

fn operands() -> Vec<(&'static str, CsrMatrix<f32>, CsrMatrix<f32>)> {
    let square = generate::rmat(150, 900, [0.57, 0.19, 0.19, 0.05], 1).unwrap();
    let enormous = {
        let columns = (0..400).chain([3, 9]).collect();
        CsrMatrix::new((3, 400), vec![0, 400, 401, 402], columns, vec![1.5; 402])
    };
    let uniform = |rows, cols, nonzeros| generate::uniform(rows, cols, nonzeros, 3).unwrap();
    let shift = |by: u32| {
        let columns = (0..40).map(|row| (row + by) % 40).collect();
        CsrMatrix::new((40, 40), (0..=40).collect(), columns, vec![1.5; 40])
    };
    vec![
        ("square", square.clone(), square),
        ("rectangular", uniform(40, 90, 300), uniform(90, 70, 400)),
        ("one enormous row", enormous, uniform(400, 60, 900)),
        ("fewer rows than parts", uniform(2, 6, 7), uniform(6, 5, 12)),
        ("no halo", shift(0), uniform(40, 40, 300)),
        ("only halo", shift(20), uniform(40, 30, 200)),
        ("no nonzeros", CsrMatrix::zero((7, 4)), uniform(4, 6, 9)),
        ("no rows", CsrMatrix::zero((0, 4)), uniform(4, 6, 9)),
        ("nothing in B", uniform(6, 4, 9), CsrMatrix::zero((4, 0))),
    ]
}

fn product(
    devices: &Devices,
    (a, b): (&CsrMatrix<f32>, &CsrMatrix<f32>),
    options: MultiSpgemmOptions,
) -> (CsrMatrix<f32>, u64, String) {
    let spgemm = Spgemm::plan(devices, a.view(), b.view(), options).unwrap();
    let parts = spgemm.compute().unwrap();
    assert_eq!(parts.products_of_parts().len(), devices.count().get());
    assert_eq!(parts.products_of_parts().sum::<u64>(), parts.products());
    (
        spgemm.gather(&parts).unwrap(),
        parts.products(),
        spgemm.to_string(),
    )
}

#[test]
fn products_in_f64_are_within_the_bound_of_the_reference() {
    let a = generate::rmat::<f64>(150, 900, [0.57, 0.19, 0.19, 0.05], 1).unwrap();
    for devices in device_sets() {
        for deterministic in [false, true] {
            let options = SpgemmOptions::new().deterministic(deterministic);
            let options = MultiSpgemmOptions::new().spgemm(options);
            let plan = Spgemm::plan(&devices, a.view(), a.view(), options).unwrap();
            let c = plan.gather(&plan.compute().unwrap()).unwrap();
            let checked = verify_spgemm(a.view(), a.view(), c.view());
            assert!(checked.ok(), "{checked}, {plan}");
        }
    }
}

#[test]
fn products_are_within_the_bound_of_the_reference() {
    for (name, a, b) in operands() {
        let wanted: u64 = (a.indices().iter())
            .map(|&k| b.outer_view(k as usize).unwrap().nnz() as u64)
            .sum();
        for devices in device_sets() {
            let division = DivisionOptions::new();
            let cyclic = division.distribution(Distribution::Cyclic);
            for division in [
                division,
                division.order(RowOrder::FirstColumn),
                cyclic,
                cyclic.operand(OperandRows::Replicated),
            ] {
                let options = MultiSpgemmOptions::new().division(division);
                let (c, products, what) = product(&devices, (&a, &b), options);
                let checked = verify_spgemm(a.view(), b.view(), c.view());
                assert!(checked.ok(), "{name}: {checked}: {what}");
                assert_eq!(products, wanted, "{name}: {what}");
            }
        }
    }
}

#[test]
fn deterministic_products_have_the_bits_of_one_device() {
    let deterministic = SpgemmOptions::new().deterministic(true);
    for (name, a, b) in operands() {
        for devices in device_sets() {
            let wanted = spgemm(devices.first(), a.view(), b.view(), deterministic)
                .unwrap()
                .c;
            let options = MultiSpgemmOptions::new().spgemm(deterministic);
            let (c, _, what) = product(&devices, (&a, &b), options);
            assert_eq!(
                (c.indptr(), c.indices()),
                (wanted.indptr(), wanted.indices()),
                "{name}"
            );
            let bits = |c: &CsrMatrix<f32>| Vec::from_iter(c.data().iter().map(|v| v.to_bits()));
            assert_eq!(bits(&c), bits(&wanted), "{name}: {what}");
        }
    }
}

#[test]
fn devices_merge_the_rows_of_large_parts_and_give_the_bits_of_one_device() {
    // Parts of 2,100 rows, more than threads can be resident on a device of one multiprocessor.
    let rows = 6300_u32;
    let near = |row: u32| row.saturating_sub(1)..(row + 2).min(rows);
    let mut indptr = vec![0];
    indptr.extend((0..rows).scan(0, |end, row| {
        *end += near(row).len() as u32;
        Some(*end)
    }));
    let indices: Vec<u32> = (0..rows).flat_map(near).collect();
    let values = (0..indices.len()).map(|k| 1.0 / (1.0 + (k % 11) as f32) - 0.3);
    let shape = (rows as usize, rows as usize);
    let a = CsrMatrix::new(shape, indptr, indices, values.collect());
    let one = NonZeroUsize::new(1);
    let devices = |count| {
        let options = EmulatorOptions::new().workers(one);
        Devices::emulators(NonZeroUsize::new(count).unwrap(), options).unwrap()
    };
    let deterministic = SpgemmOptions::new().deterministic(true);
    let bits = |c: &CsrMatrix<f32>| Vec::from_iter(c.data().iter().map(|v| v.to_bits()));
    let wanted = spgemm(devices(1).first(), a.view(), a.view(), deterministic);
    let wanted = wanted.unwrap().c;
    for count in [2, 3] {
        let devices = devices(count);
        let log = devices.first().log_launches();
        let options = MultiSpgemmOptions::new().spgemm(deterministic);
        let (c, _, what) = product(&devices, (&a, &a), options);
        let launches = log.launches();
        assert!(
            launches.contains_key("spgemm_merge_products_f32_8"),
            "{launches:?}"
        );
        assert_eq!(
            (c.indptr(), c.indices()),
            (wanted.indptr(), wanted.indices())
        );
        assert_eq!(bits(&c), bits(&wanted), "{what}");
    }
}

#[test]
fn entries_that_cancel_are_dropped_where_that_is_asked_for() {
    // Row 0 of C is B[0] - B[1], and both rows are equal.
    let a = CsrMatrix::new(
        (2, 2),
        vec![0, 2, 3],
        vec![0, 1, 1],
        vec![1.0_f32, -1.0, 2.0],
    );
    let b = CsrMatrix::new(
        (2, 3),
        vec![0, 2, 4],
        vec![0, 2, 0, 2],
        vec![5.0_f32, 7.0, 5.0, 7.0],
    );
    for devices in device_sets() {
        let mut options = MultiSpgemmOptions::default();
        options.spgemm.drop_zeros = true;
        let (c, ..) = product(&devices, (&a, &b), options);
        assert_eq!((c.nnz(), c.data()), (2, &[10.0, 14.0][..]));
    }
}

#[test]
fn a_product_of_whole_rows_cuts_none() {
    let (_, a, b) = operands().swap_remove(2);
    for devices in device_sets() {
        let mut options = MultiSpgemmOptions::default();
        let cut = Spgemm::plan(&devices, a.view(), b.view(), options).unwrap();
        options.division.cuts = RowCuts::Never;
        let whole = Spgemm::plan(&devices, a.view(), b.view(), options).unwrap();
        let imbalance = |plan: &Spgemm<f32>| plan.layout().partition().imbalance();
        assert!(imbalance(&cut) < 1.06, "{cut}");
        let parts = devices.count().get();
        assert!(
            parts == 1 || imbalance(&whole) > 0.9 * parts as f64,
            "{whole}"
        );
        // Parts of another plan.
        let other = cut.compute().unwrap();
        assert!(parts == 1 || whole.gather(&other).is_err());
    }
}

#[test]
fn a_product_of_a_plan_with_another_order_is_refused_and_that_of_an_equal_plan_is_not() {
    // Every row has one nonzero, so that parts have as many rows in each order.
    let columns = (0..40).map(|row| (row * 7 + 3) % 40).collect();
    let values = (0..40).map(|row| row as f32).collect();
    let a = CsrMatrix::new((40, 40), (0..=40).collect(), columns, values);
    let given = DivisionOptions::new().order(RowOrder::Given);
    let cyclic = DivisionOptions::new().distribution(Distribution::Cyclic);
    for devices in device_sets() {
        let plan = |division| {
            let options = MultiSpgemmOptions::new().division(division);
            Spgemm::plan(&devices, a.view(), a.view(), options).unwrap()
        };
        let [one, equal, other] = [given, given, cyclic].map(plan);
        let product = one.compute().unwrap();
        let c = equal.gather(&product).unwrap();
        assert!(verify_spgemm(a.view(), a.view(), c.view()).ok());
        match other.gather(&product) {
            Ok(same) => assert!(devices.count().get() == 1 && same == c),
            Err(error) => assert!(error.to_string().contains("other parts"), "{error}"),
        }
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let a = generate::uniform::<f32>(5, 7, 9, 1).unwrap();
    for devices in device_sets() {
        let error = Spgemm::plan(&devices, a.view(), a.view(), MultiSpgemmOptions::default());
        let message = error.unwrap_err().to_string();
        assert!(
            message.contains("B is 5 x 7, wanted are 7 rows"),
            "{message}"
        );
    }
}
