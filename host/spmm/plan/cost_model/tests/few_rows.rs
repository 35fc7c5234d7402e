//! What the cost model knows of few rows: teams, tasks that all run at the same time, and the longest row.

use super::super::caches::Misses;
use super::super::tile::Tile;
use super::*;

/// `in_step` for 64 features, which are one tile.
fn in_step() -> Candidate {
    let candidate = row(64).in_step(Some(16)).next().unwrap();
    assert_eq!((candidate.lanes, Tile::of(&candidate).count), (16, 1.0));
    candidate
}

#[test]
fn in_step_waits_for_teams_where_a_wave_would_be_at_most_half_full() {
    let model = model(&DeviceProfile::h200());
    let candidate = in_step();
    let of_wave = model.gpu.multiprocessors * candidate.resident_warps();
    let of_row = |nonzeros: f64| {
        FITTED.cycles_per_row_in_step + nonzeros / 2.0 * FITTED.cycles_per_nonzero_in_step
    };
    let (row, pair, four) = (of_row(200.0), of_row(100.0), of_row(50.0));
    for (waves, mean_row, wanted) in [
        (0.2, 200, four),
        (0.3, 200, pair),
        (0.6, 200, row),
        (1.2, 200, row + four),
        (1.4, 200, row + pair),
        (1.6, 200, 2.0 * row),
        (8.2, 200, 9.0 * row),
        // Rows are too short for teams of four, or for any.
        (0.2, 100, of_row(50.0)),
        (0.2, 60, of_row(60.0)),
    ] {
        let a = even((waves * of_wave) as u32, mean_row);
        let found = Product::new(&model, &a, &candidate).latency_seconds() * model.gpu.clock;
        assert!(
            (found / wanted - 1.0).abs() < 1e-9,
            "{waves} waves: {found}"
        );
    }
}

#[test]
fn where_all_rows_have_teams_the_longest_one_has_too() {
    let model = model(&DeviceProfile::h200());
    let candidate = in_step();
    let misses = Misses {
        l1: 1.0,
        l2: 0.0,
        streamed: 0.0,
    };
    let seconds = |rows, longest_row| {
        let a = Statistics {
            longest_row,
            ..even(rows, 150)
        };
        Product::new(&model, &a, &candidate)
            .longest_row(&misses)
            .overlapping
    };
    let ratio = |rows, longest| seconds(rows, longest) / seconds(600, 200);
    for (rows, longest, wanted) in [
        (2_700, 200, 4.0),
        (1_800, 200, 2.0),
        // A row of more than 256 nonzeros has four warps.
        (1_800, 300, 2.56),
        (1_800, 1_000, 5.0),
    ] {
        let found = ratio(rows, longest);
        assert!((found - wanted).abs() < 1e-9, "{rows}, {longest}: {found}");
    }
}

#[test]
fn a_batch_of_the_longest_row_takes_longer_where_x_is_in_slower_memory() {
    let model = model(&DeviceProfile::h200());
    let a = even(1_000, 100);
    for candidate in row(64).row_groups().chain(row(64).row_bins()) {
        let product = Product::new(&model, &a, &candidate);
        let cycles = |[l1, l2]: [f64; 2]| {
            let misses = Misses {
                l1,
                l2,
                streamed: 0.0,
            };
            product.longest_row(&misses).overlapping * model.gpu.clock
        };
        let of_groups = FITTED.cycles_per_last_batch;
        let (of_row, batches, cached, uncached) = match product.binned {
            Some(binned) => (FITTED.cycles_per_binned_row, binned.longest, 305.0, 666.0),
            None => {
                let batches = product.batches(a.longest_row.into());
                (FITTED.cycles_per_group, batches, of_groups / 2.0, of_groups)
            }
        };
        for (misses, wanted) in [
            ([0.0, 0.0], cached),
            ([0.5, 0.0], (cached + uncached) / 2.0),
            ([1.0, 0.0], uncached),
            ([1.0, 1.0], uncached + 1200.0),
        ] {
            let found = (cycles(misses) - of_row) / batches;
            assert!(
                (found / wanted - 1.0).abs() < 1e-9,
                "{candidate:?}: {found}"
            );
        }
    }
}

#[test]
fn a_batch_of_more_loads_takes_as_long_if_all_rows_run_at_once() {
    let model = model(&DeviceProfile::h200());
    let rate = |rows| {
        let a = Statistics {
            cols: 2_000,
            ..even(rows, 400)
        };
        let shared = row(4).row_bins_with_shared_x(a.cols, model.shared_bytes());
        let shared = shared.unwrap();
        let product = Product::new(&model, &a, &shared);
        let waves = (product.binned.unwrap().warps / product.slots()).max(1.0);
        let cycles = product.latency_seconds() * model.gpu.clock / waves;
        let batches = product.binned.unwrap().batches / product.binned.unwrap().warps;
        (cycles - FITTED.cycles_per_binned_row) / batches / FITTED.cycles_per_batch
    };
    for (rows, wanted) in [(1_000, 1.0), (50_000, 2.0)] {
        let found = rate(rows);
        assert!((found - wanted).abs() < 1e-9, "{rows} rows: {found}");
    }
}

#[test]
fn tasks_that_all_run_at_the_same_time_cut_rows_of_more_than_64_nonzeros() {
    let model = model(&DeviceProfile::h200());
    let launches = |rows, longest_row, candidate: &Candidate| {
        let a = Statistics {
            longest_row,
            ..even(rows, 40)
        };
        Product::new(&model, &a, candidate).launches()
    };
    let vector = row(64).vector(16, 1);
    let (few, many) = (2_000, 1_000_000);
    assert_eq!(launches(few, 64, &vector), 1.0);
    assert_eq!(launches(few, 65, &vector), 2.0);
    assert_eq!(launches(many, 128, &vector), 1.0);
    assert_eq!(launches(many, 129, &vector), 2.0);
    // Such a task has up to 128 steps.
    let slots = model.gpu.multiprocessors * vector.resident_warps() * 2.0;
    let of_100_steps = (100.0 * slots / 42.0) as u32;
    assert_eq!(launches(of_100_steps, 99, &vector), 1.0);
    assert_eq!(launches(of_100_steps, 101, &vector), 2.0);
    // Tasks are not so small in blocks of columns.
    let blocks = row(64).vector(16, 2);
    assert_eq!(launches(few, 65, &blocks), 2.0);
    assert_eq!(launches(few, 129, &blocks), 4.0);
    let bins = row(64).row_bins().unwrap();
    assert_eq!(launches(few, 1_000, &bins), 1.0);
}
