//! A report for the tests of its text.

use crate::counters::hardware::Hardware;
use crate::counters::report::{
    BlockWork, CollectiveCounters, ContendedWord, Counters, GlobalCounters, LaunchReport,
    LineCounters, MemoryTraffic, SharedCounters,
};

/// A launch of two blocks, in which something of each kind stands out.
pub(super) fn sample() -> LaunchReport {
    let loads = Counters {
        global_loads: GlobalCounters {
            requests: 1000,
            sectors: 32_000,
            lanes: 32_000,
            bytes: 128_000,
        },
        shared_loads: SharedCounters {
            requests: 200,
            wavefronts: 800,
            bank_conflicts: 600,
            lanes: 6400,
        },
        ..Counters::default()
    };
    let rest = Counters {
        global_reductions: GlobalCounters {
            requests: 100,
            sectors: 400,
            lanes: 1600,
            bytes: 2048,
        },
        block_barriers: CollectiveCounters {
            executed: 40,
            lanes: 1280,
        },
        atomic_repeats: 400,
        ..Counters::default()
    };
    let line = |line, counters| LineCounters {
        file: "add.rs".to_owned(),
        line,
        counters,
    };
    let block = |block, warps: [u64; 2]| BlockWork {
        block,
        warps: warps.to_vec(),
        elements: 0,
    };
    let word = |address, element: Option<&str>, operations| ContendedWord {
        address,
        element: element.map(str::to_owned),
        operations,
    };
    let mut total = loads;
    total += rest;
    let mut report = LaunchReport {
        kernel: "add".to_owned(),
        grid: [2, 1, 1],
        block: [64, 1, 1],
        total,
        lines: vec![line(3, loads), line(11, rest)],
        blocks: vec![block(0, [1000, 300]), block(1, [20, 20])],
        contended: vec![word(0x84, Some("y[17]"), 900), word(0x40, None, 20)],
        memory: Some(MemoryTraffic {
            l2_read_bytes: 1_024_000,
            memory_read_bytes: 24_000,
        }),
        ..LaunchReport::default()
    };
    report.set_registers(&Hardware::H100, 128);
    report
}
