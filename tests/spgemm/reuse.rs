//! The product map: that of sorted rows changes no bit, and it is made where it pays and fits.

use crate::phases::upload;
use crate::{bin_limits, whole};
use sprs::CsMatI;
use support::{devices, unshared_devices};
use warprow::CsrMatrix;
use warprow::DeviceCsr;
use warprow::device::Device;
use warprow::reference;
use warprow::spgemm::{Spgemm, SpgemmElement, SpgemmOptions, multiply};

/// Rows of 1 to 17 nonzeros, empty ones, and some of 80. All rows of B share the column 3, so its entry in a row of C
/// has as many products as the row of A has nonzeros.
fn short_rows<T: SpgemmElement>() -> (CsrMatrix<T>, CsrMatrix<T>) {
    let length = |i: u32| if i % 50 == 20 { 80 } else { i % 18 };
    let a = (0..301_u32).map(|i| (0..length(i)).map(|j| (i * 7 + j * 31) % 90).collect());
    let b = (0..90_u32).map(|k| vec![3, 4 + k % 50, 60 + k * 13 % 200]);
    let sorted = |mut row: Vec<u32>| {
        row.sort_unstable();
        row.dedup();
        row
    };
    let a = whole(&a.map(sorted).collect::<Vec<_>>(), 90);
    let b = whole(&b.map(sorted).collect::<Vec<_>>(), 300);
    (with_values(&a, 1), with_values(&b, 2))
}

/// The same matrix with values of very different size, whose sums depend on the order, and zeros of both signs.
fn with_values<T: SpgemmElement>(matrix: &CsrMatrix<f32>, seed: usize) -> CsrMatrix<T> {
    let value = |k: usize| match k % 13 {
        0 => 0.0,
        1 => -0.0,
        _ => (1.0 + (k % 11) as f64 / 7.0) * (-10_f64).powi((k * 5 % 15) as i32 - 7),
    };
    let (indptr, indices) = (
        matrix.indptr().to_proper().to_vec(),
        matrix.indices().to_vec(),
    );
    let values = (0..indices.len()).map(|k| T::from_f64(value(k + seed)));
    let values = values.collect();
    CsMatI::new(matrix.shape(), indptr, indices, values)
}

/// Limits that sort all rows of at most 256 products.
fn sorted() -> SpgemmOptions {
    bin_limits(|b| {
        b.run_span = 0;
        b.window_span = 0;
    })
}

/// The bytes of the product map, if there is one.
fn bytes_of_map<T: SpgemmElement>(spgemm: &Spgemm<T>) -> Option<u64> {
    let text = spgemm.to_string();
    let (before, _) = text.split_once(" bytes of product map")?;
    before.rsplit(' ').next()?.parse().ok()
}

/// The bits of the values of C: of the whole product, of a run without a map, and of two runs with one.
fn bits_of_all_ways<T: SpgemmElement>(
    device: &Device,
    (a, b): (&CsrMatrix<T>, &CsrMatrix<T>),
    options: SpgemmOptions,
) -> [Vec<u64>; 4] {
    let bits = |c: &DeviceCsr<T>| {
        let values = c.download().unwrap();
        values.data().iter().map(|v| v.to_f64().to_bits()).collect()
    };
    let (a, b) = upload(device, a, b);
    let phases = |low_memory| {
        let options = options.map_tuning(|tuning| tuning.low_memory(low_memory));
        Spgemm::<T>::symbolic(a.pattern(), b.pattern(), options).unwrap()
    };
    let run = |spgemm: &Spgemm<T>| bits(&spgemm.numeric(a.values(), b.values()).unwrap());
    let (with, without) = (phases(false), phases(true));
    let ways = [
        bits(&multiply(&a, &b, options).unwrap().c),
        run(&without),
        run(&with),
        run(&with),
    ];
    let log = device.log_launches();
    run(&with);
    let name = format!("spgemm_mapped_entries_{}", T::NAME);
    assert!(log.launches().contains_key(name.as_str()), "{with}");
    drop(log);
    assert!(!without.to_string().contains("product map"), "{without}");
    ways
}

fn assert_no_bit_changes<T: SpgemmElement>() {
    let (a, b) = short_rows::<T>();
    for device in devices() {
        for options in [sorted(), sorted().deterministic(true)] {
            let [wanted, ways @ ..] = bits_of_all_ways(&device, (&a, &b), options);
            for (way, values) in ways.iter().enumerate() {
                assert!(*values == wanted, "{} on {device}, way {way}", T::NAME);
            }
        }
    }
}

#[test]
fn short_rows_have_the_same_bits_with_the_map_and_without_it() {
    assert_no_bit_changes::<f32>();
    assert_no_bit_changes::<f64>();
}

#[test]
fn multiples_of_a_row_have_the_same_bits_whether_they_are_copied_sorted_or_mapped() {
    // Rows of one nonzero of A; those of B have up to 79 nonzeros, of which those above 64 are copied.
    let a: Vec<Vec<u32>> = (0..200_u32).map(|i| vec![i * 11 % 140]).collect();
    let b: Vec<Vec<u32>> = (0..140_u32).map(|k| (0..k % 80).collect()).collect();
    let (a, b) = (
        with_values::<f32>(&whole(&a, 140), 1),
        with_values(&whole(&b, 80), 3),
    );
    for device in devices() {
        let [wanted, ways @ ..] = bits_of_all_ways(&device, (&a, &b), sorted());
        for values in ways {
            assert!(values == wanted, "{device}");
        }
        let (a, b) = upload(&device, &a, &b);
        let plan = Spgemm::<f32>::symbolic(a.pattern(), b.pattern(), sorted()).unwrap();
        let text = plan.to_string();
        assert!(
            text.contains("numeric: copied") && text.contains("sorted"),
            "{text}"
        );
    }
}

#[test]
fn the_map_of_short_rows_is_left_out_if_it_does_not_fit_or_its_products_are_few() {
    // Three rows of three products, and one of 4,000 entries.
    let mut rows = vec![vec![1_u32], vec![0, 1], vec![1, 2], vec![2]];
    rows[0] = (0..2000).map(|j| 2 * j).collect();
    rows[2] = (0..2000).map(|j| 2 * j + 1).collect();
    let b = whole(&rows, 4000);
    let few = whole(&[vec![0, 2], vec![1, 3], vec![1, 3], vec![1, 3]], 4);
    let (a, b_of_short) = short_rows::<f32>();
    let a = (a, b_of_short);
    for device in devices() {
        let is_cached = |(a, b): (&CsrMatrix<f32>, &CsrMatrix<f32>), memory: Option<u64>| {
            let options = sorted().map_tuning(|tuning| tuning.memory(memory));
            let (a, b) = upload(&device, a, b);
            let spgemm = Spgemm::<f32>::symbolic(a.pattern(), b.pattern(), options).unwrap();
            spgemm.numeric(a.values(), b.values()).unwrap();
            let bytes = bytes_of_map(&spgemm);
            (spgemm, bytes)
        };
        let (spgemm, bytes) = is_cached((&a.0, &a.1), None);
        // All rows are short: 8 bytes a product, 4 an entry, and 4 more.
        let wanted = 8 * spgemm.products() + 4 * (spgemm.entries() as u64 + 1);
        assert_eq!(bytes, Some(wanted), "{spgemm}");
        assert_eq!(is_cached((&a.0, &a.1), Some(wanted)).1, Some(wanted));
        assert_eq!(is_cached((&a.0, &a.1), Some(wanted - 1)).1, None);
        assert_eq!(is_cached((&a.0, &a.1), Some(100)).1, None);
        // The long row has a chunk map, which needs fewer bytes than 4 for each entry.
        let (spgemm, bytes) = is_cached((&few, &b), None);
        let bytes = bytes.expect("the chunk map");
        assert!(bytes < 4 * spgemm.entries() as u64, "{spgemm}");
    }
}

/// Operands whose product has sorted rows and searched ones, of which none alone has all products.
fn sorted_and_searched() -> (CsrMatrix<f32>, CsrMatrix<f32>) {
    let rows = |lengths: u32| -> Vec<Vec<u32>> {
        let row = |i: u32| (0..1 + i % lengths).map(|j| j * 9 + i % 9).collect();
        (0..200).map(row).collect()
    };
    (whole(&rows(22), 200), whole(&rows(20), 200))
}

#[test]
fn both_parts_of_the_map_together_take_no_more_memory_than_they_may() {
    let (a, b) = sorted_and_searched();
    let wanted = warprow::reference::spgemm(a.view(), b.view());
    for device in devices() {
        let (a, b) = upload(&device, &a, &b);
        let cached = |memory: Option<u64>| {
            let limits = bin_limits(|b| {
                b.run_span = 0;
                b.window_span = 0;
                b.numeric_sort_products = 128;
            });
            let options = limits.map_tuning(|tuning| tuning.memory(memory));
            let spgemm = Spgemm::<f32>::symbolic(a.pattern(), b.pattern(), options).unwrap();
            for _ in 0..2 {
                let c = spgemm.numeric(a.values(), b.values()).unwrap();
                let c = c.download().unwrap().map(|&value| f64::from(value));
                assert!(c == wanted, "{spgemm}");
            }
            let text = spgemm.to_string();
            assert!(text.contains("short") && text.contains("sorted"), "{text}");
            bytes_of_map(&spgemm).unwrap_or(0)
        };
        let all = cached(None);
        let chunks = cached(Some(all - 1));
        assert!(0 < chunks && chunks < all, "{chunks} of {all}");
        assert_eq!(cached(Some(all)), all);
        assert_eq!(cached(Some(chunks)), chunks);
        for memory in [chunks - 1, chunks - 8, chunks / 2, 100, 0] {
            let found = cached(Some(memory));
            assert!(found <= memory, "{found} bytes of {memory}");
        }
    }
}

#[test]
fn rows_and_chunks_of_the_map_are_exact_if_all_sizes_are_launched_together() {
    let (a, b) = sorted_and_searched();
    let wanted = warprow::reference::spgemm(a.view(), b.view());
    let together = bin_limits(|b| {
        b.run_span = 0;
        b.window_span = 0;
        b.numeric_sort_products = 0;
        b.search_row_products = 100;
        b.few_rows = u32::MAX;
    });
    for device in unshared_devices() {
        let (a, b) = upload(&device, &a, &b);
        let spgemm = Spgemm::<f32>::symbolic(a.pattern(), b.pattern(), together).unwrap();
        spgemm.numeric(a.values(), b.values()).unwrap();
        let log = device.log_launches();
        let c = spgemm.numeric(a.values(), b.values()).unwrap();
        assert_eq!(log.launches()["spgemm_mapped_chunks_f32"], 1, "{spgemm}");
        let c = c.download().unwrap().map(|&value| f64::from(value));
        assert!(c == wanted, "{spgemm}");
    }
}

#[test]
fn recordings_of_sorted_rows_made_before_the_map_and_after_it_serve_for_other_values() {
    let (a, b) = short_rows::<f32>();
    for device in devices() {
        let (a, mut b_there) = upload(&device, &a, &b);
        let spgemm = Spgemm::<f32>::symbolic(a.pattern(), b_there.pattern(), sorted()).unwrap();
        let mut values = [0, 1].map(|_| device.zeros::<f32>(spgemm.entries()).unwrap());
        let [before, after] = &mut values;
        let record = |b: &DeviceCsr<f32>, c: &mut warprow::DeviceBuffer<f32>| {
            let run = || spgemm.numeric_into(a.values(), b.values(), c);
            device.record(run).unwrap()
        };
        let of_before = record(&b_there, before);
        spgemm.numeric(a.values(), b_there.values()).unwrap();
        let of_after = record(&b_there, after);
        let doubled: Vec<f32> = b.data().iter().map(|value| 2.0 * value).collect();
        b_there
            .values_mut()
            .unwrap()
            .copy_from_slice(&doubled)
            .unwrap();
        // SAFETY: the buffers are alive.
        unsafe {
            of_before.launch().unwrap();
            of_after.launch().unwrap();
        }
        let wanted = spgemm.numeric(a.values(), b_there.values()).unwrap();
        let wanted = wanted.values().download().unwrap();
        for (found, which) in values.iter().zip(["before", "after"]) {
            assert!(found.download().unwrap() == wanted, "{which}: {spgemm}");
        }
    }
}

/// Rows of 20,000 and 10,000 nonzeros of A. Most rows of B have two columns, of which all share one if `share_column`;
/// one has 5,000.
fn long_rows_of_short_rows<T: SpgemmElement>(share_column: bool) -> (CsrMatrix<T>, CsrMatrix<T>) {
    let n = 20_000_u32;
    let b: Vec<Vec<u32>> = (0..n)
        .map(|k| match k {
            17 => (41_000..46_000).collect(),
            _ if share_column => vec![7_001, 20_000 + k * 7919 % 20_011],
            _ => vec![k % 19_000, 20_000 + k * 7919 % 20_011],
        })
        .collect();
    let a = vec![
        vec![3, 17],
        (0..n).collect(),
        vec![],
        (0..n).step_by(2).collect(),
    ];
    let whole = |rows: &[Vec<u32>], cols| {
        let rows = whole(rows, cols);
        let values: Vec<T> = rows
            .data()
            .iter()
            .map(|&v| T::from_f64(f64::from(v)))
            .collect();
        CsMatI::new(
            rows.shape(),
            rows.indptr().to_proper().to_vec(),
            rows.indices().to_vec(),
            values,
        )
    };
    (whole(&a, n), whole(&b, 46_100))
}

/// Whether a second run reads a map of the spread rows. Asserts that both runs are exact.
fn spread_rows_are_mapped<T: SpgemmElement>(
    device: &Device,
    share_column: bool,
    memory: Option<u64>,
) -> bool {
    let (a, b) = long_rows_of_short_rows::<T>(share_column);
    let wanted = reference::spgemm(a.view(), b.view());
    let (a, b) = upload(device, &a, &b);
    let options = SpgemmOptions::new().map_tuning(|tuning| tuning.memory(memory));
    let plan = Spgemm::<T>::symbolic(a.pattern(), b.pattern(), options).unwrap();
    assert!(plan.to_string().contains("spread"), "{plan}");
    let run = || {
        plan.numeric(a.values(), b.values())
            .unwrap()
            .download()
            .unwrap()
    };
    assert!(run().map(|value| value.to_f64()) == wanted, "{device}");
    let log = device.log_launches();
    assert!(run().map(|value| value.to_f64()) == wanted, "{device}");
    let spread = format!("spgemm_spread_rows_{}", T::NAME);
    !log.launches().contains_key(spread.as_str())
}

#[test]
fn spread_rows_are_exact_with_the_map_and_without_it() {
    for device in devices() {
        assert!(spread_rows_are_mapped::<f32>(&device, false, None));
        assert!(spread_rows_are_mapped::<f64>(&device, false, None));
        // No memory for the map; an entry with 20,000 products.
        assert!(!spread_rows_are_mapped::<f32>(&device, false, Some(16)));
        assert!(!spread_rows_are_mapped::<f32>(&device, true, None));
    }
}
