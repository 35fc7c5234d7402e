//! Hand-offs by fences and atomic words. The right ones have no fault on any schedule, and the wrong ones are caught on
//! every schedule.

use crate::machine::planted::race;
use crate::machine::*;
use simt::*;

/// What a thread does in a hand-off.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Writes or reads the data.
    Data,
    Fence(Scope),
    /// Writes the flag, or waits until it has changed.
    Flag,
    /// Writes the flag by a store instead of an exchange.
    Store,
}
use Scope::{Block, Device, System};
use Step::{Data, Fence, Flag, Store};

/// The threads between which data pass.
#[derive(Clone, Copy, Debug)]
enum Between {
    Blocks,
    /// Warps of a block, through global or shared memory.
    Warps(Space),
}

/// Runs a hand-off from a thread that takes the steps of `producer` to one that takes those of `consumer`. `turn` swaps
/// the threads.
fn hand_off(
    emulator: &Emulator,
    turn: bool,
    between: Between,
    producer: &[Step],
    consumer: &[Step],
) -> Result<Statistics, Fault> {
    let (data, flag) = (zeros(emulator, 1), zeros(emulator, 1));
    run(emulator, shape(2, 64), || {
        let (role, space, data, flag) = match between {
            Between::Blocks if thread_number() == 0 => (block_number(), Space::Global, data, flag),
            Between::Warps(space) if block_number() == 1 => {
                let role = if thread_number() % 32 == 5 {
                    thread_number() / 32
                } else {
                    2
                };
                match space {
                    Space::Shared => {
                        let shared = lane::shared_static(1, 8, 4);
                        if thread_number() == 0 {
                            put_shared(shared, 0, 0);
                            put_shared(shared, 1, 0);
                        }
                        lane::sync_threads();
                        (role, space, shared, shared + 4)
                    }
                    _ => (role, space, data, flag),
                }
            }
            _ => return,
        };
        let is_producer = role == u32::from(turn);
        let steps = if is_producer { producer } else { consumer };
        for step in steps.iter().filter(|_| role < 2) {
            let exchange = |value| lane::atomic::<u32>(space, Device, flag, |_| value);
            match step {
                Data if is_producer => lane::store::<u32, 1>(space, data, [7]),
                Data => assert_eq!(lane::load::<u32, 1>(space, data), [7]),
                Fence(scope) => lane::fence(*scope),
                Flag if is_producer => drop(exchange(Some(1))),
                Flag => while exchange(None) == 0 {},
                Store => lane::atomic_store::<u32>(space, Device, flag, 1),
            }
        }
    })
}

const ACROSS: [Between; 1] = [Between::Blocks];
const WITHIN: [Between; 2] = [Between::Warps(Space::Global), Between::Warps(Space::Shared)];

#[test]
fn a_fence_on_each_side_of_the_flag_hands_data_over() {
    for (turn, emulator) in schedules().enumerate() {
        let turn = turn % 4 < 2;
        let run = |between, producer: &[Step], consumer: &[Step]| {
            hand_off(&emulator, turn, between, producer, consumer)
                .unwrap_or_else(|fault| panic!("{between:?} {producer:?} {consumer:?}: {fault}"));
        };
        for between in ACROSS {
            run(
                between,
                &[Data, Fence(Device), Flag],
                &[Flag, Fence(Device), Data],
            );
            run(
                between,
                &[Data, Fence(System), Store],
                &[Flag, Fence(System), Data],
            );
            run(
                between,
                &[Data, Fence(Device), Fence(Block), Flag],
                &[Flag, Fence(Block), Fence(Device), Data],
            );
        }
        for between in WITHIN {
            run(
                between,
                &[Data, Fence(Block), Flag],
                &[Flag, Fence(Block), Data],
            );
            run(
                between,
                &[Data, Fence(Device), Store],
                &[Flag, Fence(Block), Data],
            );
        }
    }
}

#[test]
fn a_hand_off_without_the_right_fences_is_a_race() {
    let right = |scope| [Flag, Fence(scope), Data];
    for (turn, emulator) in schedules().enumerate() {
        let turn = turn % 4 < 2;
        let check = |between, producer: &[Step], consumer: &[Step]| {
            let Err(fault) = hand_off(&emulator, turn, between, producer, consumer) else {
                panic!("not caught: {between:?} {producer:?} {consumer:?}")
            };
            let ((access_kind, other_access_kind, ..), _) = race(&fault.kind);
            assert_eq!(
                (access_kind, other_access_kind),
                (AccessKind::Load, AccessKind::Store),
                "{fault}"
            );
        };
        for (between, scope) in ACROSS
            .map(|across| (across, Device))
            .into_iter()
            .chain(WITHIN.map(|within| (within, Block)))
        {
            // No fence at all: message passing over relaxed atomics.
            check(between, &[Data, Flag], &[Flag, Data]);
            // The producer has none.
            check(between, &[Data, Flag], &right(scope));
            check(between, &[Data, Store], &right(scope));
            // Its fence is before the data, or after the flag.
            check(between, &[Fence(scope), Data, Flag], &right(scope));
            check(between, &[Data, Flag, Fence(scope)], &right(scope));
            // The consumer has none, or before it waits.
            check(between, &[Data, Fence(scope), Flag], &[Flag, Data]);
            check(
                between,
                &[Data, Fence(scope), Flag],
                &[Fence(scope), Flag, Data],
            );
            // Each thread starts with a fence, and has no other.
            check(
                between,
                &[Fence(scope), Data, Flag],
                &[Fence(scope), Flag, Data],
            );
        }
        for between in ACROSS {
            check(between, &[Data, Fence(Block), Flag], &right(Device));
            check(between, &[Data, Fence(Device), Flag], &right(Block));
            check(
                between,
                &[Fence(Device), Data, Fence(Block), Flag],
                &right(Device),
            );
        }
    }
}

#[test]
fn an_exchange_of_another_thread_passes_on_what_was_released_and_a_store_does_not() {
    for emulator in schedules() {
        for stores in [false, true] {
            let [data, flag, done] = [(); 3].map(|()| zeros(&emulator, 1));
            let read = |word| lane::atomic::<u32>(Space::Global, Device, word, |_| None);
            let write =
                |word| lane::atomic::<u32>(Space::Global, Device, word, |old| Some(old + 1));
            let found = run(&emulator, shape(3, 1), || match block_number() {
                0 => {
                    put(data, 0, 1);
                    lane::fence(Device);
                    write(flag);
                }
                1 => {
                    while read(flag) == 0 {}
                    if stores {
                        lane::atomic_store::<u32>(Space::Global, Device, flag, 2);
                    } else {
                        write(flag);
                    }
                    write(done);
                }
                _ => {
                    // It does not read the first value of the flag.
                    while read(done) == 0 {}
                    assert_eq!(read(flag), 2);
                    lane::fence(Device);
                    get(data, 0);
                }
            });
            assert_eq!(found.is_err(), stores, "{found:?}");
        }
    }
}

#[test]
fn what_a_thread_has_acquired_it_passes_on() {
    for emulator in schedules() {
        for has_fence in [true, false] {
            let (data, flags) = (zeros(&emulator, 1), zeros(&emulator, 5));
            let flag = |block: u32| flags + 4 * u64::from(block);
            let found = run(&emulator, shape(5, 33), || {
                let block = block_number();
                // One thread waits and another one goes on after the barrier.
                if block > 0 && thread_number() == 0 {
                    while lane::atomic::<u32>(Space::Global, Device, flag(block - 1), |_| None) == 0
                    {
                    }
                    lane::fence(Device);
                }
                lane::sync_threads();
                if thread_number() == 32 {
                    put(data, 0, if block == 0 { 1 } else { get(data, 0) + 1 });
                    if has_fence || block != 2 {
                        lane::fence(Device);
                    }
                    lane::atomic_store::<u32>(Space::Global, Device, flag(block), 1);
                }
            });
            match found {
                Ok(_) => assert!(has_fence && download(&emulator, data, 1) == [5]),
                Err(fault) => assert!(!has_fence && fault.block == [3, 0, 0], "{fault}"),
            }
        }
    }
}

#[test]
fn warp_barriers_share_what_a_lane_has_acquired() {
    for emulator in schedules() {
        for lanes in [u32::MAX, 0xffff] {
            let (data, flag) = (zeros(&emulator, 32), zeros(&emulator, 1));
            let found = run(&emulator, shape(2, 32), || {
                let lane = lane::lane_id();
                if block_number() == 0 {
                    put(data, lane, lane);
                    // Halves of the warp, and then lanes 3 and 19.
                    lane::sync_warp(if lane < 16 { 0xffff } else { 0xffff_0000 });
                    if lane % 16 == 3 {
                        lane::sync_warp(1 << 3 | 1 << 19);
                    }
                    if lane == 3 {
                        lane::fence(Device);
                        lane::atomic::<u32>(Space::Global, Device, flag, |_| Some(1));
                    }
                    return;
                }
                if lane == 5 {
                    while lane::atomic::<u32>(Space::Global, Device, flag, |_| None) == 0 {}
                    lane::fence(Device);
                }
                if lanes >> lane & 1 != 0 {
                    lane::sync_warp(lanes);
                }
                // The lanes wait for each other, but a vote orders no memory.
                lane::ballot(u32::MAX, true);
                get(data, 31 - lane);
            });
            assert_eq!(found.is_err(), lanes != u32::MAX, "{found:?}");
        }
    }
}

/// All blocks wait for each other. Without `fences`, nothing orders their accesses.
fn grid_barrier(counter: u64, round: u32, fences: bool) {
    lane::sync_threads();
    if thread_number() == 0 {
        if fences {
            lane::fence(Device);
        }
        lane::atomic::<u32>(Space::Global, Device, counter, |count| Some(count + 1));
        let goal = round * lane::grid_dim()[0];
        while lane::atomic::<u32>(Space::Global, Device, counter, |_| None) < goal {}
        if fences {
            lane::fence(Device);
        }
    }
    lane::sync_threads();
}

#[test]
fn grid_barriers_order_the_accesses_of_all_blocks() {
    for emulator in schedules() {
        for fences in [true, false] {
            let (data, counter) = (zeros(&emulator, 2 * 6 * 40), zeros(&emulator, 1));
            let found = run(&emulator, shape(6, 40), || {
                let own = block_number() * 40 + thread_number();
                for round in 0..4 {
                    let (from, to) = (round % 2 * 240, (round + 1) % 2 * 240);
                    let sum =
                        get(data, from + (own + 77) % 240) + get(data, from + (own + 1) % 240);
                    put(data, to + own, sum + 1);
                    grid_barrier(counter, round + 1, fences);
                }
            });
            match found {
                Ok(_) => assert!(fences && download(&emulator, data, 240) == [15; 240]),
                Err(fault) => assert!(!fences, "{fault}"),
            }
        }
    }
}

#[test]
fn a_scan_that_looks_back_reads_what_earlier_blocks_have_published() {
    for emulator in schedules() {
        for fences in [true, false] {
            let blocks = 40;
            let (prefixes, flags) = (zeros(&emulator, blocks), zeros(&emulator, blocks));
            let ticket = zeros(&emulator, 1);
            let found = run(&emulator, shape(blocks, 32), || {
                if lane::lane_id() != 0 {
                    return;
                }
                let fence = || {
                    if fences {
                        lane::fence(Device);
                    }
                };
                let tile =
                    lane::atomic::<u32>(Space::Global, Device, ticket, |ticket| Some(ticket + 1));
                let mut before = 0;
                if tile > 0 {
                    let flag = flags + 4 * u64::from(tile - 1);
                    while lane::atomic::<u32>(Space::Global, Device, flag, |_| None) == 0 {}
                    fence();
                    before = get(prefixes, tile - 1);
                }
                put(prefixes, tile, before + tile);
                fence();
                let flag = flags + 4 * u64::from(tile);
                lane::atomic_store::<u32>(Space::Global, Device, flag, 1);
            });
            match found {
                Ok(_) => {
                    let expected = (0..blocks).map(|tile| tile * (tile + 1) / 2);
                    assert!(
                        fences
                            && download(&emulator, prefixes, blocks)
                                .into_iter()
                                .eq(expected)
                    );
                }
                Err(fault) => assert!(!fences, "{fault}"),
            }
        }
    }
}

#[test]
fn what_was_read_may_be_overwritten_after_a_hand_off_only() {
    for emulator in schedules() {
        for fences in [true, false] {
            let (data, flag) = (zeros(&emulator, 1), zeros(&emulator, 1));
            let fence = || {
                if fences {
                    lane::fence(Device);
                }
            };
            let found = run(&emulator, shape(2, 1), || {
                if block_number() == 0 {
                    get(data, 0);
                    fence();
                    lane::atomic::<u32>(Space::Global, Device, flag, |_| Some(1));
                } else {
                    while lane::atomic::<u32>(Space::Global, Device, flag, |_| None) == 0 {}
                    fence();
                    put(data, 0, 1);
                }
            });
            assert_eq!(found.is_ok(), fences, "{found:?}");
        }
    }
}
