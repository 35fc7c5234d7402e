//! The emulator's time for small kernels on one worker, with each kind of checks, and with counters.

use std::fmt;
use std::num::NonZeroUsize;

use divan::{Bencher, counter::ItemsCount};
use simt::{
    Checks, CounterOptions, Emulator, Hardware, Launch, LaunchReport, Options, Scope, Space, lane,
};

const ROWS: u32 = 64;
const NONZEROS: u32 = 64;

fn main() {
    divan::main();
}

/// What an emulator checks and counts.
#[derive(Clone, Copy, Debug)]
struct Work {
    checks: Checks,
    counters: Option<CounterOptions>,
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = match self.counters {
            None => "",
            Some(options) if options.hardware.is_none() => ", counted",
            Some(_) => ", counted with caches",
        };
        write!(f, "{:?}{counted}", self.checks)
    }
}

/// Both kinds of checks without counters, with counters, and with the model of the caches.
fn all() -> impl Iterator<Item = Work> {
    let counted = CounterOptions::default();
    let with_caches = counted.hardware(Hardware::H200);
    [Checks::BoundsOnly, Checks::Full]
        .into_iter()
        .flat_map(move |checks| {
            [None, Some(counted), Some(with_caches)].map(|counters| Work { checks, counters })
        })
}

fn emulator(Work { checks, counters }: Work) -> Emulator {
    Emulator::new(
        Options::new()
            .workers(NonZeroUsize::new(1))
            .checks(checks)
            .counters(counters),
    )
}

/// Runs a launch and forgets its report.
fn run(emulator: &Emulator, launch: Launch<'_>, kernel: &(dyn Fn() + Sync)) -> Vec<LaunchReport> {
    emulator.launch(launch, kernel).unwrap();
    emulator.take_reports()
}

/// An item is a nonzero of warp-per-row SpMM with 32 features: each of 32 lanes executes two shuffles, a read-only load
/// and a multiply-add.
#[divan::bench(args = all())]
fn shuffled_nonzeros(bencher: Bencher<'_, '_>, work: Work) {
    let emulator = emulator(work);
    let dense = emulator.allocate(4 * 32 * u64::from(NONZEROS), 4).unwrap();
    let out = emulator.allocate(4 * 32 * u64::from(ROWS), 4).unwrap();
    emulator.zero(dense, 4 * 32 * u64::from(NONZEROS)).unwrap();
    let launch = Launch {
        kernel: "spmm",
        grid: [ROWS / 4, 1, 1],
        block: [32, 4, 1],
        shared_bytes: 0,
    };
    let kernel = || {
        let lane = lane::lane_id();
        let row = lane::block_idx()[0] * 4 + lane::thread_idx()[1];
        let mut sum = 0.0_f32;
        for nonzero in 0..NONZEROS {
            let (column, _) =
                lane::shuffle_idx(u32::MAX, u64::from(nonzero + lane), nonzero % 32, 32);
            let (value, _) = lane::shuffle_idx(u32::MAX, u64::from(lane), nonzero % 32, 32);
            let column = (column as u32) % NONZEROS;
            let address = dense + 4 * u64::from(column * 32 + lane);
            let [bits] = lane::load::<u32, 1>(Space::GlobalReadOnly, address);
            sum = f32::from_bits(bits).mul_add(f32::from_bits(value as u32), sum);
        }
        lane::store(
            Space::Global,
            out + 4 * u64::from(row * 32 + lane),
            [sum.to_bits()],
        );
    };
    bencher
        .counter(ItemsCount::new(ROWS * NONZEROS))
        .bench(|| run(&emulator, launch, &kernel));
}

/// An item is a thread that loads, increments and stores a word. It never waits.
#[divan::bench(args = all())]
fn independent_threads(bencher: Bencher<'_, '_>, work: Work) {
    let emulator = emulator(work);
    let threads = 64 * 256;
    let [from, to] = [(); 2].map(|()| emulator.allocate(4 * threads, 4).unwrap());
    emulator.zero(from, 4 * threads).unwrap();
    let launch = Launch {
        kernel: "increment",
        grid: [64, 1, 1],
        block: [256, 1, 1],
        shared_bytes: 0,
    };
    let kernel = || {
        let thread = lane::block_idx()[0] * 256 + lane::thread_idx()[0];
        let at = 4 * u64::from(thread);
        let [value] = lane::load::<u32, 1>(Space::GlobalReadOnly, from + at);
        lane::store(Space::Global, to + at, [value + 1]);
    };
    bencher
        .counter(ItemsCount::new(threads))
        .bench(|| run(&emulator, launch, &kernel));
}

/// An item is a thread that stores and loads a word of shared memory between warp barriers, and adds to a counter.
#[divan::bench(args = all())]
fn shared_words(bencher: Bencher<'_, '_>, work: Work) {
    let emulator = emulator(work);
    let counters = emulator.allocate(4 * 32, 4).unwrap();
    emulator.zero(counters, 4 * 32).unwrap();
    let launch = Launch {
        kernel: "reverse",
        grid: [64, 1, 1],
        block: [256, 1, 1],
        shared_bytes: 4 * 256,
    };
    let kernel = || {
        let (thread, lane) = (u64::from(lane::thread_idx()[0]), lane::lane_id());
        let (shared, _) = lane::shared_dynamic();
        lane::store(Space::Shared, shared + 4 * thread, [lane]);
        lane::sync_warp(u32::MAX);
        let [word] = lane::load::<u32, 1>(Space::Shared, shared + 4 * (thread ^ 31));
        lane::sync_warp(u32::MAX);
        let counter = counters + 4 * u64::from(lane);
        lane::atomic::<u32>(Space::Global, Scope::Device, counter, |sum| {
            Some(sum.wrapping_add(word))
        });
    };
    bencher
        .counter(ItemsCount::new(64_u32 * 256))
        .bench(|| run(&emulator, launch, &kernel));
}

/// An item is an element that a thread gathers in thread-per-row SpMM. The lanes of a warp have rows of 1 to 32
/// elements, and columns all over the matrix.
#[divan::bench(args = all())]
fn diverged_rows(bencher: Bencher<'_, '_>, work: Work) {
    const COLUMNS: u32 = 1 << 14;
    let emulator = emulator(work);
    let dense = emulator.allocate(4 * u64::from(COLUMNS), 4).unwrap();
    let threads = 128 * 64;
    let out = emulator.allocate(4 * threads, 4).unwrap();
    emulator.zero(dense, 4 * u64::from(COLUMNS)).unwrap();
    let launch = Launch {
        kernel: "gather",
        grid: [128, 1, 1],
        block: [64, 1, 1],
        shared_bytes: 0,
    };
    let length = |thread: u32| 1 + thread * 13 % 32;
    let kernel = || {
        let thread = lane::block_idx()[0] * 64 + lane::thread_idx()[0];
        let mut column = thread;
        let mut sum = 0;
        for _ in 0..length(thread) {
            column = column.wrapping_mul(1_103_515_245).wrapping_add(12_345) % COLUMNS;
            let [value] =
                lane::load::<u32, 1>(Space::GlobalReadOnly, dense + 4 * u64::from(column));
            sum += value;
        }
        lane::store(Space::Global, out + 4 * u64::from(thread), [sum]);
    };
    let elements: u32 = (0..threads as u32).map(length).sum();
    bencher
        .counter(ItemsCount::new(elements))
        .bench(|| run(&emulator, launch, &kernel));
}
