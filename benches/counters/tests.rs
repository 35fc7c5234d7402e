//! The micro-kernels on the emulator, and the script that compares.

use crate::counters::bench::{Prepared, cases, emulator};
use crate::counters::micro;
use crate::counters::patterns::{Kernel, patterns};
use std::collections::HashSet;
use std::process::Command;
use warprow::device::{CounterOptions, Counters, LaunchReport};
use warprow_bench_kernels::PTX;

/// What the launches of a micro-kernel have counted.
fn counted(name: &str) -> LaunchReport {
    let device = emulator();
    device.load_kernels(PTX).unwrap();
    let case = micro::cases().into_iter().find(|case| case.name == name);
    let prepared = (case.unwrap().prepare)(&device, 1).unwrap();
    let Prepared::Product(product) = prepared else {
        panic!("{name} was skipped");
    };
    device
        .set_counters(Some(CounterOptions::default()))
        .unwrap();
    product().unwrap();
    let mut reports = device.launch_reports().unwrap();
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

/// Sectors or wavefronts of the access that a pattern is about, without those that every kernel of its kind has.
fn counted_by(kernel: Kernel, counters: &Counters) -> u64 {
    match kernel {
        // The indices are 32 consecutive words.
        Kernel::Load(_) => counters.global_loads.sectors - 4,
        Kernel::Store(_) => counters.global_stores.sectors,
        Kernel::Reduce(_) => counters.global_reductions.sectors,
        Kernel::Atomic(_) => counters.global_atomics.sectors,
        Kernel::SharedLoad(_) => counters.shared_loads.wavefronts,
        // A warp fills the 36 rows of 128 bytes.
        Kernel::SharedStore(_) => counters.shared_stores.wavefronts - 36,
        Kernel::SharedAtomic => counters.shared_atomics.wavefronts,
        Kernel::AsyncCopy(_) => counters.async_copies.sectors,
    }
}

#[test]
fn every_pattern_has_the_counts_that_the_rules_give() {
    for pattern in patterns() {
        let report = counted(&format!("micro/{}", pattern.name()));
        let found = counted_by(pattern.kernel, &report.total);
        assert_eq!(found, pattern.expected, "{}", pattern.name());
    }
}

#[test]
fn collectives_are_counted_by_kind() {
    let total = counted("micro/collectives").total;
    let executed = total.collectives().map(|(_, of)| of.executed);
    assert_eq!(executed, [3, 4, 0, 1, 2]);
}

#[test]
fn the_model_reads_nothing_from_memory_for_stores() {
    for words in [1_u64, 8] {
        let report = counted(&format!("micro/partial_stores/{words}_words"));
        assert_eq!(report.memory.unwrap().memory_read_bytes, 0);
        assert_eq!(report.total.global_stores.sectors, words << 18);
    }
}

#[test]
fn shared_memory_limits_the_blocks() {
    let report = counted("micro/occupancy/49152");
    assert_eq!(report.dynamic_shared_bytes, 49_152);
}

#[test]
fn the_names_of_cases_differ() {
    let names: Vec<String> = cases().into_iter().map(|case| case.name).collect();
    let distinct: HashSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
}

#[test]
fn the_script_pairs_the_launches_of_both_devices() {
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../scripts/counters-against-ncu"
    );
    let mut command = Command::new("python3");
    // The checkout stays as it is.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    match command.arg(script).arg("--self-test").output() {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(error) => println!("skipped: python3 does not run: {error}"),
    }
}
