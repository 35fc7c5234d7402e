//! The kernels with which a plan of SpMM looks at a matrix: row orders, and how often columns are read again.

use crate::assert_all_run;
use crate::operands::{COLS, ROWS, skewed};
use std::collections::BTreeSet;
use warprow::reference::WholeProduct;
use warprow::{CsrMatrix, Device, DeviceCsr, RowOrder, Spmm, SpmmKernel, SpmmOptions, SpmmTuning};
use warprow_kernels::spmm::plan::{columns, reuse};

#[test]
fn every_entry_point_runs() {
    assert_all_run("spmm_plan", |device| {
        rows_in_every_order(device);
        let a = skewed();
        let there = DeviceCsr::upload(device, a.view()).unwrap();
        // Plans launch these only where the size of the caches is known.
        columns_are_counted_and_binned(device, &a, &there);
        rows_have_their_lengths(device, &a, &there);
        distinct_columns_are_counted(device, &a, &there);
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

fn columns_are_counted_and_binned(device: &Device, a: &CsrMatrix<f32>, there: &DeviceCsr<f32>) {
    let mut wanted = vec![0_u32; COLS];
    a.indices()
        .iter()
        .for_each(|&col| wanted[col as usize] += 1);
    let mut wanted_bins = vec![0_u64; 2 * columns::BINS];
    for &count in wanted.iter().filter(|&&count| count > 0) {
        wanted_bins[2 * count.ilog2() as usize] += 1;
        wanted_bins[2 * count.ilog2() as usize + 1] += u64::from(count);
    }
    let mut counts = device.zeros::<u32>(COLS).unwrap();
    let mut bins = device.zeros::<u64>(2 * columns::BINS).unwrap();
    let (nonzeros, cols) = (a.nnz() as u32, COLS as u32);
    let col_idx = there.pattern().col_idx().read_only();
    // SAFETY: columns are below `cols`, each has a zeroed count; the bins are zeroed.
    unsafe {
        let config = columns::launch_count(nonzeros);
        let arguments = (nonzeros, col_idx, counts.mutable());
        device.launch(&columns::count(), config, arguments).unwrap();
        let config = columns::launch_bin(cols);
        let arguments = (cols, counts.read_only(), bins.mutable());
        device.launch(&columns::bin(), config, arguments).unwrap();
    }
    assert_eq!(counts.download().unwrap(), wanted);
    assert_eq!(bins.download().unwrap(), wanted_bins);
}

fn rows_have_their_lengths(device: &Device, a: &CsrMatrix<f32>, there: &DeviceCsr<f32>) {
    let wanted: Vec<u32> = a.outer_iterator().map(|row| row.nnz() as u32).collect();
    let mut counts = device.uninitialized::<u32>(ROWS).unwrap();
    let rows = ROWS as u32;
    let arguments = (
        rows,
        there.pattern().row_ptr().read_only(),
        counts.mutable(),
    );
    let config = columns::launch_bin(rows);
    // SAFETY: the matrix has `rows + 1` row pointers, and each row a count.
    unsafe {
        device
            .launch(&columns::lengths(), config, arguments)
            .unwrap()
    };
    assert_eq!(counts.download().unwrap(), wanted);
}

fn distinct_columns_are_counted(device: &Device, a: &CsrMatrix<f32>, there: &DeviceCsr<f32>) {
    let window_rows = 32;
    let windows = (ROWS as u32).div_ceil(window_rows);
    let wanted: Vec<u32> = (0..ROWS)
        .step_by(window_rows as usize)
        .flat_map(|first| {
            let rows = first..(first + window_rows as usize).min(ROWS);
            let columns = rows.flat_map(|row| a.outer_view(row).unwrap().indices().to_vec());
            let columns: Vec<u32> = columns.collect();
            let distinct = BTreeSet::from_iter(&columns).len();
            [columns.len() as u32, columns.len() as u32, distinct as u32]
        })
        .collect();
    let pattern = there.pattern();
    let order = device.upload(&Vec::from_iter(0..ROWS as u32)).unwrap();
    let all = reuse::Windows {
        row_ptr: pattern.row_ptr().read_only(),
        order: order.read_only(),
        rows: ROWS as u32,
        window_rows,
        count: windows,
        first: 0,
    };
    let (max_parts, max_tables) = reuse::max_parts(windows, a.nnz() as u32);
    let mut counts = device.zeros::<u32>(2).unwrap();
    let mut found = device.uninitialized::<u32>(4 * windows as usize).unwrap();
    let mut parts = device.uninitialized(4 * max_parts as usize).unwrap();
    let mut tables = device.zeros::<u32>(max_tables as usize * reuse::PARTS_TABLE_SLOTS);
    let tables = tables.as_mut().unwrap();
    // SAFETY: row pointers and columns are those of one matrix of `ROWS` rows; `order` is a permutation of these;
    // `found` has four numbers for each window, `parts` for each part, and `tables` slots for each table.
    unsafe {
        let arguments = (all, counts.mutable(), found.mutable(), parts.mutable());
        let config = reuse::launch_divide(windows);
        device.launch(&reuse::divide(), config, arguments).unwrap();
        let arguments = (
            all.row_ptr,
            pattern.col_idx().read_only(),
            all.order,
            counts.read_only(),
            parts.read_only(),
            tables.mutable(),
            found.mutable(),
        );
        let config = reuse::launch_count(max_parts, 2);
        device
            .launch(&reuse::count_distinct(), config, arguments)
            .unwrap();
    }
    let found = found.download().unwrap();
    let found = found
        .chunks_exact(4)
        .flat_map(|window| window[..3].to_vec());
    assert_eq!(Vec::from_iter(found), wanted);
}
