//! Emulators for the tests, and ways to run kernels on them.

pub mod planted;

use std::num::NonZeroUsize;

use simt::{Checks, Emulator, Fault, Launch, Options, Schedule, Space, Statistics, lane};

pub fn emulator(workers: usize, checks: Checks, schedule: Schedule) -> Emulator {
    Emulator::new(
        Options::new()
            .workers(NonZeroUsize::new(workers))
            .checks(checks)
            .schedule(schedule),
    )
}

/// One worker, all checks, blocks in order: every run is the same.
pub fn strict() -> Emulator {
    emulator(1, Checks::Full, Schedule::InOrder)
}

/// Emulators with different schedules and checks. A correct kernel computes the same on all of them.
pub fn variety() -> Vec<Emulator> {
    let mut all = vec![
        strict(),
        emulator(3, Checks::Full, Schedule::InOrder),
        emulator(1, Checks::BoundsOnly, Schedule::InOrder),
        emulator(4, Checks::BoundsOnly, Schedule::Random { seed: 1 }),
    ];
    all.extend((0..4).map(|seed| emulator(1, Checks::Full, Schedule::Random { seed })));
    all
}

/// An emulator with all checks for each of 100 random schedules. Each second one has two workers.
pub fn schedules() -> impl Iterator<Item = Emulator> {
    (0..100).map(|seed| {
        emulator(
            1 + seed as usize % 2,
            Checks::Full,
            Schedule::Random { seed },
        )
    })
}

pub fn shape(grid: u32, block: u32) -> Launch<'static> {
    Launch {
        kernel: "tested",
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        shared_bytes: 0,
    }
}

/// Allocates `words` words of device memory, all zero.
pub fn zeros(emulator: &Emulator, words: u32) -> u64 {
    let address = emulator.allocate(4 * u64::from(words), 4).unwrap();
    emulator.zero(address, 4 * u64::from(words)).unwrap();
    address
}

pub fn upload(emulator: &Emulator, words: &[u32]) -> u64 {
    let address = emulator.allocate(4 * words.len() as u64, 4).unwrap();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    emulator.write(address, &bytes).unwrap();
    address
}

pub fn download(emulator: &Emulator, address: u64, words: u32) -> Vec<u32> {
    let mut bytes = vec![0; 4 * words as usize];
    emulator.read(address, &mut bytes).unwrap();
    let (words, _) = bytes.as_chunks();
    words.iter().map(|&word| u32::from_ne_bytes(word)).collect()
}

/// Runs a kernel that returns a word for each thread. Returns the words in the order of blocks and threads.
pub fn words(emulator: &Emulator, launch: Launch<'_>, thread: impl Fn() -> u32 + Sync) -> Vec<u32> {
    let per_block: u32 = launch.block.iter().product();
    let count = launch.grid.iter().product::<u32>() * per_block;
    let out = emulator.allocate(4 * u64::from(count), 4).unwrap();
    emulator
        .launch(launch, &|| {
            let word = thread();
            put(out, block_number() * per_block + thread_number(), word);
        })
        .unwrap();
    download(emulator, out, count)
}

pub fn run(
    emulator: &Emulator,
    launch: Launch<'_>,
    thread: impl Fn() + Sync,
) -> Result<Statistics, Fault> {
    emulator.launch(launch, &thread)
}

pub fn block_number() -> u32 {
    let ([x, y, z], [width, height, _]) = (lane::block_idx(), lane::grid_dim());
    (z * height + y) * width + x
}

pub fn thread_number() -> u32 {
    let ([x, y, z], [width, height, _]) = (lane::thread_idx(), lane::block_dim());
    (z * height + y) * width + x
}

#[track_caller]
pub fn get(base: u64, index: u32) -> u32 {
    lane::load::<u32, 1>(Space::Global, base + 4 * u64::from(index))[0]
}

#[track_caller]
pub fn put(base: u64, index: u32, word: u32) {
    lane::store(Space::Global, base + 4 * u64::from(index), [word]);
}

#[track_caller]
pub fn get_shared(base: u64, index: u32) -> u32 {
    lane::load::<u32, 1>(Space::Shared, base + 4 * u64::from(index))[0]
}

#[track_caller]
pub fn put_shared(base: u64, index: u32, word: u32) {
    lane::store(Space::Shared, base + 4 * u64::from(index), [word]);
}
