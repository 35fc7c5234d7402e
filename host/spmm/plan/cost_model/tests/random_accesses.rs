//! What the cost model knows of accesses to random addresses: rows of X from memory, and rows of Y in another order.

use super::super::caches::Misses;
use super::*;

fn ordered(a: Statistics) -> Statistics {
    Statistics {
        is_ordered: true,
        ..a
    }
}

/// Checks the bytes of a row of X whose time a nonzero takes, for numbers of features.
fn check_bytes_of_rows(wanted: &[(u32, f64)], of_product: impl Fn(&Product<'_>) -> f64) {
    let model = model(&DeviceProfile::h200());
    let a = even(100_000, 20);
    for &(features, wanted) in wanted {
        let candidate = row(features).vector(32, 1);
        let found = of_product(&Product::new(&model, &a, &candidate)) / f64::from(a.nonzeros);
        assert!(
            (found - wanted).abs() < 1e-9,
            "{features} features: {found}"
        );
    }
}

#[test]
fn a_part_of_a_line_takes_the_memory_four_fifths_of_the_time_of_a_line() {
    let wanted = [
        // Within one line.
        (8, 0.8 * 128.0),
        (16, 0.8 * 128.0),
        // A whole line, and four.
        (32, 128.0),
        (128, 512.0),
        // 24 bytes at a multiple of 8: 1.125 lines in the mean.
        (6, 0.8 * 144.0),
        // 132 bytes at a multiple of 4: 2 lines.
        (33, 0.8 * 256.0),
    ];
    check_bytes_of_rows(&wanted, |product| {
        let all_miss = Misses {
            l1: 1.0,
            l2: 1.0,
            streamed: 0.0,
        };
        let seconds = product.memory_seconds(&all_miss);
        seconds * product.gpu.memory_rate * FITTED.memory_efficiency
    });
}

#[test]
fn a_part_of_a_line_takes_the_l2_cache_more_time_than_its_sectors() {
    let wanted = [
        (8, 0.35 * 128.0),
        (16, 64.0),
        (32, 128.0),
        // 24 bytes at a multiple of 8: 1.125 lines in the mean.
        (6, 0.35 * 144.0),
        // 132 bytes at a multiple of 4: five sectors in the mean, more than 0.35 of two lines.
        (33, 160.0),
    ];
    check_bytes_of_rows(&wanted, |product| {
        let [all_hit, all_miss] = [0.0, 1.0].map(|l1| {
            product.l2_seconds(&Misses {
                l1,
                l2: 0.0,
                streamed: 0.0,
            })
        });
        let bytes_per_cycle = FITTED.l2_bytes_per_cycle * product.gpu.relative_l2_rate;
        (all_miss - all_hit) * bytes_per_cycle * product.cycles_per_second()
    });
}

#[test]
fn each_tile_reads_the_lists_from_memory_again() {
    let model = model(&DeviceProfile::h200());
    let a = even(100_000, 20);
    let streamed = Misses {
        l1: 0.0,
        l2: 0.0,
        streamed: 1.0,
    };
    let seconds = [8, 16, 32].map(|lanes| {
        let candidate = row(128).vector(lanes, 1);
        let product = Product::new(&model, &a, &candidate);
        (product.tile.count, product.memory_seconds(&streamed))
    });
    assert_eq!(seconds.map(|(tiles, _)| tiles), [4.0, 2.0, 1.0]);
    let of_lists = 8.0 * f64::from(a.nonzeros);
    let of_lists = of_lists / (model.gpu.memory_rate * FITTED.memory_efficiency);
    let [four, two, one] = seconds.map(|(_, seconds)| seconds);
    assert!((two - one - of_lists).abs() < 1e-12, "{seconds:?}");
    assert!((four - one - 3.0 * of_lists).abs() < 1e-12, "{seconds:?}");
}

#[test]
fn rows_of_y_in_another_order_are_parts_of_lines_and_have_to_be_looked_up() {
    let model = model(&DeviceProfile::h200());
    // All items run at the same time.
    let a = even(3_000, 20);
    let streamed = Misses {
        l1: 0.0,
        l2: 0.0,
        streamed: 1.0,
    };
    let groups = row(6).row_groups().last().unwrap();
    // Two blocks store each row of Y, and load it once. There are fewer tasks than slots.
    let blocks = row(6).vector(8, 2);
    let slots = Product::new(&model, &a, &blocks).slots();
    let rows_of_task = 3_000.0 / (3_000.0 * 24.0 / STEPS);
    assert!(3_000.0 / rows_of_task < slots);
    for (candidate, accesses, lookups) in [(groups, 1.0, 1.0), (blocks, 3.0, rows_of_task * 2.0)] {
        let of = |a: &Statistics| {
            let product = Product::new(&model, a, &candidate);
            let bytes = product.memory_seconds(&streamed) * model.gpu.memory_rate;
            [bytes, product.latency_seconds() * model.gpu.clock]
        };
        let [given, another] = [of(&a), of(&ordered(a.clone()))];
        let more_bytes = (another[0] - given[0]) * FITTED.memory_efficiency / 3_000.0;
        let wanted = accesses * (0.8 * 144.0 - 24.0);
        assert!((more_bytes - wanted).abs() < 1e-6, "{more_bytes}");
        let more_cycles = another[1] - given[1];
        assert!(
            (more_cycles - 250.0 * lookups).abs() < 1e-6,
            "{more_cycles}"
        );
    }
}
