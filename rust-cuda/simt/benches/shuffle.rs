//! The emulator's time for a nonzero of warp-per-row SpMM with 32 features, on one worker. Each of 32 lanes executes
//! two shuffles, a read-only load and a multiply-add. An item is a nonzero.

use std::num::NonZeroUsize;

use divan::{Bencher, counter::ItemsCount};
use simt::{Checks, Emulator, Launch, Options, Scope, Space, lane};

const ROWS: u32 = 64;
const NONZEROS: u32 = 64;

fn main() {
    divan::main();
}

fn emulator(checks: Checks) -> Emulator {
    Emulator::new(Options::new().workers(NonZeroUsize::new(1)).checks(checks))
}

#[divan::bench(args = [Checks::BoundsOnly, Checks::Full])]
fn shuffled_nonzeros(bencher: Bencher<'_, '_>, checks: Checks) {
    let emulator = emulator(checks);
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
        .bench(|| emulator.launch(launch, &kernel).unwrap());
}

/// An item is a thread that loads, increments and stores a word. It never waits.
#[divan::bench(args = [Checks::BoundsOnly, Checks::Full])]
fn independent_threads(bencher: Bencher<'_, '_>, checks: Checks) {
    let emulator = emulator(checks);
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
        .bench(|| emulator.launch(launch, &kernel).unwrap());
}

/// An item is a thread that stores and loads a word of shared memory between warp barriers, and adds to a counter.
#[divan::bench(args = [Checks::BoundsOnly, Checks::Full])]
fn shared_words(bencher: Bencher<'_, '_>, checks: Checks) {
    let emulator = emulator(checks);
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
        .bench(|| emulator.launch(launch, &kernel).unwrap());
}
