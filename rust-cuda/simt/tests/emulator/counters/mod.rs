//! Counters: what hardware would execute, request by request.

mod divergence;
mod memory;
mod reports;

use simt::{Counters, Emulator, Launch, LaunchReport, Options, Space, lane};

/// An emulator that counts, and a buffer of zeros of 4 byte words.
fn counting(options: Options, words: u64) -> (Emulator, u64) {
    let emulator = Emulator::new(options.counters(options.counters.unwrap_or_default()));
    let buffer = emulator.allocate(4 * words, 4).unwrap();
    emulator.zero(buffer, 4 * words).unwrap();
    (emulator, buffer)
}

const LAUNCH: Launch<'_> = Launch {
    kernel: "counted",
    grid: [1, 1, 1],
    block: [32, 1, 1],
    shared_bytes: 0,
};

/// The report of one launch.
fn report(emulator: &Emulator, launch: Launch<'_>, kernel: &(dyn Fn() + Sync)) -> LaunchReport {
    emulator.launch(launch, kernel).unwrap();
    let mut reports = emulator.take_reports();
    assert_eq!(reports.len(), 1, "each launch has one report");
    reports.pop().unwrap()
}

/// The counters of one warp that loads from the words of a buffer, and the kernel that it runs.
fn one_warp(words: u64, kernel: impl Fn(u64) + Sync) -> Counters {
    let (emulator, buffer) = counting(Options::default(), words);
    report(&emulator, LAUNCH, &|| kernel(buffer)).total
}

#[track_caller]
fn load(buffer: u64, word: u32) -> u32 {
    lane::load::<u32, 1>(Space::GlobalReadOnly, buffer + 4 * u64::from(word))[0]
}

/// Requests, sectors and lanes of loads from global memory.
fn loads(counters: Counters) -> [u64; 3] {
    let loads = counters.global_loads;
    [loads.requests, loads.sectors, loads.lanes]
}

#[inline(never)]
fn load_twice(buffer: u64, word: u32) -> u32 {
    load(buffer, word) + load(buffer, word + 1)
}

#[inline(always)]
#[track_caller]
fn load_inlined(buffer: u64, word: u32) -> u32 {
    load(buffer, word)
}
