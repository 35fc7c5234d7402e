//! SpGEMM: the kernels of both phases, of the whole product, and of structures that are used again.

use crate::assert_all_run;
use crate::operands::whole;
use support::spgemm_choices::{bin_limits, choices};
use warprow::spgemm::{Spgemm, SpgemmElement, SpgemmOptions, multiply};
use warprow::{CsrMatrix, Device, DeviceCsr, generate, reference};

#[test]
fn every_entry_point_runs() {
    assert_all_run("spgemm", |device| {
        let cases = cases();
        every_choice::<f32>(device, &cases);
        every_choice::<f64>(device, &cases);
    });
}

/// Two operands, and the limits that send their rows to kernels.
struct Case {
    a: CsrMatrix<f32>,
    b: CsrMatrix<f32>,
    options: Vec<SpgemmOptions>,
}

fn cases() -> Vec<Case> {
    let skewed = {
        let structure = generate::rmat::<f32>(200, 1400, [0.57, 0.19, 0.19, 0.05], 3).unwrap();
        let rows = structure.outer_iterator();
        whole(rows.map(|row| row.indices().to_vec()).collect(), 200)
    };
    // Rows of runs of columns, but for one.
    let mut runs: Vec<Vec<u32>> = (0..150).map(|i| (i..(i + 14).min(150)).collect()).collect();
    runs[0] = (20..30).filter(|&k| k != 25).collect();
    let runs = whole(runs, 150);
    let choices = choices();
    let for_runs = [0, 1, choices.len() - 1].map(|choice| choices[choice]);
    vec![
        Case {
            a: skewed.clone(),
            b: skewed,
            options: choices,
        },
        Case {
            a: runs.clone(),
            b: runs,
            options: for_runs.into(),
        },
        long_rows(),
        rows_of_each_size(),
    ]
}

/// Two rows of A that blocks measure, and rows of C of several chunks. One of them has too many products for a small
/// bitmap.
fn long_rows() -> Case {
    let n = 1100_u32;
    let mut a: Vec<Vec<u32>> = (0..40).map(|i| vec![i, 2 * i + 1]).collect();
    a[7] = (0..n).collect();
    a[9] = Vec::new();
    a[30] = (300..900).collect();
    let b = (0..n).map(|k| (0..k % 5 * 4).map(|j| (k * 37 + j * 701) % 4000).collect());
    let options = [
        bin_limits(|b| {
            b.window_span = 0;
            b.search_row_entries = 0;
            b.spread_products = 0;
            b.chunk_entries = 1024;
        }),
        bin_limits(|b| {
            b.window_span = 0;
            b.search_row_entries = 0;
            b.spread_products = 0;
            b.chunk_entries = 1024;
            b.rank_words = 0;
        }),
        bin_limits(|b| {
            b.spread_products = 1000;
            b.window_span = 0;
            b.search_row_products = 0;
            b.chunk_entries = 1024;
        }),
        SpgemmOptions::new().drop_zeros(true),
    ];
    Case {
        a: whole(a, n as usize),
        b: whole(b.collect(), 4000),
        options: options.into(),
    }
}

/// Rows of 1 to 512 products, each size of which is sorted by an instance of its own.
fn rows_of_each_size() -> Case {
    let a = (0..200_u32).map(|row| (0..row * 7 % 260).collect());
    let b = (0..260_u32).map(|k| vec![k * 11 % 3000, (k * 17 + 5) % 3000]);
    let sorted = bin_limits(|b| {
        b.numeric_sort_products = 512;
        b.window_span = 0;
    });
    Case {
        a: whole(a.collect(), 260),
        b: whole(b.collect(), 3000),
        options: vec![sorted, sorted.map_tuning(|tuning| tuning.low_memory(true))],
    }
}

fn every_choice<T: SpgemmElement>(device: &Device, cases: &[Case]) {
    for Case { a, b, options } in cases {
        let wanted = reference::spgemm(a.view(), b.view());
        let upload = |matrix: &CsrMatrix<f32>| {
            let matrix = matrix.map(|&value| T::from_f64(value.into()));
            DeviceCsr::upload(device, matrix.view()).unwrap()
        };
        let (a, b) = (upload(a), upload(b));
        for &options in options {
            let at_once = multiply(&a, &b, options).unwrap().c;
            let phases = Spgemm::symbolic(a.pattern(), b.pattern(), options).unwrap();
            let by_phases = phases.numeric(a.values(), b.values()).unwrap();
            for (c, way) in [(at_once, "at once"), (by_phases, "by phases")] {
                let c = c.download().unwrap().map(|value| value.to_f64());
                let kept = wanted
                    .iter()
                    .filter(|(value, _)| **value != 0.0 || !options.drop_zeros);
                assert!(
                    c.iter().eq(kept),
                    "{way}, {}, {options:?}: {phases}",
                    T::NAME
                );
            }
        }
    }
}
