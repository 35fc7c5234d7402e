//! The product map of short rows: it changes no bit, and is made where it pays and fits.

use crate::{bin_limits, whole};
use sprs::CsMatI;
use support::devices;
use warprow::CsrMatrix;
use warprow::DeviceCsr;
use warprow::device::Device;
use warprow::spgemm::{Spgemm, SpgemmElement, SpgemmOptions, multiply};

/// Rows of 1 to 17 nonzeros, and empty ones. All rows of B share the column 3, so its entry in a row of C has as many
/// products as the row of A has nonzeros.
fn short_rows<T: SpgemmElement>() -> (CsrMatrix<T>, CsrMatrix<T>) {
    let a = (0..301_u32).map(|i| (0..i % 18).map(|j| (i * 7 + j * 31) % 90).collect());
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
    let (a, b) = (
        DeviceCsr::upload(device, a.view()).unwrap(),
        DeviceCsr::upload(device, b.view()).unwrap(),
    );
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
    assert!(with.to_string().contains("product map cached"), "{with}");
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
        let there = |matrix: &CsrMatrix<f32>| DeviceCsr::upload(&device, matrix.view()).unwrap();
        let (a, b) = (there(&a), there(&b));
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
    // Three rows of two products, and one of 4,000 entries.
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
            let (a, b) = (
                DeviceCsr::upload(&device, a.view()).unwrap(),
                DeviceCsr::upload(&device, b.view()).unwrap(),
            );
            let spgemm = Spgemm::<f32>::symbolic(a.pattern(), b.pattern(), options).unwrap();
            spgemm.numeric(a.values(), b.values()).unwrap();
            let text = spgemm.to_string();
            let words: Vec<_> = text.split_whitespace().collect();
            let at = words.iter().position(|&word| word == "bytes");
            (spgemm, at.map(|at| words[at - 1].parse::<u64>().unwrap()))
        };
        let (spgemm, bytes) = is_cached((&a.0, &a.1), None);
        // All rows are short: 8 bytes a product, 4 an entry, and 4 more.
        let wanted = 8 * spgemm.products() + 4 * (spgemm.entries() as u64 + 1);
        assert_eq!(bytes, Some(wanted), "{spgemm}");
        assert_eq!(is_cached((&a.0, &a.1), Some(wanted)).1, Some(wanted));
        assert_eq!(is_cached((&a.0, &a.1), Some(wanted - 1)).1, None);
        assert_eq!(is_cached((&a.0, &a.1), Some(100)).1, None);
        // The long row has a map of its own, which needs fewer bytes than 4 for each entry.
        let (spgemm, bytes) = is_cached((&few, &b), None);
        let bytes = bytes.unwrap_or_default();
        assert!(bytes < 4 * spgemm.entries() as u64, "{spgemm}");
    }
}
