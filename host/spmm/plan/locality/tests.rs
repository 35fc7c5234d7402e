//! Tests of the localities: of planted structures, and against counts on the host.

use super::*;
use crate::csr::DeviceCsr;
use crate::device::{Device, EmulatorOptions};
use crate::generate;
use sprs::CsMatI;
use std::collections::HashSet;

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

fn locality_of(a: &CsMatI<f32, u32, u32>) -> f64 {
    let device = Device::emulator(EmulatorOptions::default());
    let a = DeviceCsr::upload(&device, a.view()).unwrap();
    let a = a.pattern();
    let columns = ColumnProfile::measure(&device, a.cols, &a.col_idx).unwrap();
    Localities::measure(a, &columns, None).unwrap().far
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
        (256.0, 0.3),
        (1024.0, 0.1),
        (1e9, 0.1),
    ] {
        let found = locality.of(rows);
        assert!((found - wanted).abs() < 1e-9, "{rows} rows: {found}");
    }
}

#[test]
fn communities_that_lie_together_are_local_and_others_are_not() {
    let communities = |shuffled| generate::Communities {
        sizes: 60..=600,
        inside: 0.85,
        shuffled,
    };
    let graph = |shuffled| {
        generate::communities::<f32>(20_000, 160_000, &communities(shuffled), 1).unwrap()
    };
    let (together, shuffled) = (locality_of(&graph(false)), locality_of(&graph(true)));
    assert!((0.2..0.45).contains(&together), "{together}");
    assert!(shuffled > 0.95, "{shuffled}");
}

/// The rows of windows that are evenly spread.
fn evenly_spread(rows: u32, sample: &Sample) -> Vec<std::ops::Range<u32>> {
    let all = u64::from(rows.div_ceil(sample.rows));
    let count = all.min(sample.windows.into());
    let first = |index: u64| (index * all / count) as u32 * sample.rows;
    let range = |index| first(index)..rows.min(first(index) + sample.rows);
    (0..count).map(range).collect()
}

/// The hash of the kernel.
fn hash(number: u32) -> u32 {
    let mut hash = number;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

/// The columns of the nonzeros of a window that are read, one after the other.
fn columns_read(a: &CsMatI<f32, u32, u32>, rows: &[u32], most: u32) -> Vec<u32> {
    let columns = |row: u32| a.outer_view(row as usize).unwrap().indices().to_vec();
    let nonzeros: usize = rows.iter().map(|&row| columns(row).len()).sum();
    let one_in = (nonzeros as u32).div_ceil(most).max(1);
    let of_row = |&row: &u32| {
        let is_read = move |place: usize| place as u32 / 32 % one_in == hash(row) % one_in;
        let columns = columns(row).into_iter().enumerate();
        columns.filter_map(move |(place, column)| is_read(place).then_some(column))
    };
    rows.iter().flat_map(of_row).collect()
}

#[test]
fn windows_with_hubs_are_read_in_part_and_others_in_full_in_any_order() {
    let a = generate::rmat::<f32>(3000, 60_000, [0.57, 0.19, 0.19, 0.05], 1).unwrap();
    let device = Device::emulator(EmulatorOptions::default());
    let there = DeviceCsr::upload(&device, a.view()).unwrap();
    let backwards: Vec<u32> = (0..3000).rev().collect();
    let order = device.upload(&backwards).unwrap();
    for (rows, nonzeros) in [
        (8, 640),
        (64, 5120),
        (1024, 30_000),
        (64, 7),
        (64, u32::MAX),
    ] {
        let sample = Sample {
            rows,
            windows: 30,
            nonzeros,
        };
        for order in [None, Some(&order)] {
            let found = windows(there.pattern(), &[sample], order).unwrap().concat();
            let ranges = evenly_spread(3000, &sample);
            assert_eq!(found.len(), ranges.len());
            for (found, places) in found.iter().zip(ranges) {
                let row = |place: u32| order.map_or(place, |_| backwards[place as usize]);
                let rows: Vec<u32> = places.clone().map(row).collect();
                let read = columns_read(&a, &rows, nonzeros);
                let one_in = reuse::sampled_one_in(read.len() as u32);
                let counts = |column: &u32| hash(*column) <= u32::MAX / one_in;
                let counted: Vec<u32> = read.iter().copied().filter(counts).collect();
                let distinct = HashSet::<u32>::from_iter(counted.iter().copied()).len();
                assert_eq!(
                    [found.nonzeros, found.counted, found.distinct],
                    [read.len(), counted.len(), distinct].map(|number| number as u32),
                    "rows {places:?}, at most {nonzeros} nonzeros"
                );
            }
        }
    }
}

/// The localities of all nonzeros of all windows, counted on the host in f64.
fn reference(a: &CsMatI<f32, u32, u32>, columns: &ColumnProfile) -> [f64; 3] {
    [0, 1, 2].map(|kind| {
        let sample = Sample {
            rows: WINDOW_ROWS[kind],
            windows: LOCALITY_WINDOWS[kind],
            nonzeros: u32::MAX,
        };
        let (mut distinct, mut expected) = (0.0, 0.0);
        for rows in evenly_spread(a.rows() as u32, &sample) {
            let read = columns_read(a, &rows.collect::<Vec<_>>(), u32::MAX);
            expected += columns.expected_distinct(read.len() as f64);
            distinct += HashSet::<u32>::from_iter(read).len() as f64;
        }
        f64::min(distinct / expected, 1.0)
    })
}

#[test]
fn localities_are_those_of_all_nonzeros_and_hubs_hardly_change_them() {
    let communities = generate::Communities {
        sizes: 60..=600,
        inside: 0.85,
        shuffled: false,
    };
    let together = generate::communities::<f32>(20_000, 160_000, &communities, 1).unwrap();
    // The same, with three rows that have nearly every column.
    let hubs = [5_usize, 9_000, 9_001];
    let row_ptr = together.indptr();
    let columns_of = |row: usize| match hubs.contains(&row) {
        true => (0..20_000).filter(|column| column % 7 != 3).collect(),
        false => together.indices()[row_ptr.outer_inds_sz(row)].to_vec(),
    };
    let rows: Vec<Vec<u32>> = (0..20_000).map(columns_of).collect();
    let ends = rows.iter().scan(0, |end, row| {
        *end += row.len() as u32;
        Some(*end)
    });
    let row_ptr = std::iter::once(0).chain(ends).collect();
    let columns = rows.concat();
    let values = vec![1.0; columns.len()];
    let with_hubs = CsMatI::new((20_000, 20_000), row_ptr, columns, values);
    let rmat = generate::rmat::<f32>(20_000, 300_000, [0.57, 0.19, 0.19, 0.05], 1).unwrap();
    let device = Device::emulator(EmulatorOptions::default());
    let [without, with, of_rmat] = [&together, &with_hubs, &rmat].map(|a| {
        let there = DeviceCsr::upload(&device, a.view()).unwrap();
        let there = there.pattern();
        let columns = ColumnProfile::measure(&device, there.cols, &there.col_idx).unwrap();
        let found = Localities::measure(there, &columns, None).unwrap();
        let found = [found.near, found.middle, found.far];
        (found, reference(a, &columns))
    });
    for (found, wanted) in [without, of_rmat, (with.0, without.0)] {
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() < 0.05, "{found}, wanted {wanted}");
        }
    }
}

#[test]
fn hubs_alone_make_no_locality() {
    for skew in [[0.57, 0.19, 0.19, 0.05], [0.45, 0.22, 0.22, 0.11]] {
        let a = generate::rmat::<f32>(20_000, 160_000, skew, 1).unwrap();
        let found = locality_of(&a);
        assert!(found > 0.95, "{found}");
    }
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
