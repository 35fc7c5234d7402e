//! Counters that need the whole launch: contended words, bank conflicts in shared arrays, and the models.

use std::num::NonZeroUsize;

use simt::{
    CounterOptions, Emulator, Hardware, Launch, LaunchReport, Options, Parameter, Schedule, Scope,
    Space, lane,
};

/// Words of the buffer that the kernels use.
const WORDS: u64 = 1 << 16;

/// The report of a launch of `blocks` blocks of 32 threads; the kernel gets the address of a buffer of zeros.
fn report(options: Options, blocks: u32, kernel: impl Fn(u64) + Sync) -> (LaunchReport, u64) {
    let hardware = Some(Hardware::H200);
    let emulator = Emulator::new(options.counters(CounterOptions::new().hardware(hardware)));
    let buffer = emulator.allocate(4 * WORDS, 4).unwrap();
    emulator.zero(buffer, 4 * WORDS).unwrap();
    let launch = Launch {
        kernel: "counted",
        grid: [blocks, 1, 1],
        block: [32, 1, 1],
        shared_bytes: 4096,
    };
    emulator.launch(launch, &|| kernel(buffer)).unwrap();
    (emulator.take_reports().pop().unwrap(), buffer)
}

/// Adds one to a word of the buffer.
fn add(buffer: u64, word: u64) {
    lane::atomic::<u32>(Space::Global, Scope::Device, buffer + 4 * word, |old| {
        Some(old + 1)
    });
}

fn load(buffer: u64, word: u64) {
    lane::load::<u32, 1>(Space::Global, buffer + 4 * word);
}

#[test]
fn the_most_contended_word_comes_first_and_has_its_parameter_as_name() {
    let (mut report, buffer) = report(Options::default(), 5, |buffer| {
        add(buffer, 100);
        add(buffer, 200 + u64::from(lane::lane_id()) / 16);
    });
    report.name_parameters(&[Parameter {
        name: "sums".to_owned(),
        address: buffer,
        element: "u32",
        bytes: 4,
    }]);
    let found: Vec<_> = report
        .contended
        .iter()
        .map(|word| (word.element.as_deref().unwrap_or_default(), word.operations))
        .collect();
    assert_eq!(
        found,
        [("sums[100]", 160), ("sums[200]", 80), ("sums[201]", 80)]
    );
    // 31 lanes of the first operation repeat a word, and 30 of the second.
    assert_eq!(report.total.atomic_repeats, 5 * 61);
}

#[test]
fn columns_of_a_shared_array_conflict_and_rows_do_not() {
    let (report, _) = report(Options::default(), 1, |_| {
        let (array, lane) = (lane::shared_dynamic().0, u64::from(lane::lane_id()));
        lane::store::<u32, 1>(Space::Shared, array + 4 * lane, [1]);
        lane::store::<u32, 1>(Space::Shared, array + 128 * lane, [1]);
    });
    let stores = report.total.shared_stores;
    assert_eq!((stores.requests, stores.wavefronts), (2, 33));
    assert_eq!(stores.bank_conflicts, 31);
}

#[test]
fn what_blocks_load_again_comes_from_l2() {
    // Each of 132 multiprocessors loads the same 128 bytes, and one of its own.
    let (report, _) = report(Options::default(), 132, |buffer| {
        let (block, lane) = (u64::from(lane::block_idx()[0]), u64::from(lane::lane_id()));
        load(buffer, lane);
        load(buffer, 32 * (1 + block) + lane);
        load(buffer, lane);
    });
    let memory = report.memory.unwrap();
    assert_eq!(memory.l2_read_bytes, 132 * 256);
    assert_eq!(memory.memory_read_bytes, 133 * 128);
}

#[test]
fn workers_schedules_and_emulators_do_not_change_the_models() {
    // Loads from one half of the buffer, atomic operations on the other.
    const HALF: u64 = WORDS / 2;
    let kernel = |buffer| {
        let (block, lane) = (u64::from(lane::block_idx()[0]), u64::from(lane::lane_id()));
        for turn in 0..4 {
            load(buffer, (block * 7919 + lane * 977 + turn * 31) % HALF);
        }
        add(buffer, HALF + (block + lane) * 131 % HALF);
    };
    let traffic = |workers, schedule| {
        let options = Options::new()
            .workers(NonZeroUsize::new(workers))
            .schedule(schedule);
        let (mut report, buffer) = report(options, 300, kernel);
        for word in &mut report.contended {
            word.address -= buffer;
        }
        (report.memory, report.contended)
    };
    let expected = traffic(1, Schedule::InOrder);
    assert!(
        expected
            .0
            .is_some_and(|memory| memory.memory_read_bytes > 0)
    );
    assert_eq!(traffic(3, Schedule::InOrder), expected);
    assert_eq!(traffic(2, Schedule::Random { seed: 5 }), expected);
}
