//! Tests of the localities and of the variation of rows.

use super::*;
use crate::csr::DeviceCsr;
use crate::device::{Device, EmulatorOptions};
use crate::generate;
use crate::spmm::plan::length_bins::CountingBins;
use crate::spmm::plan::row_keys::by_first_column;
use sprs::CsMatI;
use std::iter;

fn share(a: &CsMatI<f32, u32, u32>, order: Option<&[u32]>) -> f64 {
    let device = Device::emulator(EmulatorOptions::default());
    let a = DeviceCsr::upload(&device, a.view()).unwrap();
    let order = order.map(|order| device.upload(order).unwrap());
    distinct_share(a.pattern(), order.as_ref()).unwrap()
}

/// 640 rows of ten nonzeros each, whose columns are those of the row's number modulo 10.
fn ten_kinds() -> CsMatI<f32, u32, u32> {
    let row_ptr = (0..=640).map(|row| 10 * row).collect();
    let columns = (0..640).flat_map(|row| (0..10).map(move |k| 10 * (row % 10) + k));
    CsMatI::new((640, 100), row_ptr, columns.collect(), vec![1.0; 6400])
}

#[test]
fn a_window_of_equal_rows_has_the_columns_of_one() {
    let by_kind: Vec<u32> = (0..10)
        .flat_map(|kind| (0..64).map(move |k| 10 * k + kind))
        .collect();
    assert_eq!(share(&ten_kinds(), Some(&by_kind)), 10.0 / 640.0);
    assert_eq!(share(&ten_kinds(), None), 100.0 / 640.0);
}

#[test]
fn rows_that_share_nothing_have_as_many_columns_as_nonzeros() {
    assert_eq!(share(&CsMatI::eye(700), None), 1.0);
    assert_eq!(share(&CsMatI::zero((5, 5)), None), 1.0);
    assert_eq!(share(&CsMatI::zero((0, 5)), None), 1.0);
}

/// A matrix on an emulated device, and its columns by their lengths.
fn uploaded(a: &CsMatI<f32, u32, u32>) -> (DeviceCsr<f32>, LengthBins) {
    let device = Device::emulator(EmulatorOptions::default());
    let there = DeviceCsr::upload(&device, a.view()).unwrap();
    let a = there.pattern();
    let columns = CountingBins::columns(&device, a.cols, &a.col_idx).unwrap();
    let columns = columns.wait().unwrap();
    (there, columns)
}

fn sample_of(a: &CsMatI<f32, u32, u32>) -> RowSample {
    let (a, columns) = uploaded(a);
    RowSample::measure(a.pattern(), &columns, None).unwrap()
}

fn locality_of(a: &CsMatI<f32, u32, u32>) -> f64 {
    sample_of(a).locality.far
}

/// Communities of 20,000 rows.
fn communities(nonzeros: u32, shuffled: bool) -> CsMatI<f32, u32, u32> {
    let communities = generate::Communities {
        sizes: 60..=600,
        inside: 0.85,
        shuffled,
    };
    generate::communities(20_000, nonzeros, &communities, 1).unwrap()
}

#[test]
fn the_locality_of_a_number_of_rows_is_between_those_that_were_measured() {
    let locality = Localities {
        near: 0.8,
        middle: 0.5,
        far: 0.1,
    };
    for (rows, wanted) in [
        (0.0, 1.0),
        (1.0, 1.0),
        (8.0, 0.8),
        (64.0, 0.5),
        (22.627_417, 0.632_455_5),
        (256.0, 0.223_606_8),
        (1024.0, 0.1),
        (1e9, 0.1),
    ] {
        let found = locality.of(rows);
        assert!((found - wanted).abs() < 1e-6, "{rows} rows: {found}");
    }
}

#[test]
fn communities_that_lie_together_are_local_and_others_are_not() {
    let locality = |shuffled| locality_of(&communities(160_000, shuffled));
    let (together, shuffled) = (locality(false), locality(true));
    assert!((0.2..0.45).contains(&together), "{together}");
    assert!(shuffled > 0.95, "{shuffled}");
}

/// The variation of a matrix whose rows have these lengths, at most 64.
fn variation_of(lengths: &[usize]) -> f64 {
    let mut row_ptr = vec![0];
    row_ptr.extend(lengths.iter().scan(0, |end, length| {
        *end += length;
        Some(*end as u32)
    }));
    let columns: Vec<u32> = lengths
        .iter()
        .flat_map(|&length| 0..length as u32)
        .collect();
    let values = vec![1.0; columns.len()];
    let a = CsMatI::<f32, u32, u32>::new((lengths.len(), 64), row_ptr, columns, values);
    sample_of(&a).variation
}

#[test]
fn uneven_rows_vary_from_two_windows_of_eight_and_a_row_on() {
    // Rows of 10, then rows of 30, and a long one: windows of 80 and 240 nonzeros.
    let lengths = |rows: usize| -> Vec<usize> {
        let short = (0..rows - 1).map(|row| if row < 8 { 10 } else { 30 });
        short.chain([64]).collect()
    };
    for rows in 9..=16 {
        assert_eq!(variation_of(&lengths(rows)), 0.0, "{rows} rows");
    }
    // The windows differ by 80 from their mean, 160. So their standard deviation is 80 times the square root of 2, and
    // a row's deviation relative to its mean is the square root of 8 times theirs.
    assert_eq!(variation_of(&lengths(17)), 2.0);
    // Windows of the same number of nonzeros tell nothing of the rows in them.
    let alternating: Vec<usize> = (0..17).map(|row| 5 + 30 * (row % 2)).collect();
    assert_eq!(variation_of(&alternating), 0.0);
}

#[test]
fn the_variation_is_that_of_the_lengths_of_rows() {
    let variation = variation_of;
    assert_eq!(variation(&[]), 0.0);
    assert_eq!(variation(&[3; 7]), 0.0);
    assert_eq!(variation(&[5; 1003]), 0.0);
    // Lengths of 10 and 50, at random: 20 of 30 in the mean.
    let random: Vec<usize> = (0..4000_u32)
        .map(|row| row.wrapping_add(1).wrapping_mul(0x85eb_ca6b))
        .map(|hash| (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35))
        .map(|hash| if hash >> 31 == 0 { 10 } else { 50 })
        .collect();
    let found = variation(&random);
    assert!((found - 20.0 / 30.0).abs() < 0.1, "{found}");
}

#[test]
fn hubs_alone_make_little_locality() {
    let a = generate::rmat::<f32>(20_000, 160_000, [0.57, 0.19, 0.19, 0.05], 1).unwrap();
    let found = locality_of(&a);
    assert!(found > 0.7, "{found}");
    assert_eq!(locality_of(&CsMatI::zero((5, 5))), 1.0);
    assert_eq!(locality_of(&CsMatI::zero((0, 5))), 1.0);
}

#[test]
fn a_sample_of_the_columns_of_long_rows_gives_their_share() {
    // 64 rows of 300 of 1000 columns, which are all met: 1000 of 19200.
    let a = generate::uniform::<f32>(64, 1000, 19_200, 1).unwrap();
    let found = share(&a, None);
    assert!((found - 1000.0 / 19_200.0).abs() < 0.01, "{found}");
}

#[test]
fn a_hub_that_each_window_meets_does_not_bias_the_samples() {
    // Column 0 and 149 columns of their own for each of 8192 rows: windows of 1024 rows, of which one in 75 columns is
    // counted, and windows of 64 rows, one in 5. If the hub were in all samples, it would
    // have 8192 of the 24,500 nonzeros that windows of 1024 rows count.
    let rows = 8192_u32;
    let row_ptr = (0..=rows).map(|row| 150 * row).collect();
    let columns =
        (0..rows).flat_map(|row| iter::once(0).chain((1..150).map(move |k| 149 * row + k)));
    let shape = (rows as usize, 149 * rows as usize + 1);
    let values = vec![1.0; 150 * rows as usize];
    let a = CsMatI::<f32, u32, u32>::new(shape, row_ptr, columns.collect(), values);
    // 64 rows have 64 times 149 columns and the hub among 9600 nonzeros.
    let found = share(&a, None);
    assert!((found - 9537.0 / 9600.0).abs() < 0.01, "{found}");
    let device = Device::emulator(EmulatorOptions::default());
    let a = DeviceCsr::upload(&device, a.view()).unwrap();
    let windows = CountingWindows::count(a.pattern(), &[(1024, 8)], None).unwrap();
    let found = super::share(&windows.wait().unwrap()[0]);
    assert!(found > 0.9, "{found}");
}

/// What rows by their first column share of their other columns.
fn shared_beside_first(a: &CsMatI<f32, u32, u32>) -> f64 {
    let (a, columns) = uploaded(a);
    let rows = by_first_column(a.pattern()).unwrap();
    shared_beside_first_column(a.pattern(), &columns, &rows).unwrap()
}

#[test]
fn rows_with_the_same_first_column_share_others_in_communities_alone() {
    // Five rows have the same first column, in the mean.
    let uniform = generate::uniform::<f32>(20_000, 40_000, 200_000, 1).unwrap();
    let shared = shared_beside_first(&uniform);
    assert!((0.0..0.004).contains(&shared), "{shared}");
    let shared = shared_beside_first(&communities(200_000, true));
    assert!((0.02..0.2).contains(&shared), "{shared}");
    // Rows of one kind are equal: 64 of them have nine other columns.
    assert!(shared_beside_first(&ten_kinds()) > 0.5);
}

#[test]
fn empty_rows_hide_no_communities_and_long_rows_look_like_none() {
    let graph = communities(200_000, true);
    let empty = CsMatI::zero((30_000, 20_000));
    let shared = shared_beside_first(&sprs::vstack(&[graph.view(), empty.view()]));
    assert!((0.02..0.2).contains(&shared), "{shared}");
    // Few rows have most nonzeros, and few columns, too.
    let hubs = generate::rmat::<f32>(20_000, 200_000, [0.57, 0.19, 0.19, 0.05], 1).unwrap();
    let shared = shared_beside_first(&hubs);
    assert!((0.0..0.004).contains(&shared), "{shared}");
}

#[test]
fn rows_without_a_second_column_share_none() {
    let only_the_first = CsMatI::new((640, 9), (0..=640).collect(), vec![0; 640], vec![1.0; 640]);
    let stacked = sprs::vstack(&[CsMatI::eye(70).view(), CsMatI::zero((70, 70)).view()]);
    for a in [
        only_the_first,
        CsMatI::eye(700),
        stacked,
        CsMatI::zero((5, 5)),
        CsMatI::zero((5, 0)),
    ] {
        assert_eq!(shared_beside_first(&a), 0.0);
    }
}
