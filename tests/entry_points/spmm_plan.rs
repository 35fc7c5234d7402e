//! The kernels with which a plan of SpMM looks at a matrix: row orders, and how often columns are read again.

use crate::assert_all_run;
use crate::operands::{COLS, ROWS, skewed};
use std::collections::BTreeSet;
use warprow::reference::WholeProduct;
use warprow::{CsrMatrix, Device, DeviceCsr, RowOrder, Spmm, SpmmKernel, SpmmOptions, SpmmTuning};
use warprow_kernels::spmm::plan::{columns, distinct, windows};

#[test]
fn every_entry_point_runs() {
    assert_all_run("spmm_plan", |device| {
        rows_in_every_order(device);
        let a = skewed();
        let there = DeviceCsr::upload(device, a.view()).unwrap();
        // Plans launch these only where the size of the caches is known.
        columns_are_counted_and_binned(device, &a, &there);
        columns_of_a_sample_are_counted_and_binned(device, &a, &there);
        rows_are_binned(device, &a, &there);
        for skipped in [0, 1, 3] {
            distinct_columns_are_counted(device, &a, &there, skipped);
        }
    });
}

fn rows_in_every_order(device: &Device) {
    let square = {
        let kept = skewed();
        let rows = kept.outer_iterator().map(|row| {
            let inside = row.indices().iter().filter(|&&col| col < ROWS as u32);
            inside.copied().collect()
        });
        crate::operands::whole::<f32>(rows.collect(), ROWS)
    };
    for structure in [skewed(), square] {
        let product = WholeProduct::<f32>::new(structure.view(), 9, 1);
        let x = product.x();
        for &order in RowOrder::ALL {
            for kernel in [SpmmKernel::Vector, SpmmKernel::InStep] {
                let options = SpmmOptions::new()
                    .features(9)
                    .tuning(SpmmTuning::new().kernel(kernel).order(order));
                let plan = Spmm::plan(device, product.a(), options).unwrap();
                let checked = product.verify(plan.multiply(x.view()).unwrap().view());
                assert!(checked.ok(), "{plan}: {checked}");
            }
        }
    }
}

/// The bins of columns or rows of so many nonzeros, which stand for so many.
fn bins_of(items: impl Iterator<Item = (u32, u32)>) -> Vec<u64> {
    let mut bins = vec![0_u64; 2 * columns::BINS];
    for (count, weight) in items.filter(|&(count, _)| count > 0) {
        bins[2 * count.ilog2() as usize] += u64::from(weight);
        bins[2 * count.ilog2() as usize + 1] += u64::from(count) * u64::from(weight);
    }
    bins
}

fn nonzeros_of_columns(a: &CsrMatrix<f32>) -> Vec<u32> {
    let mut counts = vec![0_u32; COLS];
    a.indices()
        .iter()
        .for_each(|&col| counts[col as usize] += 1);
    counts
}

fn columns_are_counted_and_binned(device: &Device, a: &CsrMatrix<f32>, there: &DeviceCsr<f32>) {
    let wanted = nonzeros_of_columns(a);
    let mut counts = device.zeros::<u32>(COLS).unwrap();
    let mut bins = device.zeros::<u64>(2 * columns::BINS).unwrap();
    let sampled = device.zeros::<u32>(0).unwrap();
    let (nonzeros, cols) = (a.nnz() as u32, COLS as u32);
    let col_idx = there.pattern().col_idx().read_only();
    // SAFETY: columns are below `cols`, each has a zeroed count; there is no sample; the bins are zeroed.
    unsafe {
        let config = columns::launch_count(nonzeros);
        let arguments = (nonzeros, 1, col_idx, sampled.read_only(), counts.mutable());
        device.launch(&columns::count(), config, arguments).unwrap();
        let config = columns::launch_bin(cols, 2);
        let of_columns = (sampled.read_only(), counts.read_only());
        let arguments = (cols, 1, of_columns.0, of_columns.1, bins.mutable());
        device
            .launch(&columns::bin_columns(), config, arguments)
            .unwrap();
    }
    assert_eq!(counts.download().unwrap(), wanted);
    let of_all = wanted.iter().map(|&count| (count, 1));
    assert_eq!(bins.download().unwrap(), bins_of(of_all));
}

fn columns_of_a_sample_are_counted_and_binned(
    device: &Device,
    a: &CsrMatrix<f32>,
    there: &DeviceCsr<f32>,
) {
    let one_in = 2;
    let all = nonzeros_of_columns(a);
    let mut sampled = device.zeros::<u32>(COLS).unwrap();
    let mut counts = device.zeros::<u32>(COLS).unwrap();
    let mut bins = device.zeros::<u64>(2 * columns::BINS).unwrap();
    let (nonzeros, cols) = (a.nnz() as u32, COLS as u32);
    let col_idx = there.pattern().col_idx().read_only();
    // SAFETY: columns are below `cols`, each has two zeroed counts; the bins are zeroed.
    unsafe {
        let config = columns::launch_sample(nonzeros, one_in);
        let arguments = (nonzeros, one_in, col_idx, sampled.mutable());
        device
            .launch(&columns::sample(), config, arguments)
            .unwrap();
        let config = columns::launch_count(nonzeros);
        let of_columns = (sampled.read_only(), counts.mutable());
        let arguments = (nonzeros, one_in, col_idx, of_columns.0, of_columns.1);
        device.launch(&columns::count(), config, arguments).unwrap();
        let config = columns::launch_bin(cols, 2);
        let of_columns = (sampled.read_only(), counts.read_only());
        let arguments = (cols, one_in, of_columns.0, of_columns.1, bins.mutable());
        device
            .launch(&columns::bin_columns(), config, arguments)
            .unwrap();
    }
    let (sampled, counts) = (sampled.download().unwrap(), counts.download().unwrap());
    // A warp's 32 nonzeros of each 64; the last 64 may lack some.
    let in_sample: u32 = sampled.iter().sum();
    assert!(
        in_sample.abs_diff(nonzeros / one_in) <= 32,
        "{in_sample} of {nonzeros} nonzeros are in the sample"
    );
    assert!(sampled.iter().zip(&all).all(|(part, all)| part <= all));
    let is_counted = |(count, all): (&u32, &u32)| {
        assert!(
            [0, *all].contains(count),
            "a column of {all} nonzeros has {count}"
        );
        *count > 0
    };
    let counted = counts.iter().zip(&all).filter(|&pair| is_counted(pair));
    let part = counted.count() as f64 / all.iter().filter(|&&all| all > 0).count() as f64;
    assert!((0.3..0.7).contains(&part), "{part} of the columns count");
    let stand_for = counts.iter().zip(&sampled).map(|(&count, &sampled)| {
        if sampled < columns::MANY_SAMPLED {
            (count, one_in)
        } else {
            (sampled * one_in, 1)
        }
    });
    assert_eq!(bins.download().unwrap(), bins_of(stand_for));
}

fn rows_are_binned(device: &Device, a: &CsrMatrix<f32>, there: &DeviceCsr<f32>) {
    let wanted = bins_of(a.outer_iterator().map(|row| (row.nnz() as u32, 1)));
    let mut bins = device.zeros::<u64>(2 * columns::BINS).unwrap();
    let rows = ROWS as u32;
    let arguments = (rows, there.pattern().row_ptr().read_only(), bins.mutable());
    let config = columns::launch_bin(rows, 2);
    // SAFETY: the matrix has `rows + 1` row pointers; the bins are zeroed.
    unsafe {
        device
            .launch(&columns::bin_rows(), config, arguments)
            .unwrap()
    };
    assert_eq!(bins.download().unwrap(), wanted);
}

/// Without the first `skipped` nonzeros of each row.
fn distinct_columns_are_counted(
    device: &Device,
    a: &CsrMatrix<f32>,
    there: &DeviceCsr<f32>,
    skipped: u32,
) {
    let window_rows = 32;
    let count = (ROWS as u32).div_ceil(window_rows);
    let wanted: Vec<u32> = (0..ROWS)
        .step_by(window_rows as usize)
        .flat_map(|first| {
            let rows = first..(first + window_rows as usize).min(ROWS);
            let columns = rows.flat_map(|row| -> Vec<u32> {
                let row = a.outer_view(row).unwrap();
                row.indices()
                    .iter()
                    .copied()
                    .skip(skipped as usize)
                    .collect()
            });
            let columns: Vec<u32> = columns.collect();
            let distinct = BTreeSet::from_iter(&columns).len();
            [columns.len() as u32, columns.len() as u32, distinct as u32]
        })
        .collect();
    let pattern = there.pattern();
    let order = device.upload(&Vec::from_iter(0..ROWS as u32)).unwrap();
    let all = windows::Windows {
        row_ptr: pattern.row_ptr().read_only(),
        order: order.read_only(),
        skipped,
        rows: ROWS as u32,
        first: windows::WindowSize::new(window_rows, u32::MAX, ROWS as u32),
        second: windows::WindowSize::NONE,
        third: windows::WindowSize::NONE,
    };
    let (max_parts, max_tables) = windows::max_parts(count, a.nnz() as u32);
    let mut counts = device.zeros::<u32>(2).unwrap();
    let mut found = device.uninitialized::<u32>(4 * count as usize).unwrap();
    let mut parts = device.uninitialized(4 * max_parts as usize).unwrap();
    let slots = max_tables as usize * windows::TABLE_SLOTS;
    let mut tables = device.uninitialized::<u32>(slots).unwrap();
    // SAFETY: row pointers and columns are those of one matrix of `ROWS` rows; `order` is a permutation of these;
    // `found` has four numbers for each window, `parts` for each part, and `tables` slots for each table.
    unsafe {
        let arguments = (
            all,
            counts.mutable(),
            found.mutable(),
            parts.mutable(),
            tables.mutable(),
        );
        let config = windows::launch_divide(count);
        device
            .launch(&windows::divide(), config, arguments)
            .unwrap();
        let arguments = (
            all.row_ptr,
            pattern.col_idx().read_only(),
            all.order,
            all.skipped,
            counts.read_only(),
            parts.read_only(),
            tables.mutable(),
            found.mutable(),
        );
        let config = distinct::launch_count(max_parts, 2);
        device
            .launch(&distinct::count_distinct(), config, arguments)
            .unwrap();
    }
    let found = found.download().unwrap();
    let found = found
        .chunks_exact(4)
        .flat_map(|window| window[..3].to_vec());
    assert_eq!(Vec::from_iter(found), wanted);
}
