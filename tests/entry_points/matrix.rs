//! Matrices in CSR, prefix sums and sorting.

use crate::assert_all_run;
use crate::operands::skewed;
use warprow::multi::{self, Devices, MultiSpmmOptions};
use warprow::reference::WholeProduct;
use warprow::scan::exclusive_scan;
use warprow::sort::sort_pairs;
use warprow::{
    CsrMatrix, Device, DeviceCsr, Element, RowOrder, Spmm, SpmmElement, SpmmKernel, SpmmOptions,
    SpmmTuning, f16,
};

#[test]
fn every_entry_point_runs() {
    assert_all_run("matrix", |device| {
        matrices_by_rows_and_columns::<f32>(device);
        matrices_by_rows_and_columns::<f64>(device);
        values_travel_with_their_nonzeros::<u8>(device);
        values_travel_with_their_nonzeros::<f16>(device);
        numbers_are_summed_and_sorted(device);
        rows_travel_between_parts::<f16>(device);
        rows_travel_between_parts::<f32>(device);
        rows_travel_between_parts::<f64>(device);
    });
}

fn matrices_by_rows_and_columns<T: SpmmElement<Sum = T> + PartialEq>(device: &Device) {
    let a: CsrMatrix<T> = skewed().map(|&value| T::from_f64(value.into()));
    let by_columns = DeviceCsr::upload(device, a.to_csc().view()).unwrap();
    assert!(by_columns.download().unwrap() == a);
    let rows: Vec<u32> = a.iter().map(|(_, (row, _))| row).collect();
    let row_of_each = by_columns.pattern().row_of_each().unwrap();
    assert_eq!(row_of_each.download().unwrap(), rows);
    // The plan's matrix has its rows in another order.
    let product = WholeProduct::<T>::new(a.view(), 5, 1);
    let options = SpmmOptions::new().tuning(
        SpmmTuning::new()
            .kernel(SpmmKernel::Vector)
            .order(RowOrder::FirstColumn),
    );
    let plan = Spmm::plan(device, product.a(), options).unwrap();
    let checked = product.verify(plan.multiply(product.x().view()).unwrap().view());
    assert!(checked.ok(), "{plan}: {checked}");
}

/// Of elements that no product has.
fn values_travel_with_their_nonzeros<T: Element + Default + PartialEq>(device: &Device) {
    let a = skewed().map(|_| T::default());
    let by_columns = DeviceCsr::upload(device, a.to_csc().view()).unwrap();
    assert!(by_columns.download().unwrap() == a);
}

fn numbers_are_summed_and_sorted(device: &Device) {
    let numbers: Vec<u32> = (0..20_011_u32).map(|i| i * 7919 % 20_011).collect();
    // More elements than one block scans. The sort has 1280 counts, which one block does.
    let mut sums = device.upload(&numbers).unwrap();
    let total = exclusive_scan(device, &mut sums).unwrap();
    let mut sum = 0;
    let before = numbers.iter().map(|number| {
        sum += number;
        sum - number
    });
    assert!(before.eq(sums.download().unwrap()));
    let wanted: u64 = numbers.iter().map(|&number| u64::from(number)).sum();
    assert_eq!(total, wanted);
    // Each number is there once: sorted, it stands at its own place.
    let (mut keys, mut places) = (
        device.upload(&numbers).unwrap(),
        device.upload(&Vec::from_iter(0..20_011_u32)).unwrap(),
    );
    sort_pairs(device, &mut keys, &mut places, 15).unwrap();
    let places = places.download().unwrap();
    assert!((0..20_011).all(|number| numbers[places[number] as usize] as usize == number));
}

fn rows_travel_between_parts<T: SpmmElement>(device: &Device) {
    let devices = Devices::of(vec![device.clone(), device.clone()]).unwrap();
    let product = WholeProduct::<T>::new(skewed().view(), 37, 1);
    let plan = multi::Spmm::plan(&devices, product.a(), MultiSpmmOptions::default()).unwrap();
    let mut x = plan.upload(product.x().view()).unwrap();
    let mut y = plan.result(37).unwrap();
    plan.run(&mut x, &mut y).unwrap();
    let checked = product.verify(plan.download(&y).unwrap().view());
    assert!(checked.ok(), "{plan}: {checked}");
}
