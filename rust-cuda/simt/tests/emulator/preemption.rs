//! Random schedules switch threads between atomic operations, within a block and between blocks.

use crate::machine::{download, run, schedules, shape, strict, zeros};
use simt::{Emulator, Scope, Space, lane};

/// What a counter holds to which each thread adds one: by an atomic addition, or by a load and a store.
fn counted(emulator: &Emulator, grid: u32, block: u32, space: Space, at_once: bool) -> u32 {
    let global = zeros(emulator, 1);
    run(emulator, shape(grid, block), || {
        let counter = match space {
            Space::Shared => {
                let counter = lane::shared_static(1, 4, 4);
                if lane::thread_idx()[0] == 0 {
                    lane::atomic_store::<u32>(space, Scope::Block, counter, 0);
                }
                lane::sync_threads();
                counter
            }
            _ => global,
        };
        if at_once {
            lane::atomic::<u32>(space, Scope::Device, counter, |count| Some(count + 1));
        } else {
            let count = lane::atomic_load::<u32>(space, Scope::Device, counter);
            lane::atomic_store(space, Scope::Device, counter, count + 1);
        }
        if space == Space::Shared {
            lane::sync_threads();
            if lane::thread_idx()[0] == 0 {
                let count = lane::atomic_load::<u32>(space, Scope::Block, counter);
                lane::atomic::<u32>(Space::Global, Scope::Device, global, |all| {
                    Some(all + count)
                });
            }
        }
    })
    .unwrap();
    download(emulator, global, 1)[0]
}

const CASES: [(u32, u32, Space); 4] = [
    (1, 64, Space::Global),
    (1, 3, Space::Shared),
    (3, 1, Space::Global),
    (4, 40, Space::Shared),
];

#[test]
fn atomic_additions_lose_nothing_in_any_schedule() {
    for (grid, block, space) in CASES {
        for emulator in schedules() {
            let found = counted(&emulator, grid, block, space, true);
            assert_eq!(found, grid * block);
        }
    }
}

#[test]
fn many_schedules_show_what_a_load_and_a_store_lose() {
    for (grid, block, space) in CASES {
        let lossy = |emulator: Emulator| {
            let found = counted(&emulator, grid, block, space, false);
            assert!(found >= 1 && found <= grid * block);
            found < grid * block
        };
        let count = schedules()
            .filter_map(|emulator| lossy(emulator).then_some(()))
            .count();
        assert!(
            count >= 25,
            "{grid} blocks of {block}, {space:?}: {count} of 100"
        );
        // In order, with one worker, nothing comes in between.
        assert_eq!(counted(&strict(), grid, block, space, false), grid * block);
    }
}

#[test]
fn a_wrong_lock_lets_two_threads_in_in_some_schedule() {
    let both = |emulator: Emulator| {
        let words = zeros(&emulator, 2);
        let (taken, inside) = (words, words + 4);
        let most = zeros(&emulator, 1);
        let atomic = |address, update: &dyn Fn(u32) -> u32| {
            lane::atomic::<u32>(Space::Global, Scope::Device, address, |old| {
                Some(update(old))
            })
        };
        run(&emulator, shape(4, 1), || {
            // Test, then set.
            while lane::atomic_load::<u32>(Space::Global, Scope::Device, taken) != 0 {}
            lane::atomic_store::<u32>(Space::Global, Scope::Device, taken, 1);
            let others = atomic(inside, &|count| count + 1);
            atomic(most, &|most| most.max(others + 1));
            atomic(inside, &|count| count - 1);
            lane::atomic_store::<u32>(Space::Global, Scope::Device, taken, 0);
        })
        .unwrap();
        download(&emulator, most, 1)[0] > 1
    };
    assert!(schedules().any(both));
}
